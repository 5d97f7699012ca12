//! The diagnosis of a recording: what the sessions wait for, why, and what to do. No I/O and no clock.

pub mod blocking;
mod condition;
pub mod findings;
pub mod hold;
pub mod load;
pub mod lock_waits;
pub mod parts;
pub mod prediction;
pub mod rows;
pub mod side;
pub mod statements;
pub mod summary;
pub mod throughput;
pub mod workload;

#[cfg(test)]
mod tests;

use blocking::Blocking;
use findings::Finding;
use hold::Hold;
use load::Load;
use lock_waits::LockWaits;
use prediction::Prediction;
use rows::RowWaits;
use statements::StatementLoads;
use throughput::Throughput;
use workload::Workload;

use crate::recording::Recording;

/// What is known about a recording.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The sessions.
    pub load: Load,
    /// The rows that they wait for.
    pub rows: RowWaits,
    /// The sessions that block others.
    pub blocking: Blocking,
    pub statements: StatementLoads,
    /// Commits, flushes and WAL.
    pub throughput: Throughput,
    /// The lock of the hottest row.
    pub hold: Option<Hold>,
    /// What is wrong, the most important first. Never empty.
    pub findings: Vec<Finding>,
    /// Long waits for locks.
    pub lock_waits: Vec<LockWaits>,
    /// The shape of the load.
    pub workload: Workload,
    /// What the gateway would give.
    pub prediction: Prediction,
}

/// Diagnoses a recording. Values of keys and texts appear in it only if `show_keys` is set.
pub fn diagnose(recording: &Recording, show_keys: bool) -> Diagnosis {
    let load = Load::of(recording);
    let rows = RowWaits::of(recording);
    let blocking = Blocking::of(recording);
    let statements = StatementLoads::of(recording);
    let throughput = Throughput::of(recording);
    let hold = rows.rows.first().and_then(|row| Hold::of(row, &rows, &blocking, &throughput));
    let known = workload::Known {
        load: &load,
        rows: &rows,
        blocking: &blocking,
        statements: &statements,
        throughput: &throughput,
    };
    let workload = Workload::of(recording, &known);
    let parts = parts::Parts {
        recording,
        load: &load,
        rows: &rows,
        blocking: &blocking,
        statements: &statements,
        throughput: &throughput,
        workload: &workload,
        hold: hold.as_ref(),
        show_keys,
    };
    let mut findings = parts.main();
    findings.extend(side::findings(&parts));
    let lock_waits = LockWaits::of(recording);
    findings.extend(lock_waits::findings(&lock_waits, throughput.seconds));
    let prediction = parts.prediction(findings[0].kind);
    Diagnosis {
        load,
        rows,
        blocking,
        statements,
        throughput,
        hold,
        findings,
        lock_waits,
        workload,
        prediction,
    }
}
