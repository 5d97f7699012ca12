//! Each anomaly is found at the levels that forbid it, and allowed at the others.

use crate::histories::check::{Name, check};
use crate::histories::history::Op::{Append, Get, Read, Write};
use crate::histories::history::{Level, Op, Outcome, Transaction};
use Level::{ReadCommitted, RepeatableRead, Serializable};

/// A committed transaction of a session of its own, with one operation in each statement. All are concurrent.
fn transaction(session: u64, ops: &[Op]) -> Transaction {
    Transaction {
        session,
        level: ReadCommitted,
        way: "test".into(),
        statements: ops.iter().map(|op| vec![op.clone()]).collect(),
        outcome: Outcome::Committed,
        begun: session,
        ended: 1000 + session,
    }
}

/// Concurrent transactions.
fn concurrent(transactions: &[&[Op]]) -> Vec<Transaction> {
    transactions.iter().zip(1..).map(|(ops, session)| transaction(session, ops)).collect()
}

/// A read of everything after all other transactions.
fn last(history: &mut Vec<Transaction>, ops: &[Op]) {
    let mut all = transaction(100, ops);
    all.statements = vec![ops.to_vec()];
    (all.begun, all.ended) = (5000, 5001);
    history.push(all);
}

/// The names of the forbidden anomalies if all transactions have this level.
fn at(level: Level, history: &[Transaction]) -> Vec<Name> {
    let with = |transaction: &Transaction| Transaction { level, ..transaction.clone() };
    let history: Vec<Transaction> = history.iter().map(with).collect();
    let mut names: Vec<Name> = check(&history).forbidden.into_iter().map(|anomaly| anomaly.name).collect();
    names.sort();
    names.dedup();
    names
}

/// Checks that an anomaly is found from this level on, and that nothing is found at weaker levels.
#[track_caller]
fn forbidden_from(level: Level, name: Name, history: &[Transaction]) {
    for other in Level::ALL {
        let expected = if other >= level { vec![name] } else { vec![] };
        assert_eq!(at(other, history), expected, "at {other}");
    }
}

#[test]
fn a_serial_history_has_no_anomaly() {
    let mut history = concurrent(&[
        &[Append(1, 1), Read(1, vec![1]), Write(1, 10)],
        &[Read(1, vec![1]), Append(1, 2), Get(1, Some(10)), Write(1, 20)],
    ]);
    last(&mut history, &[Read(1, vec![1, 2]), Get(1, Some(20))]);
    for level in Level::ALL {
        assert_eq!(at(level, &history), []);
    }
    assert!(check(&history).allowed.is_empty());
}

#[test]
fn a_read_of_a_failed_transaction_is_g1a() {
    let mut history = concurrent(&[&[Append(1, 1)], &[Read(1, vec![1])]]);
    history[0].outcome = Outcome::Failed;
    forbidden_from(ReadCommitted, Name::G1a, &history);
    let mut history = concurrent(&[&[Write(1, 1)], &[Get(1, Some(1))]]);
    history[0].outcome = Outcome::Failed;
    forbidden_from(ReadCommitted, Name::G1a, &history);
}

#[test]
fn a_read_between_two_writes_of_a_transaction_is_g1b() {
    let history = concurrent(&[&[Append(1, 1), Append(1, 2)], &[Read(1, vec![1])], &[Read(1, vec![1, 2])]]);
    assert!(at(ReadCommitted, &history).contains(&Name::G1b));
    let history = concurrent(&[&[Write(1, 1), Write(1, 2)], &[Get(1, Some(1))]]);
    forbidden_from(ReadCommitted, Name::G1b, &history);
}

#[test]
fn a_committed_append_to_a_failed_one_is_a_dirty_update() {
    let mut history = concurrent(&[&[Append(1, 1)], &[Append(1, 2)], &[Read(1, vec![1, 2])]]);
    history[0].outcome = Outcome::Failed;
    assert_eq!(at(ReadCommitted, &history), [Name::G1a, Name::DirtyUpdate]);
}

#[test]
fn a_value_that_is_there_twice_or_was_never_written_is_found() {
    let history = concurrent(&[&[Append(1, 1)], &[Read(1, vec![1, 1])]]);
    assert!(at(ReadCommitted, &history).contains(&Name::DuplicateAppend));
    forbidden_from(ReadCommitted, Name::UnwrittenValue, &concurrent(&[&[Read(1, vec![7])]]));
    forbidden_from(ReadCommitted, Name::UnwrittenValue, &concurrent(&[&[Get(1, Some(7))]]));
}

#[test]
fn an_acknowledged_append_that_is_absent_later_is_lost() {
    let mut history = concurrent(&[&[Append(1, 1)], &[Append(1, 2)]]);
    last(&mut history, &[Read(1, vec![2])]);
    assert!(at(ReadCommitted, &history).contains(&Name::LostAppend));
    // If its outcome is unknown, it was not committed.
    history[0].outcome = Outcome::Unknown;
    assert_eq!(at(Serializable, &history), []);
}

#[test]
fn reads_of_a_list_that_are_no_prefixes_are_incompatible() {
    let history = concurrent(&[
        &[Append(1, 1)],
        &[Append(1, 2)],
        &[Read(1, vec![1])],
        &[Read(1, vec![2])],
        &[Read(1, vec![1, 2])],
    ]);
    forbidden_from(ReadCommitted, Name::IncompatibleOrder, &history);
}

#[test]
fn a_transaction_that_does_not_see_its_own_writes_is_found() {
    for ops in [
        &[Append(1, 1), Read(1, vec![])][..],
        &[Read(1, vec![1]), Append(1, 1)],
        &[Write(1, 1), Get(1, None)],
        &[Get(1, Some(1)), Write(1, 1)],
    ] {
        assert!(at(ReadCommitted, &concurrent(&[ops])).contains(&Name::Internal), "{ops:?}");
    }
}

#[test]
fn writes_that_interleave_are_g0() {
    let mut history = concurrent(&[&[Append(1, 1), Append(2, 3)], &[Append(1, 2), Append(2, 4)]]);
    last(&mut history, &[Read(1, vec![1, 2]), Read(2, vec![4, 3])]);
    forbidden_from(ReadCommitted, Name::G0, &history);
}

#[test]
fn two_transactions_that_read_each_others_writes_are_g1c() {
    let history = concurrent(&[&[Append(1, 1), Read(2, vec![2])], &[Append(2, 2), Read(1, vec![1])]]);
    forbidden_from(ReadCommitted, Name::G1c, &history);
}

#[test]
fn read_skew_is_allowed_between_statements_of_read_committed_only() {
    let mut history = concurrent(&[&[Append(1, 1), Append(2, 2)], &[Read(1, vec![]), Read(2, vec![2])]]);
    forbidden_from(RepeatableRead, Name::GSingle, &history);
    assert_eq!(
        check(&history).allowed.into_iter().collect::<Vec<_>>(),
        [((Name::GSingle, ReadCommitted), 1)]
    );
    // One statement has one snapshot.
    history[1].statements = vec![vec![Read(1, vec![]), Read(2, vec![2])]];
    forbidden_from(ReadCommitted, Name::GSingle, &history);
}

#[test]
fn a_read_that_is_not_repeatable_is_allowed_at_read_committed() {
    let history = concurrent(&[&[Append(1, 1)], &[Read(1, vec![]), Read(1, vec![1])]]);
    forbidden_from(RepeatableRead, Name::GSingle, &history);
    // Not even there does a later statement see an older state.
    let history = concurrent(&[&[Append(1, 1)], &[Read(1, vec![1]), Read(1, vec![])]]);
    assert_eq!(at(ReadCommitted, &history), [Name::GSingle]);
}

#[test]
fn a_lost_update_is_allowed_at_read_committed() {
    let mut history = concurrent(&[&[Get(1, None), Write(1, 1)], &[Get(1, None), Write(1, 2)]]);
    // The second one was begun after the first one had read.
    last(&mut history, &[Get(1, Some(2))]);
    assert_eq!(at(ReadCommitted, &history), []);
    let mut history = concurrent(&[&[Read(1, vec![]), Append(1, 1)], &[Read(1, vec![]), Append(1, 2)]]);
    last(&mut history, &[Read(1, vec![1, 2])]);
    forbidden_from(RepeatableRead, Name::LostUpdate, &history);
    assert_eq!(check(&history).allowed.into_keys().collect::<Vec<_>>(), [(Name::LostUpdate, ReadCommitted)]);
}

#[test]
fn write_skew_is_forbidden_at_serializable_only() {
    let mut history = concurrent(&[
        &[Read(1, vec![]), Read(2, vec![]), Append(1, 1)],
        &[Read(1, vec![]), Read(2, vec![]), Append(2, 2)],
    ]);
    last(&mut history, &[Read(1, vec![1]), Read(2, vec![2])]);
    forbidden_from(Serializable, Name::G2Item, &history);
    // A serializable transaction is not protected from one that is not.
    history[0].level = RepeatableRead;
    history[1].level = Serializable;
    assert!(check(&history).forbidden.is_empty());
    assert_eq!(
        check(&history).allowed.into_keys().collect::<Vec<_>>(),
        [(Name::G2Item, ReadCommitted.max(RepeatableRead))]
    );
}

#[test]
fn a_long_fork_is_forbidden_with_snapshots() {
    let mut history = concurrent(&[
        &[Append(1, 1)],
        &[Append(2, 2)],
        &[Read(1, vec![1]), Read(2, vec![])],
        &[Read(1, vec![]), Read(2, vec![2])],
    ]);
    forbidden_from(RepeatableRead, Name::GNonadjacent, &history);
    // No moments explain this order of the reads, at any level.
    history[3].statements.reverse();
    forbidden_from(ReadCommitted, Name::GNonadjacent, &history);
}

#[test]
fn a_stale_read_is_found_by_real_time_and_by_session() {
    let mut history = concurrent(&[&[Append(1, 1)], &[Read(1, vec![])], &[Read(1, vec![1])]]);
    assert_eq!(at(ReadCommitted, &history), []);
    history[1].begun = history[0].ended + 1;
    history[1].ended = history[1].begun + 1;
    forbidden_from(ReadCommitted, Name::GSingle, &history);
    assert!(check(&history).forbidden.iter().all(|anomaly| anomaly.in_real_time));
    // A pipelined read of the session that has appended, before it has the answer.
    let mut history = concurrent(&[&[Append(1, 1)], &[Read(1, vec![])], &[Read(1, vec![1])]]);
    history[1].session = history[0].session;
    forbidden_from(ReadCommitted, Name::GSingle, &history);
}

#[test]
fn reads_of_registers_never_go_back() {
    let mut history = concurrent(&[&[Write(1, 1)], &[Write(1, 2)], &[Get(1, Some(2))], &[Get(1, Some(1))]]);
    assert_eq!(at(Serializable, &history), []);
    for (transaction, time) in history.iter_mut().zip([10, 20, 30, 40]) {
        (transaction.begun, transaction.ended) = (time, time + 1);
    }
    assert!(at(ReadCommitted, &history).contains(&Name::CyclicVersions));
    // A read of the state before all writes, after one.
    let mut history = concurrent(&[&[Write(1, 1)], &[Get(1, None)]]);
    (history[1].begun, history[1].ended) = (2000, 2001);
    forbidden_from(ReadCommitted, Name::GSingle, &history);
}

#[test]
fn serializable_is_not_strict() {
    // The third one did not see the first one, which was still open, and whose order is before the second one.
    let mut history =
        concurrent(&[&[Read(1, vec![]), Append(2, 1)], &[Append(1, 2)], &[Read(2, vec![]), Read(3, vec![])]]);
    last(&mut history, &[Read(1, vec![2]), Read(2, vec![1])]);
    history[1].ended = 20;
    (history[2].begun, history[2].ended) = (30, 40);
    assert_eq!(at(Serializable, &history), []);
    // If it has seen the second one, no serial order explains the three.
    history[2].statements[1] = vec![Read(1, vec![2])];
    forbidden_from(Serializable, Name::G2Item, &history);
}

#[test]
fn a_transaction_without_an_answer_counts_if_its_values_are_seen() {
    let mut history = concurrent(&[&[Append(1, 1), Append(2, 2)]]);
    history[0].outcome = Outcome::Unknown;
    last(&mut history, &[Read(1, vec![1]), Read(2, vec![2])]);
    assert_eq!(at(ReadCommitted, &history), []);
    assert_eq!(check(&history).seen_without_answer, 1);
    // A half of it is a read between two writes.
    history[1].statements = vec![vec![Read(1, vec![1]), Read(2, vec![])]];
    forbidden_from(ReadCommitted, Name::GSingle, &history);
}

#[test]
fn the_story_of_a_cycle_names_transactions_and_reasons() {
    let history = concurrent(&[&[Append(1, 1), Read(2, vec![2])], &[Append(2, 2), Read(1, vec![1])]]);
    let found = check(&history).forbidden;
    let story = &found[0].story;
    for part in [
        "T0 (session 1, read committed",
        "append 1 to list 1",
        "before T1 (wr)",
        "T1 wrote 2 of 2, which T0 read",
    ] {
        assert!(story.contains(part), "{part} is not in {story}");
    }
    assert_eq!(found[0].breaks, ReadCommitted);
}

#[test]
fn a_statement_sees_no_batch_before_its_commit() {
    // The third one reads in one statement, after the first one of its batch, and before the second one has committed.
    let mut history = concurrent(&[
        &[Append(1, 1)],
        &[Append(2, 2)],
        &[Read(1, vec![1]), Append(3, 3)],
        &[Read(1, vec![]), Read(2, vec![2])],
    ]);
    history[2].statements[0].push(Read(2, vec![]));
    history[3].statements = vec![vec![Read(1, vec![]), Read(2, vec![2])]];
    forbidden_from(ReadCommitted, Name::GNonadjacent, &history);
}
