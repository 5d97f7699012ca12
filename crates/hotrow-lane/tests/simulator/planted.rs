//! Plants errors in right histories, one at a time, and tests that the checker detects them.

use hotrow_lane::lane::{LaneKind, Merge, Outcome, Refusal};

use super::checker;
use super::faults;
use super::history::{Evidence, Fate, History, Sent, UnitOutcome};
use super::model::Reply;
use super::model::Statement::Add;
use super::schedule::{self, Schedule};
use super::server::Entry;
use super::workload::{plain, row, small};

/// Three sessions with one row, and a fourth with two units on two rows, in one batch without faults.
fn right() -> History {
    let take = Add { row: row(1), n: -1 };
    let mut world = small(&[&[take], &[take], &[take], &[take, Add { row: row(2), n: 1 }]]);
    let wrong = schedule::run_and_check(&mut world, Schedule::Eager(4), &mut faults::None);
    assert!(wrong.is_empty(), "{wrong:#?}");
    world.history
}

/// Plants an error and expects exactly this report.
fn planted(mistake: impl FnOnce(&mut History), due: &[&str]) {
    let mut history = right();
    mistake(&mut history);
    assert_eq!(checker::check(&history), due);
}

fn outcome_of(history: &mut History, unit: usize) -> &mut UnitOutcome {
    history.outcomes.iter_mut().find(|one| one.unit == unit).unwrap()
}

fn evidence(history: &mut History, unit: usize) -> &mut Evidence {
    outcome_of(history, unit).evidence.as_mut().unwrap()
}

#[test]
fn missing_or_duplicate_outcomes() {
    planted(|history| history.outcomes.retain(|one| one.unit != 2), &["unit 2 has 0 outcomes"]);
    planted(
        |history| {
            let again = *outcome_of(history, 1);
            history.outcomes.push(again);
        },
        &["unit 1 has 2 outcomes"],
    );
}

#[test]
fn a_unit_that_is_applied_twice() {
    planted(
        |history| history.log.push(history.log[0]),
        &[
            "unit 0 was applied twice",
            "unit 0 was answered before it was durable",
            "unit 0 got Value(3) and not NoRow",
        ],
    );
}

#[test]
fn an_answer_that_belongs_to_another_unit() {
    planted(
        |history| {
            let (Fate::Answered(txn, _), Fate::Answered(_, reply)) =
                (outcome_of(history, 0).fate, outcome_of(history, 1).fate)
            else {
                panic!("both units are answered");
            };
            outcome_of(history, 0).fate = Fate::Answered(txn, reply);
        },
        &["unit 0 got Value(2) and not Value(3)"],
    );
    planted(
        |history| outcome_of(history, 3).fate = Fate::Nothing,
        &["unit 3 got Nothing and never ran with this result"],
    );
}

#[test]
fn an_answer_from_a_transaction_that_did_not_commit() {
    planted(
        |history| outcome_of(history, 0).fate = Fate::Answered(99, Reply::Value(3)),
        &["unit 0 was applied by 1 and answered from 99"],
    );
    planted(
        |history| {
            history.log.pop();
        },
        &["unit 4 got Answered(1, Value(5)) and never ran with this result"],
    );
}

#[test]
fn an_answer_before_the_commit_or_on_a_guess() {
    planted(|history| outcome_of(history, 0).log = 0, &["unit 0 was answered before it was durable"]);
    planted(
        |history| evidence(history, 0).ready = false,
        &[&format!(
            "unit 0 got Answered(1, Value(3)) on a guess: {:?}",
            Evidence { written: true, xid: Some(Some(1)), ..Evidence::none(LaneKind::Write) }
        )],
    );
}

#[test]
fn a_unit_that_is_run_again_on_a_guess() {
    let sent = Evidence { written: true, ..Evidence::none(LaneKind::Write) };
    planted(
        |history| history.again.push((1, sent)),
        &[&format!("unit 1 was run again on a guess: {sent:?}")],
    );
    // With proof it is right.
    for proof in [
        Evidence { failed: true, ..sent },
        Evidence { written: false, ..sent },
        Evidence { kind: LaneKind::Read, ..sent },
        Evidence { resolved: Some(Outcome::Aborted), ..sent },
    ] {
        planted(|history| history.again.push((1, proof)), &[]);
    }
}

#[test]
fn a_refused_unit_that_is_applied_and_a_refusal_without_reason() {
    planted(
        |history| {
            let one = outcome_of(history, 1);
            (one.fate, one.evidence) = (Fate::Refused(Refusal::NotSent), None);
        },
        &["unit 1 was refused with NotSent and applied", "unit 1 was refused with NotSent for no reason"],
    );
    planted(
        |history| outcome_of(history, 1).fate = Fate::Refused(Refusal::OutcomeUnknown),
        &["unit 1 was refused with OutcomeUnknown for no reason"],
    );
    // The outcome could not be known.
    planted(
        |history| {
            let one = outcome_of(history, 1);
            one.fate = Fate::Refused(Refusal::OutcomeUnknown);
            one.evidence = Some(Evidence { written: true, ..Evidence::none(LaneKind::Write) });
        },
        &[],
    );
}

#[test]
fn a_session_whose_units_are_reordered() {
    // In one transaction, by the order in which they ran.
    planted(
        |history| {
            let (Entry::Unit { run: third, .. }, Entry::Unit { run: fourth, .. }) =
                (history.log[3], history.log[4])
            else {
                panic!("all entries are units");
            };
            for (entry, other) in [(3, fourth), (4, third)] {
                if let Entry::Unit { run, .. } = &mut history.log[entry] {
                    *run = other;
                }
            }
        },
        &["unit 4 overtook unit 3 of its session"],
    );
    // In two transactions, by the order of their commits.
    let mut world = small(&[&[Add { row: row(2), n: 1 }, Add { row: row(1), n: 1 }]]);
    let wrong = schedule::run_and_check(&mut world, Schedule::Eager(1), &mut faults::None);
    assert_eq!((wrong.len(), world.history.batches.len()), (0, 2));
    world.history.log.swap(0, 1);
    let due = ["unit 0 was answered before it was durable", "unit 1 overtook unit 0 of its session"];
    assert_eq!(checker::check(&world.history), due);
}

#[test]
fn a_unit_of_two_statements_that_is_split() {
    let history = || {
        let mut world = small(&[&[Add { row: row(1), n: 1 }], &[Add { row: row(2), n: 1 }]]);
        world.add_second(0, plain(0, Add { row: row(3), n: 1 }));
        let wrong = schedule::run_and_check(&mut world, Schedule::Eager(2), &mut faults::None);
        assert!(wrong.is_empty(), "{wrong:#?}");
        world.history
    };
    // Another unit's statement is between its two.
    let mut torn = history();
    torn.log.swap(1, 2);
    for (run, entry) in torn.log.iter_mut().enumerate() {
        if let Entry::Unit { run: ran, .. } = entry {
            *ran = run as u64;
        }
    }
    assert_eq!(checker::check(&torn), ["unit 0 was split"]);
    let mut halved = history();
    halved.outcomes.iter_mut().filter(|one| one.unit == 2).for_each(|one| {
        (one.fate, one.evidence) = (Fate::Left, None);
    });
    assert_eq!(checker::check(&halved), ["unit 2 was given back and applied", "unit 0 has two fates"]);
}

#[test]
fn a_key_whose_units_are_reordered() {
    planted(
        |history| {
            history.calm = true;
            history.submitted.swap(0, 1);
        },
        &["unit 1 was overtaken by a later unit of its key"],
    );
}

#[test]
fn calls_that_are_merged_by_mistake() {
    let merge = |group| Some(Merge { group, most: 2 });
    planted(
        |history| history.batches[0].calls[0] = 2,
        &["batch 1 of lane 0 has calls that do not match its units"],
    );
    let first_two = |history: &mut History| {
        let batch = &mut history.batches[0];
        batch.calls = vec![2];
        batch.calls.resize(batch.units.len() - 1, 1);
    };
    planted(first_two, &["batch 1 of lane 0 has merged calls that cannot be merged"]);
    planted(
        |history| {
            first_two(history);
            (history.units[0].merge, history.units[1].merge) = (merge(1), merge(2));
        },
        &["batch 1 of lane 0 has merged calls of two groups"],
    );
    planted(
        |history| {
            first_two(history);
            history.units.iter_mut().for_each(|unit| unit.merge = merge(1));
        },
        &["batch 1 of lane 0 has a merged call that is not alone in its key space"],
    );
    planted(
        |history| {
            first_two(history);
            (history.units[0].merge, history.units[1].merge) =
                (Some(Merge { group: 1, most: 1 }), Some(Merge { group: 1, most: 1 }));
        },
        &["batch 1 of lane 0 has merged too many calls"],
    );
}

#[test]
fn batches_beyond_their_bounds() {
    let first = |change: fn(&mut Sent)| move |history: &mut History| change(&mut history.batches[0]);
    planted(first(|batch| batch.units.reverse()), &["batch 1 of lane 0 is not in key order"]);
    planted(
        first(|batch| {
            batch.units.clear();
            batch.calls.clear();
        }),
        &["batch 1 of lane 0 has no units or too many"],
    );
    planted(first(|batch| batch.under_way = 3), &["batch 1 of lane 0 is one too many under way"]);
    planted(|history| history.units[1].bytes = 2 << 20, &["batch 1 of lane 0 has too many bytes"]);
    planted(
        |history| history.units[2].rows_per_commit = 2,
        &["batch 1 of lane 0 has too many units of one key"],
    );
    planted(
        |history| {
            let again = Sent { under_way: 2, number: 2, ..history.batches[0].clone() };
            history.batches.push(again);
        },
        &[
            "batch 2 of lane 0 was sent as a second batch and is too small for that",
            "batch 2 of lane 0 has a session that is under way already",
        ],
    );
}
