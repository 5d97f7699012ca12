//! Counts of the outcomes of a statement's runs, by shape.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The outcome of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Run in a batch.
    Packed,
    /// Run as part of a merged call.
    Merged,
    /// Passed through: it is not packable.
    NotPackable,
    /// Passed through: its client was in a transaction.
    OwnTransaction,
    /// Passed through: state is left on the session's connection.
    Pinned,
    /// Passed through: packing is switched off, by the client or for its pool.
    SwitchedOff,
    /// Passed through: it fails too often in lanes, or takes too long there.
    NoCredit,
    /// Passed through: another part of its unit is not packable.
    LargerUnit,
    /// Run alone: a lane gave it back.
    GivenBack,
    /// Failed in a lane.
    Failed,
    /// Blocked by an outsider's lock in a lane.
    Blocked,
    /// Too slow for a lane.
    TooSlow,
}

/// One count for each outcome.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; 12]);

impl Counts {
    /// Adds one.
    pub fn add(&self, outcome: RunOutcome) {
        self.0[outcome as usize].fetch_add(1, Relaxed);
    }

    /// The count.
    pub fn of(&self, outcome: RunOutcome) -> u64 {
        self.0[outcome as usize].load(Relaxed)
    }

    /// All runs that were passed through, except for those that a lane gave back.
    pub fn passed(&self) -> u64 {
        use RunOutcome::{LargerUnit, NoCredit, NotPackable, OwnTransaction, Pinned, SwitchedOff};
        [NotPackable, OwnTransaction, Pinned, SwitchedOff, NoCredit, LargerUnit]
            .map(|one| self.of(one))
            .iter()
            .sum()
    }

    /// All runs.
    pub fn total(&self) -> u64 {
        self.passed()
            + [RunOutcome::Packed, RunOutcome::Merged, RunOutcome::GivenBack]
                .map(|one| self.of(one))
                .iter()
                .sum::<u64>()
    }
}
