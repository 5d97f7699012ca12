//! What was found about the clients of one database and user in shadow mode, since the gateway's start.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hotrow_lane::shadow::ShadowCounts;

use super::Counter;

/// The numbers of one database and user.
#[derive(Debug, Default)]
pub struct ShadowTraffic {
    /// Statements that would have been packed.
    pub would_pack: Counter,
    /// Statements that would have been passed through.
    pub would_pass: Counter,
    /// Writing units that would have been packed.
    pub units: Counter,
    /// Units among them that began while another unit worked on one of their rows.
    pub met: Counter,
    /// Units among them in simulated batches.
    pub batched: Counter,
    /// Simulated batches.
    pub batches: Counter,
    /// When the first statement came.
    first: OnceLock<Instant>,
    /// Milliseconds from the first statement to the last one.
    watched_ms: AtomicU64,
}

impl ShadowTraffic {
    /// This number of statements has come.
    pub fn add(&self, count: u64, would_pack: bool, now: Instant) {
        let statements = if would_pack { &self.would_pack } else { &self.would_pass };
        statements.add(count);
        let since = now.saturating_duration_since(*self.first.get_or_init(|| now));
        self.watched_ms.store(u64::try_from(since.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }

    /// The simulation has found this about units.
    pub fn found(&self, counts: ShadowCounts) {
        self.met.add(counts.met);
        self.batched.add(counts.batched);
        self.batches.add(counts.batches);
    }

    /// All statements.
    pub fn statements(&self) -> u64 {
        self.would_pack.get() + self.would_pass.get()
    }

    /// The time from the first statement to the last one.
    pub fn watched(&self) -> Duration {
        Duration::from_millis(self.watched_ms.load(Relaxed))
    }
}
