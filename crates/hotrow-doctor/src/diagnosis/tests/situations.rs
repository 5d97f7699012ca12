//! Situations that a test with a server does not have: prepared transactions, slots, roles without rights.

use super::world::{TABLE, crowd, recording, seen, session, transaction, waiting};
use crate::counters::{Prepared, Slot, TableCounters};
use crate::diagnosis::diagnose;
use crate::diagnosis::findings::{Finding, Situation};
use crate::diagnosis::summary::summary;
use crate::recording::Recording;
use crate::sample::{Sample, Session};

fn main(recording: &Recording) -> Finding {
    diagnose(recording, true).findings.remove(0)
}

fn crowds(holder: impl Fn(i32) -> Session, mode: &str) -> Recording {
    let sample = |number: i32| {
        let mut sample = crowd(holder(number), 107, mode);
        sample.rows = vec![seen(107, "899", 4, "7", "pen")];
        sample
    };
    recording((0..6).map(sample))
}

fn own_transaction(number: i32, state: &str) -> Session {
    Session { xact_us: Some(9_000_000 + i64::from(number)), ..session(1, state) }
}

#[test]
fn a_crowd_and_a_stuck_session_are_told_apart_by_the_holders_transaction() {
    assert_eq!(
        main(&crowds(|number| own_transaction(number, "active"), "ExclusiveLock")).kind,
        Situation::HotRow
    );
    let stuck = main(&crowds(|_| session(1, "idle in transaction"), "ExclusiveLock"));
    assert_eq!(stuck.kind, Situation::StuckSession);
    assert!(stuck.next.contains("pg_terminate_backend(1)"), "{}", stuck.next);
    let active = main(&crowds(|_| session(1, "active"), "ExclusiveLock"));
    assert!(active.text.contains("has run a statement for 11.5 s"), "{}", active.text);
}

#[test]
fn a_lock_that_waits_for_the_client_is_said_to() {
    let finding = main(&crowds(|number| own_transaction(number, "idle in transaction"), "ExclusiveLock"));
    assert_eq!(finding.kind, Situation::HotRowInTransactions);
}

#[test]
fn waits_for_key_share_are_foreign_keys() {
    let finding = main(&crowds(|number| own_transaction(number, "active"), "AccessShareLock"));
    assert_eq!(finding.kind, Situation::ForeignKeyLocks);
}

#[test]
fn a_prepared_transaction_that_blocks_is_named() {
    let sample = |_| Sample {
        sessions: vec![waiting(2, "transactionid")],
        locks: vec![transaction(None, "900", true), transaction(Some(2), "900", false)],
        ..Sample::default()
    };
    let mut recording = recording((0..6).map(sample));
    recording.after.prepared =
        vec![Prepared { gid: "order 17".into(), transaction: "900".into(), age_s: 60.0 }];
    let finding = main(&recording);
    assert_eq!(finding.kind, Situation::StuckSession);
    assert!(finding.next.contains("rollback prepared 'order 17'"), "{}", finding.next);
}

#[test]
fn a_slot_that_keeps_dead_rows_is_named() {
    let busy = |_| Sample { sessions: vec![session(1, "active")], ..Sample::default() };
    let mut recording = recording((0..6).map(busy));
    (recording.before.at_us, recording.after.at_us) = (10_000_000, 12_500_000);
    let table = |updated, dead| TableCounters {
        oid: TABLE,
        name: "item".into(),
        updated: Some(updated),
        dead: Some(dead),
        ..TableCounters::default()
    };
    recording.before.tables = vec![table(0, 0)];
    recording.after.tables = vec![table(20_000, 19_000)];
    assert_eq!(main(&recording).kind, Situation::NothingWrong);
    let slot = |xmin_age| Slot { name: "copy".into(), xmin_age: Some(xmin_age), ..Slot::default() };
    recording.after.slots = vec![slot(50_000)];
    let finding = main(&recording);
    assert_eq!(finding.kind, Situation::LongSnapshot);
    assert!(finding.text.contains("replication slot copy"), "{}", finding.text);
    recording.after.tables = vec![table(20_000, 300)];
    assert_eq!(main(&recording).kind, Situation::NothingWrong, "the dead rows were removed");
}

#[test]
fn a_role_without_rights_is_told_which_to_get() {
    let hidden = |_| Sample { sessions: vec![Session { pid: 1, ..Session::default() }], ..Sample::default() };
    let mut recording = recording((0..3).map(hidden));
    recording.abilities.sees_sessions = false;
    let finding = main(&recording);
    assert_eq!((finding.kind, finding.next.as_str()), (Situation::Blind, r#"grant pg_monitor to "monitor""#));
}

#[test]
fn an_empty_recording_has_a_diagnosis() {
    assert_eq!(main(&Recording::default()).kind, Situation::NothingWrong);
}

#[test]
fn advice_about_the_gateway_agrees_with_what_it_would_give() {
    // Workers take rows with SKIP LOCKED, and their commits wait for the WAL.
    let flushing = |pid| Session {
        wait_type: Some("IO".into()),
        wait: Some("WALSync".into()),
        ..session(pid, "active")
    };
    let sample = |_| Sample { sessions: (1..9).map(flushing).collect(), ..Sample::default() };
    let mut queue = recording((0..6).map(sample));
    queue.statements[0].shape =
        "update item set n = 1 where id = (select id from item for update skip locked limit 1)".into();
    queue.statements[0].verdict = None;
    let diagnosis = diagnose(&queue, true);
    let kinds: Vec<Situation> = diagnosis.findings.iter().map(|finding| finding.kind).collect();
    assert!(kinds.starts_with(&[Situation::SkipLockedQueue, Situation::Flush]), "{kinds:?}");
    assert!(!diagnosis.prediction.is_help());
    for finding in &diagnosis.findings {
        assert!(!finding.next.contains("through the gateway"), "{finding:?}");
        assert!(!finding.next.is_empty(), "{finding:?}");
    }
    assert!(summary(&queue, &diagnosis)[4].contains("The gateway would not help here"));
}

#[test]
fn one_session_waits() {
    let sample = |_| Sample {
        sessions: vec![session(1, "idle in transaction"), waiting(2, "transactionid")],
        locks: vec![transaction(Some(1), "900", true), transaction(Some(2), "900", false)],
        ..Sample::default()
    };
    let finding = main(&recording((0..6).map(sample)));
    assert!(finding.text.starts_with("1 session waits for one session"), "{}", finding.text);
}
