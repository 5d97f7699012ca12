//! Whether commits take longer than the statements of a batch, so that several lanes are faster than one. No I/O.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::limits;

/// How long the lanes of a pool execute a batch, and how long they commit it, in microseconds, averaged over the last batches.
#[derive(Debug, Default)]
pub struct Pace {
    executing: AtomicU64,
    committing: AtomicU64,
}

/// The last batch has one part in so many.
const WEIGHT: u64 = 8;

impl Pace {
    /// A batch is committed.
    pub fn note(&self, executing: Duration, committing: Duration) {
        for (average, time) in [(&self.executing, executing), (&self.committing, committing)] {
            let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            let before = average.load(Ordering::Relaxed);
            // Lanes may write at the same time. One of their batches is then not counted.
            average.store(before - before / WEIGHT + time / WEIGHT, Ordering::Relaxed);
        }
    }

    /// The number of statements in a lane from which others go to another lane. While one lane waits for the disk, another one can
    /// execute. If commits are fast, fewer and larger batches cost less, and more lanes would make batches so small that their
    /// statements take less time than even a fast commit.
    pub fn lane_full(&self) -> usize {
        let executing = self.executing.load(Ordering::Relaxed);
        let slow = executing.max(limits::SLOW_COMMIT_US);
        if self.committing.load(Ordering::Relaxed) > slow {
            limits::LANE_FULL_SLOW_COMMITS
        } else {
            limits::LANE_FULL
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_spread_while_commits_take_longer_than_batches() {
        let (short, long) = (Duration::from_micros(300), Duration::from_millis(3));
        let pace = Pace::default();
        assert_eq!(pace.lane_full(), limits::LANE_FULL);
        for _ in 0..20 {
            pace.note(short / 3, short);
        }
        assert_eq!(pace.lane_full(), limits::LANE_FULL, "a fast commit of a small batch");
        for _ in 0..20 {
            pace.note(short, long);
        }
        assert_eq!(pace.lane_full(), limits::LANE_FULL_SLOW_COMMITS);
        pace.note(long, long);
        assert_eq!(pace.lane_full(), limits::LANE_FULL_SLOW_COMMITS, "one batch among others");
        for _ in 0..30 {
            pace.note(long, short);
        }
        assert_eq!(pace.lane_full(), limits::LANE_FULL);
    }
}
