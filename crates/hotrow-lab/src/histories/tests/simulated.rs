//! Histories of a simulated database: no anomaly is found in correct ones, and each planted fault is found.

use super::database::{Database, Fault};
use crate::histories::check::{Findings, Name, check};
use crate::histories::history::Level;

const RUNS: u64 = 60;
/// A fault is found in most runs.
const FAULTY_RUNS: u64 = 12;
const STEPS: usize = 300;

fn runs(fault: Fault, levels: &[Level], runs: u64) -> Vec<Findings> {
    (0..runs).map(|seed| check(&Database::run(seed, fault, levels, STEPS))).collect()
}

#[track_caller]
fn none_is_forbidden(levels: &[Level]) -> Vec<Findings> {
    let all = runs(Fault::None, levels, RUNS);
    for (findings, seed) in all.iter().zip(0..) {
        let stories: Vec<_> =
            findings.forbidden.iter().map(|one| format!("{}: {}", one.name, one.story)).collect();
        assert!(stories.is_empty(), "seed {seed}: {}", stories.join("\n"));
    }
    all
}

fn allows(all: &[Findings], name: Name) -> bool {
    all.iter().any(|findings| findings.allowed.keys().any(|(allowed, _)| *allowed == name))
}

#[test]
fn a_serial_database_has_no_anomaly() {
    let all = none_is_forbidden(&[Level::Serializable]);
    assert!(all.iter().all(|findings| findings.allowed.is_empty()));
    assert!(all.iter().map(|findings| findings.orders).sum::<usize>() > 4_000);
}

#[test]
fn a_database_with_snapshots_has_write_skew_only() {
    let all = none_is_forbidden(&[Level::RepeatableRead]);
    assert!(allows(&all, Name::G2Item));
    assert!(!allows(&all, Name::LostUpdate) && !allows(&all, Name::GSingle));
}

#[test]
fn a_database_at_read_committed_has_read_skew() {
    let all = none_is_forbidden(&[Level::ReadCommitted]);
    assert!(allows(&all, Name::GSingle) && allows(&all, Name::LostUpdate) && allows(&all, Name::G2Item));
}

#[test]
fn levels_can_be_mixed() {
    none_is_forbidden(&Level::ALL);
}

#[test]
fn planted_faults_are_found_at_every_level() {
    for (fault, name) in [
        (Fault::StaleRead, Name::GSingle),
        (Fault::ReorderedBatch, Name::IncompatibleOrder),
        (Fault::KeptRollback, Name::G1a),
        (Fault::TornCommit, Name::LostAppend),
        (Fault::EarlyAnswer, Name::GSingle),
    ] {
        for level in Level::ALL {
            let found = runs(fault, &[level], FAULTY_RUNS);
            let with = found.iter().filter(|run| run.forbidden.iter().any(|anomaly| anomaly.name == name));
            assert!(with.count() > 3, "{fault:?} at {level} is not found as {name}");
        }
    }
}

#[test]
fn faults_of_open_transactions_are_found() {
    for (fault, name, level) in [
        (Fault::LostUpdate, Name::LostAppend, Level::RepeatableRead),
        (Fault::DirtyRead, Name::G1a, Level::ReadCommitted),
        (Fault::DirtyRead, Name::G1c, Level::RepeatableRead),
        (Fault::DirtyRead, Name::G1b, Level::RepeatableRead),
    ] {
        let found = runs(fault, &[level], RUNS);
        let with = found.iter().filter(|run| run.forbidden.iter().any(|anomaly| anomaly.name == name));
        assert!(with.count() > 1, "{fault:?} at {level} is not found as {name}");
    }
}
