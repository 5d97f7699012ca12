//! Crashes the server before every step of a small workload, once or twice, and assigns lost IDs again in
//! between. The trusted outcomes of the old IDs must be right. Trusting more must be detected.

use super::faults::{self, Faults};
use super::model::Statement::Add;
use super::schedule::{self, Schedule};
use super::tally::Tally;
use super::workload::{row, small};
use super::world::{TrustRules, World};
use hotrow_core::witness::{Continuity, XactStatus, believe};
use hotrow_lane::lane::Outcome;

/// The events before one step, all at one time.
#[derive(Clone, Copy, Debug)]
struct Crashes {
    step: usize,
    /// IDs that the log has kept although no client waited for them.
    ids_left: u64,
    /// Transactions of direct clients after each crash.
    strangers: usize,
    lives: usize,
    /// The server had finished everything that it received, and its messages about that are lost.
    unheard: bool,
    /// After each crash an outsider sets all marks to this value, computed from the number of assigned IDs.
    outsider: Option<fn(u64) -> u64>,
}

impl Faults for Crashes {
    fn strike(&mut self, world: &mut World, step: usize) {
        if step != self.step {
            return;
        }
        if self.unheard {
            lose_answers(world);
        }
        for _ in 0..self.lives {
            faults::crash(world, self.ids_left);
            if let Some(value) = self.outsider {
                world.server.set_all_marks(value);
            }
            (0..self.strangers).for_each(|_| world.server.change(row(9), 1));
        }
    }
}

/// Each backend continues as far as it can, and its answers are lost.
fn lose_answers(world: &mut World) {
    for backend in &mut world.backends {
        while !backend.input.is_empty() && !backend.waits(&world.server, &world.history.units) {
            backend.serve(&mut world.server, &world.history.units);
        }
        backend.output.clear();
    }
}

/// The lanes' marks.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    exist: bool,
    /// Without secret numbers.
    bare: bool,
    outsider: Option<fn(u64) -> u64>,
}

const NO_MARKS: Marks = Marks { exist: false, bare: false, outsider: None };
const MARKS: Marks = Marks { exist: true, ..NO_MARKS };

/// Crashes at every step: the observed events, or the first crash that led to an error.
fn at_every_step(rules: TrustRules, marks: Marks) -> Result<Tally, String> {
    let take = Add { row: row(1), n: -1 };
    let world = || {
        let mut world = small(&[&[take, take], &[take], &[Add { row: row(2), n: 1 }; 3]]);
        (world.rules, world.marks, world.bare_marks) = (rules, marks.exist, marks.bare);
        world
    };
    let mut tally = Tally::default();
    for schedule in [Schedule::Eager(3), Schedule::Lazy(3)] {
        let mut calm = world();
        assert_eq!(
            schedule::run_and_check(&mut calm, schedule.clone(), &mut faults::None),
            Vec::<String>::new()
        );
        for number in 0..calm.steps * 54 {
            let (step, kind) = (number / 54, number % 54);
            let unheard = kind % 2 == 1;
            let (ids_left, strangers, lives) = (kind as u64 / 18, kind / 6 % 3, 1 + kind / 2 % 3);
            let outsider = marks.outsider;
            let mut crashes = Crashes { step, ids_left, strangers, lives, unheard, outsider };
            let mut world = world();
            let wrong = schedule::run_and_check(&mut world, schedule.clone(), &mut crashes);
            if !wrong.is_empty() {
                return Err(format!("{schedule:?}, {crashes:?}: {wrong:#?}"));
            }
            tally.add(&world.history);
        }
    }
    Ok(tally)
}

#[test]
fn a_crash_at_any_step_causes_no_wrong_answer() {
    let tally = at_every_step(TrustRules::default(), NO_MARKS).unwrap_or_else(|wrong| panic!("{wrong}"));
    tally.require(&[
        "again: lost in a crash",
        "again: no id, none committed",
        "Refused(OutcomeUnknown): no id, crashed",
        "Refused(OutcomeUnknown): asked, crashed",
    ]);
}

/// A commit that the log has kept is answered, regardless of the number of crashes. A lost commit is in doubt
/// only if a later life has assigned its ID again and has committed.
#[test]
fn with_a_mark_a_logged_commit_is_never_in_doubt() {
    let tally = at_every_step(TrustRules::default(), MARKS).unwrap_or_else(|wrong| panic!("{wrong}"));
    tally.require(&[
        "again: lost in a crash",
        "again: no id, none committed",
        "answered: asked, committed",
        "Refused(OutcomeUnknown): no id, crashed",
        "Refused(OutcomeUnknown): asked, crashed",
    ]);
}

/// Values that a script, a dump or an old gateway can bring: bare IDs below, at and above those of the workload.
const OUTSIDERS: [fn(u64) -> u64; 4] = [|_| 0, |_| 1, |ids| ids, |ids| ids + 1_000];

#[test]
fn a_mark_that_an_outsider_has_set_causes_no_wrong_answer() {
    for outsider in OUTSIDERS {
        let marks = Marks { outsider: Some(outsider), ..MARKS };
        let tally = at_every_step(TrustRules::default(), marks).unwrap_or_else(|wrong| panic!("{wrong}"));
        tally.require(&["again: lost in a crash", "Refused(OutcomeUnknown): asked, crashed"]);
    }
}

#[test]
fn a_mark_without_a_secret_number_is_detected() {
    let is_wrong = |outsider: &fn(u64) -> u64| {
        let marks = Marks { bare: true, outsider: Some(*outsider), ..MARKS };
        at_every_step(TrustRules::default(), marks).is_err()
    };
    assert!(OUTSIDERS.iter().any(is_wrong), "bare IDs are trusted although outsiders set them");
}

#[test]
fn trusting_more_is_detected() {
    let right = TrustRules::default();
    let committed: fn(u64, XactStatus, Continuity) -> Option<Outcome> =
        |id, status, continuity| match (status, continuity) {
            (XactStatus::Committed, Continuity::SameCluster { .. }) => Some(Outcome::Committed),
            _ => believe(id, status, continuity),
        };
    assert!(
        at_every_step(TrustRules { id: committed, ..right }, NO_MARKS).is_err(),
        "committed is trusted after a crash"
    );
    // This is wrong only if the server crashed twice and assigned the ID in between.
    let below: fn(u64, XactStatus, Continuity) -> Option<Outcome> =
        |id, status, continuity| match (status, continuity) {
            (XactStatus::Committed, Continuity::SameCluster { first_id: Some(first) }) if id < first => {
                Some(Outcome::Committed)
            }
            _ => believe(id, status, continuity),
        };
    assert!(
        at_every_step(TrustRules { id: below, ..right }, NO_MARKS).is_err(),
        "committed is trusted below the first ID"
    );
    let careless = TrustRules { none_committed: |_| Outcome::Aborted, ..right };
    assert!(at_every_step(careless, NO_MARKS).is_err(), "a missing id is taken for a missing commit");
}
