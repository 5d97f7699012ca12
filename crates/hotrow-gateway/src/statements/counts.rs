//! Counts of the outcomes of a statement's runs, by shape.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hotrow_core::session::RunOutcome;

use crate::metrics::METRICS;

/// One count for each outcome.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; 15]);

impl Counts {
    pub fn add(&self, outcome: RunOutcome) {
        self.0[outcome as usize].fetch_add(1, Relaxed);
        if !matches!(outcome, RunOutcome::Packed | RunOutcome::Merged) {
            METRICS.outcomes[outcome as usize].inc(); // lanes count what they pack in batches
        }
    }

    pub fn of(&self, outcome: RunOutcome) -> u64 {
        self.0[outcome as usize].load(Relaxed)
    }

    /// All runs that were passed through, except for those that a lane gave back.
    pub fn passed(&self) -> u64 {
        use RunOutcome::{
            LargerUnit, NoCredit, NotPackable, OwnTransaction, Pinned, Shadowed, SwitchedOff, Undecided,
        };
        [NotPackable, OwnTransaction, Pinned, SwitchedOff, Shadowed, NoCredit, LargerUnit, Undecided]
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
