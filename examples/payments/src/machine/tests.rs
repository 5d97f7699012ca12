//! Tests every step, every refusal and every outcome, as tables.

use super::*;

const SUMS: Sums = Sums { amount: 100, captured: 40, refunded: 10 };

/// One line for each state: the steps for confirm, capture, cancel and refund. `-` is a wrong state, `...` is an attempt
/// under way.
const STEPS: &str = "
    created      purchase 100  -           void 60     -
    authorizing  ...           ...         ...         ...
    authorized   -             capture 60  void 60     -
    capturing    ...           ...         ...         ...
    captured     -             -           -           refund 30
    canceling    ...           ...         ...         ...
    canceled     -             -           -           -
    refunding    ...           ...         ...         ...
    refunded     -             -           -           -
    failed       -             -           -           -
";

fn text(step: Result<Step, Refusal>) -> String {
    match step {
        Ok(step) => format!("{} {}", step.kind.word(), step.amount),
        Err(Refusal::UnderWay) => "...".to_owned(),
        Err(Refusal::WrongState) => "-".to_owned(),
        Err(Refusal::TooMuch) => "too much".to_owned(),
    }
}

#[test]
fn every_command_in_every_state_has_the_result_in_the_table() {
    let mut states = 0;
    for line in STEPS.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (state, rest) = line.split_once(' ').unwrap();
        let state: State = state.parse().unwrap();
        let wanted: Vec<_> = rest.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let commands = [Command::Confirm, Command::Capture(None), Command::Cancel, Command::Refund(None)];
        let found = commands.map(|command| text(begin(state, SUMS, true, command)));
        assert_eq!(found.to_vec(), wanted, "{state:?}");
        states += 1;
    }
    assert_eq!(states, State::ALL.len());
}

#[test]
fn a_confirmation_holds_or_takes_the_money() {
    let sums = Sums { captured: 0, refunded: 0, ..SUMS };
    assert_eq!(text(begin(State::Created, sums, false, Command::Confirm)), "authorize 100");
    assert_eq!(text(begin(State::Created, sums, true, Command::Confirm)), "purchase 100");
}

#[test]
fn partial_amounts_are_from_one_to_the_rest() {
    for (wanted, found) in [(1, "capture 1"), (60, "capture 60"), (61, "too much"), (0, "too much")] {
        assert_eq!(text(begin(State::Authorized, SUMS, false, Command::Capture(Some(wanted)))), found);
    }
    for (wanted, found) in [(1, "refund 1"), (30, "refund 30"), (31, "too much"), (-1, "too much")] {
        assert_eq!(text(begin(State::Captured, SUMS, false, Command::Refund(Some(wanted)))), found);
    }
    assert_eq!(text(begin(State::Captured, SUMS, false, Command::Refund(Some(i64::MIN)))), "too much");
}

/// Kind, held, captured and refunded before, amount. Then the state and the sums after success, decline and
/// non-execution.
type Line = (Kind, bool, i64, i64, i64, [(State, i64, i64); 3]);

#[test]
fn every_outcome_leads_to_the_state_in_the_table() {
    use State::{Authorized, Canceled, Captured, Created, Failed, Refunded};
    let table: [Line; 9] = [
        (Kind::Authorize, false, 0, 0, 100, [(Authorized, 0, 0), (Failed, 0, 0), (Created, 0, 0)]),
        (Kind::Purchase, false, 0, 0, 100, [(Captured, 100, 0), (Failed, 0, 0), (Created, 0, 0)]),
        (Kind::Capture, true, 0, 0, 40, [(Authorized, 40, 0), (Authorized, 0, 0), (Authorized, 0, 0)]),
        (Kind::Capture, true, 40, 0, 60, [(Captured, 100, 0), (Authorized, 40, 0), (Authorized, 40, 0)]),
        (Kind::Void, false, 0, 0, 100, [(Canceled, 0, 0), (Created, 0, 0), (Created, 0, 0)]),
        (Kind::Void, true, 0, 0, 100, [(Canceled, 0, 0), (Authorized, 0, 0), (Authorized, 0, 0)]),
        (Kind::Void, true, 40, 0, 60, [(Captured, 40, 0), (Authorized, 40, 0), (Authorized, 40, 0)]),
        (Kind::Refund, true, 40, 0, 10, [(Captured, 40, 10), (Captured, 40, 0), (Captured, 40, 0)]),
        (Kind::Refund, true, 40, 10, 30, [(Refunded, 40, 40), (Captured, 40, 10), (Captured, 40, 10)]),
    ];
    for (kind, held, captured, refunded, amount, wanted) in table {
        let before = Sums { amount: 100, captured, refunded };
        for (outcome, (state, captured, refunded)) in Outcome::ALL.iter().zip(wanted) {
            let found = settle(kind, amount, *outcome, held, before);
            let wanted = (state, Sums { amount: 100, captured, refunded });
            assert_eq!(found, wanted, "{kind:?} {outcome:?} before {before:?}");
        }
    }
}

/// For all commands and outcomes, the sums stay within their bounds, and every step can be undone or ends.
#[test]
fn no_sequence_of_steps_leaves_the_bounds() {
    for seed in 0..2_000 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut state = State::Created;
        let mut sums = Sums { amount: 5, captured: 0, refunded: 0 };
        let mut held = false;
        for _ in 0..30 {
            let part = dice.bool().then(|| dice.i64(-1..7));
            let command = match dice.u32(0..4) {
                0 => Command::Confirm,
                1 => Command::Capture(part),
                2 => Command::Cancel,
                _ => Command::Refund(part),
            };
            let Ok(step) = begin(state, sums, seed % 2 == 0, command) else { continue };
            assert_eq!(state_before(step.kind, held), state, "seed {seed}");
            let outcome = Outcome::ALL[dice.usize(0..3)];
            (state, sums) = settle(step.kind, step.amount, outcome, held, sums);
            held |= step.kind.asks_for_money() && outcome == Outcome::Succeeded;
            assert!(!state.is_under_way(), "seed {seed}");
            let in_bounds =
                0 <= sums.refunded && sums.refunded <= sums.captured && sums.captured <= sums.amount;
            assert!(in_bounds, "seed {seed}: {sums:?}");
            assert_eq!(state == State::Refunded, sums.refunded > 0 && sums.refunded == sums.captured);
        }
    }
}
