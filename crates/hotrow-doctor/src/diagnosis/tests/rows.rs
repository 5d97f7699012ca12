//! How a row is named: by versions that were read, by its page, by texts.

use super::world::{TABLE, crowd, recording, seen, session, transaction, tuple, update, waiting};
use crate::diagnosis::diagnose;
use crate::diagnosis::findings::Situation;
use crate::diagnosis::rows::RowWaits;
use crate::recording::{Recording, Table};
use crate::sample::{Sample, Session};

const UPDATE: &str = "ExclusiveLock";

fn names(recording: &Recording) -> Vec<String> {
    let name =
        |(column, value): &(String, Option<String>)| format!("{column}={}", value.as_deref().unwrap_or("?"));
    let row = |row: &crate::diagnosis::rows::HotRow| row.key.iter().map(name).collect::<Vec<_>>().join(",");
    RowWaits::of(recording).rows.iter().map(row).collect()
}

fn crowds(count: usize) -> Vec<Sample> {
    let holder = |number| Session { xact_us: Some(i64::try_from(number).unwrap()), ..session(1, "active") };
    (0..count).map(|number| crowd(holder(number), 107, UPDATE)).collect()
}

#[test]
fn a_version_with_waiting_sessions_names_the_row() {
    let mut samples = crowds(2);
    samples[1].rows = vec![seen(107, "899", 4, "7", "pen"), seen(108, "1", 0, "8", "ink")];
    let waits = RowWaits::of(&recording(samples));
    assert_eq!((waits.waiting, waits.rows.len(), waits.rows[0].share), (4.0, 1, 1.0));
    assert_eq!((waits.rows[0].page, waits.rows[0].is_known()), (1, true));
}

#[test]
fn the_key_is_the_one_by_which_statements_find_the_row() {
    let mut samples = crowds(1);
    samples[0].rows = vec![seen(107, "899", 4, "7", "pen")];
    let mut recording = recording(samples);
    assert_eq!(names(&recording), ["id=7"]);
    recording.statements = vec![update("name")];
    assert_eq!(names(&recording), ["name=pen"]);
    recording.statements[0].verdict = None;
    assert_eq!(names(&recording), ["name=pen"], "by the words of the text");
}

#[test]
fn if_no_version_was_seen_the_row_whose_writer_changes_is_the_hot_one() {
    let mut samples = crowds(3);
    for (place, sample) in samples.iter_mut().enumerate() {
        sample.rows = vec![
            seen(101, "1", 0, "1", "cup"),
            seen(107, &format!("{}", 800 + place), 0, "7", "pen"),
            seen(108, "1", 0, "8", "ink"),
        ];
    }
    assert_eq!(names(&recording(samples)), ["id=7"]);
}

#[test]
fn constants_in_texts_name_the_row_of_each_session() {
    let mut samples = crowds(1);
    for (session, id) in samples[0].sessions.iter_mut().skip(1).zip(["7", "7", "7", "8"]) {
        session.values = vec![id.into()];
    }
    samples[0].rows = vec![seen(107, "899", 4, "7", "pen")];
    let recording = recording(samples);
    assert_eq!(names(&recording), ["id=7", "id=8"]);
    assert_eq!(RowWaits::of(&recording).rows[0].share, 0.75);
}

#[test]
fn rows_that_cannot_be_read_are_told_apart_by_their_holders() {
    let mut samples = crowds(3);
    let one = diagnose(&recording(samples.clone()), true).findings.remove(0);
    for (number, sample) in samples.iter_mut().enumerate() {
        let xact_us = Some(i64::try_from(number).unwrap());
        let other = crowd(Session { xact_us, ..session(11, "active") }, 108, UPDATE);
        sample.sessions.extend(other.sessions);
        for mut lock in other.locks {
            lock.transaction = lock.transaction.map(|_| "901".into());
            sample.locks.push(lock);
        }
    }
    let several = diagnose(&recording(samples), true).findings.remove(0);
    assert_eq!((one.kind, several.kind), (Situation::HotRow, Situation::RowLocks));
    assert!(one.text.contains("a row of item on page 1"), "{}", one.text);
}

/// It was woken up and still has the lock of an older version of the row.
#[test]
fn the_next_session_for_a_row_is_not_a_second_holder() {
    let mut samples = crowds(3);
    for (number, sample) in samples.iter_mut().enumerate() {
        let xact_us = Some(i64::try_from(number).unwrap());
        sample.sessions.extend([Session { xact_us, ..session(30, "active") }, waiting(31, "tuple")]);
        sample.locks.extend([tuple(30, 109, UPDATE, true), tuple(31, 109, UPDATE, false)]);
    }
    assert_eq!(diagnose(&recording(samples), true).findings[0].kind, Situation::HotRow);
}

#[test]
fn a_row_that_cannot_be_read_is_named_by_its_page() {
    let mut recording = recording(crowds(1));
    recording.tables[0].readable = false;
    let waits = RowWaits::of(&recording);
    assert_eq!((waits.rows[0].page, waits.rows[0].is_known()), (1, false));
    assert_eq!(waits.unread.iter().map(Table::full_name).collect::<Vec<_>>(), ["item"]);
}

/// After a session has found the row changed, it waits for the next transaction without a lock of the version.
#[test]
fn sessions_that_wait_for_a_transaction_wait_for_the_row_of_their_statement() {
    let mut samples = crowds(1);
    samples[0].rows = vec![seen(107, "899", 4, "7", "pen")];
    for pid in 10..14 {
        samples[0].sessions.push(waiting(pid, "transactionid"));
        samples[0].locks.push(transaction(Some(pid), "900", false));
    }
    let mut other = waiting(20, "transactionid");
    other.statement = Some(1);
    samples[0].sessions.push(other);
    samples[0].locks.push(transaction(Some(20), "901", false));
    let waits = RowWaits::of(&recording(samples));
    assert_eq!((waits.waiting, waits.rows[0].waiting, waits.rowless), (9.0, 8.0, 1.0));
    assert_eq!(waits.tables[&TABLE], 8.0);
}
