//! The pace of a lane: how long its batches take, and whether a new unit would wait too long.

use std::time::Duration;

use super::{Lane, Times, Unit};
use crate::limits;

impl<P> Lane<P> {
    /// Sets the longest estimated wait of a new unit (`queue_wait_ms`).
    pub fn set_queue_wait(&mut self, most: Duration) {
        self.queue_wait = most;
    }

    /// The estimated time for one unit.
    pub fn time_per_unit(&self) -> Duration {
        self.pace.wait(1)
    }

    /// The earliest batch, which ends next, has taken this long.
    pub(super) fn took(&mut self, times: Times) {
        if let Some(commit) = times.commit {
            self.hold.commit_took(commit);
        }
        let Some(batch) = self.under_way.front_mut().filter(|batch| batch.failure.is_none()) else { return };
        batch.is_too_slow = Pace::is_too_slow(batch.units.len(), times.execution);
        if batch.others_wait {
            self.pace.done(batch.units.len(), times.execution + times.commit.unwrap_or_default());
        }
    }

    /// Whether there is room for one more unit, and its estimated wait is not too long. The estimate does not apply to
    /// a call that has already waited: a refusal would break its wait.
    pub(super) fn admits(&self, unit: &Unit<P>) -> bool {
        let bytes = self.queue.bytes() + self.blocked.bytes() + unit.claimed.bytes;
        self.waiting() < limits::LANE_QUEUE_UNITS_MAX
            && bytes <= limits::LANE_QUEUE_BYTES_MAX
            && (unit.has_waited || self.pace.wait(self.queue.len()) <= self.queue_wait)
    }
}

/// Number of batches after which a past batch counts for a third.
const MEMORY_BATCHES: f64 = 6.0;

/// A unit of a slow batch is slow if its average time exceeds the limit divided by this number.
const SLOW_SHARE: u32 = 10;

/// The pace of a lane while more units wait than a batch takes. Other batches are not representative: a
/// single unit pays for a whole commit, and a full batch would have cost hardly more. Time and units are
/// summed and decay at the same rate. A small batch that was delayed therefore counts for its time only, and
/// not as if all batches were like it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    seconds: f64,
    units: f64,
}

impl Default for Pace {
    /// Starts as if some full batches had taken no time. The first batches, which plan and warm up, therefore
    /// cause no rejections.
    fn default() -> Self {
        Pace { seconds: 0.0, units: MEMORY_BATCHES * limits::BATCH_UNITS_MAX as f64 }
    }
}

impl Pace {
    /// Records a batch of `units` units, after which other units had to wait. `took` is the time since the
    /// previous batch, or since this batch was written.
    fn done(&mut self, units: usize, took: Duration) {
        let kept = 1.0 - 1.0 / MEMORY_BATCHES;
        self.seconds = self.seconds * kept + took.as_secs_f64();
        self.units = self.units * kept + units.max(1) as f64;
    }

    /// Whether the statements of a batch of `units` units should leave the lane. `took` does not include the
    /// commit. The batch must be slow for its size.
    fn is_too_slow(units: usize, took: Duration) -> bool {
        let limit = Duration::from_millis(limits::LANE_SLOW_MS);
        took > limit && took / u32::try_from(units.max(1)).unwrap_or(u32::MAX) > limit / SLOW_SHARE
    }

    /// Estimated wait behind `units` units.
    fn wait(&self, units: usize) -> Duration {
        Duration::try_from_secs_f64(self.seconds / self.units * units as f64).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn without_past_batches_the_estimate_is_zero() {
        assert_eq!(Pace::default().wait(10_000), Duration::ZERO);
    }

    #[test]
    fn the_estimate_follows_the_duration_of_batches() {
        let mut pace = Pace::default();
        (0..100).for_each(|_| pace.done(10, 10 * MS));
        let wait = pace.wait(5);
        assert!(wait > 4 * MS && wait < 6 * MS, "{wait:?}");
        (0..100).for_each(|_| pace.done(100, 10 * MS));
        let wait = pace.wait(1_000);
        assert!(wait > 95 * MS && wait < 115 * MS, "{wait:?}");
    }

    #[test]
    fn a_slow_first_batch_causes_no_rejections() {
        let mut pace = Pace::default();
        pace.done(256, 500 * MS);
        assert!(pace.wait(5_000) < Duration::from_secs(2));
    }

    #[test]
    fn a_small_delayed_batch_does_not_set_the_pace_of_large_ones() {
        let mut pace = Pace::default();
        (0..100).for_each(|_| pace.done(256, 2 * MS));
        pace.done(1, 1_000 * MS);
        let wait = pace.wait(5_000);
        assert!(wait < Duration::from_secs(5), "{wait:?}");
        (0..100).for_each(|_| pace.done(1, 100 * MS));
        assert!(
            pace.wait(200) > Duration::from_secs(19),
            "if all batches are so slow, the pace follows them"
        );
    }

    #[test]
    fn a_batch_is_too_slow_only_for_its_size() {
        let limit = Duration::from_millis(limits::LANE_SLOW_MS);
        assert!(!Pace::is_too_slow(1, limit));
        assert!(Pace::is_too_slow(1, limit + MS));
        assert!(Pace::is_too_slow(5, limit + MS), "each takes 20 ms");
        assert!(!Pace::is_too_slow(256, 2 * limit), "the batch is large");
        assert!(Pace::is_too_slow(256, 256 * limit));
    }

    #[test]
    fn one_slow_batch_does_not_set_the_pace() {
        let mut pace = Pace::default();
        (0..10).for_each(|_| pace.done(100, MS));
        pace.done(1, 100 * MS);
        assert!(pace.wait(100) < Duration::from_secs(2));
        (0..60).for_each(|_| pace.done(100, MS));
        assert!(pace.wait(100) < 2 * MS);
    }
}
