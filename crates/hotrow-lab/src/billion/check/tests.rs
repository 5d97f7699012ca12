//! Plants faults in the rows and answers of a small round, and expects that each is found.

use super::{Found, Record, Rows, check};
use crate::billion::answers::Outcome::{self, Done, NotRun, Refused, Unknown};
use crate::billion::work::Kind::{
    self, Call, Increment, Insert, Own, Read, Reserve, RolledBack, Transaction, Update,
};

fn record(kind: Kind, key: u16, outcome: Outcome, values: [i64; 2]) -> Record {
    Record { kind, key, outcome, values }
}

/// Two clients. Each kind has an acknowledged request. Unknown are an update and an increment that were made, and an insert and a
/// reservation that were not.
fn world() -> (Vec<Vec<Record>>, Rows) {
    let first = vec![
        record(Update, 1, Done, [1, 0]),
        record(Insert, 0, Done, [0, 0]),
        record(Own, 0, Done, [1, 0]),
        record(Read, 0, Done, [1, 0]),
        record(Increment, 2, Done, [6, 1]),
        record(Reserve, 0, Done, [1, 0]),
        record(Call, 0, Done, [0, 0]),
        record(Transaction, 1, Done, [2, 0]),
        record(Update, 1, Unknown, [0, 0]),
        record(Increment, 2, Unknown, [0, 0]),
    ];
    let second = vec![
        record(Update, 1, Done, [4, 0]),
        record(Reserve, 0, Done, [0, 0]),
        record(Reserve, 0, Refused, [0, 0]),
        record(Insert, 0, Unknown, [0, 0]),
        record(Insert, 0, NotRun, [0, 0]),
        record(Increment, 2, Done, [15, 3]),
        record(Transaction, 1, Unknown, [0, 0]),
        record(RolledBack, 1, Done, [6, 0]),
        record(Reserve, 0, Unknown, [0, 0]),
    ];
    let rows = Rows {
        counters: vec![[1, 5, 2, 7]],
        own: vec![[1, 1], [2, 0]],
        entries: vec![[1, 2]],
        pairs: vec![[1, 8], [2, 7]],
        notes: vec![[1, 7]],
        ledger: vec![[2, 1, 1, 5, 6, 6], [2, 2, 1, 10, 2, 8], [2, 3, 2, 6, 7, 15]],
        totals: vec![[2, 15, 3], [3, 0, 0]],
        requests: vec![[0, 1, 6, 1, 1], [0, 2, 2, 1, 0], [0, 2, 3, 0, 0]],
        sales: vec![[0, 2, 0]],
        reservations: vec![[0, 1, 1], [0, 2, 1]],
    };
    (vec![first, second], rows)
}

#[test]
fn unknown_outcomes_become_known() {
    let (records, rows) = world();
    let Found { statements, not_run, unknown, applied } = check(&records, &rows, true).unwrap();
    assert_eq!((not_run, unknown, applied), (1, 5, 3), "an update, an increment and a transaction were made");
    assert_eq!((statements[&Update], statements[&Transaction], statements[&Reserve]), (2, 2, 3));
}

#[test]
fn requests_without_an_answer_need_an_event() {
    let (records, rows) = world();
    let fault = check(&records, &rows, false).unwrap_err();
    assert!(fault.contains("nothing was killed"), "{fault}");
}

/// Expects that the check finds a fault in this world with a message that has these words.
fn finds(words: &str, plant: impl FnOnce(&mut Vec<Vec<Record>>, &mut Rows)) {
    let (mut records, mut rows) = world();
    plant(&mut records, &mut rows);
    let fault = check(&records, &rows, true).expect_err(words);
    assert!(fault.contains(words), "{fault:?} lacks {words:?}");
}

#[test]
fn lost_and_repeated_updates_are_found() {
    finds("an answer for counter 1 was 4", |_, rows| rows.counters[0][1] = 3);
    finds("has 7 changes", |_, rows| rows.counters[0][1] = 7);
    finds("the same value", |records, _| records[1][0].values[0] = 2);
    finds("out of order", |records, _| records[0][7].values[0] = 1);
    finds("from request 1 of client 1", |_, rows| rows.counters[0][2..].copy_from_slice(&[1, 1]));
    finds("from request 8 of client 2", |_, rows| rows.counters[0][2..].copy_from_slice(&[2, 8]));
    finds("counter 1 is missing", |_, rows| rows.counters.clear());
    finds("the own row of client 1", |_, rows| rows.own[0][1] = 2);
    finds("must read 1 to 1", |records, _| records[0][3].values[0] = 0);
}

#[test]
fn lost_repeated_and_foreign_rows_are_found() {
    finds("entry lacks request 2 of client 1", |_, rows| rows.entries.clear());
    finds("twice", |_, rows| rows.entries.push([1, 2]));
    finds("which got", |_, rows| rows.entries.push([2, 5]));
    finds("which was no Insert", |_, rows| rows.entries.push([1, 1]));
    finds("which was no Insert", |_, rows| rows.entries.push([3, 1]));
    finds("which was no Transaction", |_, rows| rows.pairs.push([2, 8]));
    finds("note lacks", |_, rows| rows.notes.clear());
    // The update of this transaction is in the counter, so its row must be there, too.
    finds("has 5 changes", |_, rows| {
        rows.pairs.pop();
        rows.counters[0][2..].copy_from_slice(&[1, 9]);
    });
}

#[test]
fn faults_of_merged_calls_are_found() {
    finds("does not follow", |_, rows| _ = rows.ledger.remove(1));
    finds("does not follow", |_, rows| rows.ledger[2][5] = 16);
    finds("its ledger ends with", |_, rows| _ = rows.ledger.pop());
    finds("differs from its request", |records, _| records[0][4].values = [15, 1]);
    finds("differs from its request", |_, rows| {
        rows.ledger[0][2..4].copy_from_slice(&[1, 10]);
        rows.ledger[1][2..4].copy_from_slice(&[1, 5]);
    });
    finds("contradicts", |_, rows| rows.sales[0] = [0, 3, 1]);
    finds("contradicts", |_, rows| rows.sales[0] = [0, 1, -1]);
    finds("twice reserved", |_, rows| rows.requests.push([0, 2, 9, 1, 0]));
    finds("contradicts", |_, rows| rows.requests.push([0, 2, 9, 1, -1]));
    finds("differs from its request", |_, rows| rows.requests[0][4] = 0);
    finds("the requests lacks", |_, rows| {
        rows.requests.remove(0);
        rows.sales[0] = [0, 1, 0];
        rows.reservations.remove(0);
    });
    finds("reservations of item 0", |_, rows| rows.reservations[0][2] = 2);
}
