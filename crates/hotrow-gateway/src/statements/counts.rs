//! What became of a statement's runs, counted by shape.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What can become of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Run in a batch.
    Packed,
    /// Became part of a merged call.
    Merged,
    /// Passed through: it is not packable.
    NotPackable,
    /// Passed through: its client was in a transaction of its own.
    OwnTransaction,
    /// Passed through: something is left behind on the session's connection.
    Pinned,
    /// Passed through: packing is switched off, by the client or for all of its pool.
    SwitchedOff,
    /// Passed through: it fails too often in lanes, or takes too long.
    NoCredit,
    /// Passed through: what its client sent together with it, or before, is not packable.
    LargerUnit,
    /// Run alone: a lane gave it back.
    GivenBack,
    /// Failed in a lane.
    Failed,
    /// Met an outsider's lock in a lane.
    Blocked,
    /// Took too long for a lane.
    TooSlow,
}

/// One count for each.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; 12]);

impl Counts {
    /// One more.
    pub fn add(&self, outcome: RunOutcome) {
        self.0[outcome as usize].fetch_add(1, Relaxed);
    }

    /// How many.
    pub fn of(&self, outcome: RunOutcome) -> u64 {
        self.0[outcome as usize].load(Relaxed)
    }

    /// All that were passed through, those that a lane gave back left out.
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
