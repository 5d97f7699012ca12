//! How long what comes to a lane now would have to wait, by how fast the last batches went; never asks a clock.

use std::time::Duration;

use crate::limits;

/// How many batches back the past counts for a third.
const MEMORY_BATCHES: f64 = 6.0;

/// A unit of a slow batch is slow if it takes more than one part in so many of the bound on average.
const SLOW_SHARE: u32 = 10;

/// A lane's pace while more waits than a batch takes. Other batches say nothing of it: a single unit pays for a whole
/// commit, and a full batch would have cost hardly more. Time and units are added up, each forgotten at the same rate: so
/// a small batch that was held up counts for its time, and not as if all the others were like it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    seconds: f64,
    units: f64,
}

impl Default for Pace {
    /// As if some full batches had cost nothing, so that the first batches, which plan and warm up, turn nobody away.
    fn default() -> Self {
        Pace { seconds: 0.0, units: MEMORY_BATCHES * limits::BATCH_UNITS_MAX as f64 }
    }
}

impl Pace {
    /// A batch of so many units, behind which others had to wait, has taken so long since the one before it, or since it
    /// was written.
    pub fn done(&mut self, units: usize, took: Duration) {
        let kept = 1.0 - 1.0 / MEMORY_BATCHES;
        self.seconds = self.seconds * kept + took.as_secs_f64();
        self.units = self.units * kept + units.max(1) as f64;
    }

    /// Whether the statements of a batch of so many units, whose commit is not counted, are better off elsewhere: the batch
    /// was slow, and not only because it was large.
    pub fn is_too_slow(units: usize, took: Duration) -> bool {
        let limit = Duration::from_millis(limits::LANE_SLOW_MS);
        took > limit && took / u32::try_from(units.max(1)).unwrap_or(u32::MAX) > limit / SLOW_SHARE
    }

    /// How long a unit would wait behind so many.
    pub fn wait(&self, units: usize) -> Duration {
        Duration::try_from_secs_f64(self.seconds / self.units * units as f64).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn nothing_is_known_in_the_beginning_and_nobody_is_turned_away() {
        assert_eq!(Pace::default().wait(10_000), Duration::ZERO);
    }

    #[test]
    fn it_follows_what_batches_take() {
        let mut pace = Pace::default();
        (0..100).for_each(|_| pace.done(10, 10 * MS));
        let wait = pace.wait(5);
        assert!(wait > 4 * MS && wait < 6 * MS, "{wait:?}");
        (0..100).for_each(|_| pace.done(100, 10 * MS));
        let wait = pace.wait(1_000);
        assert!(wait > 95 * MS && wait < 115 * MS, "{wait:?}");
    }

    #[test]
    fn the_first_batch_is_slow_and_nobody_is_turned_away_for_it() {
        let mut pace = Pace::default();
        pace.done(256, 500 * MS);
        assert!(pace.wait(5_000) < Duration::from_secs(2));
    }

    #[test]
    fn a_small_batch_that_was_held_up_is_not_the_pace_of_large_ones() {
        let mut pace = Pace::default();
        (0..100).for_each(|_| pace.done(256, 2 * MS));
        pace.done(1, 1_000 * MS);
        let wait = pace.wait(5_000);
        assert!(wait < Duration::from_secs(5), "{wait:?}");
        (0..100).for_each(|_| pace.done(1, 100 * MS));
        assert!(pace.wait(200) > Duration::from_secs(19), "but it is if all are like it");
    }

    #[test]
    fn a_batch_is_too_slow_if_it_takes_long_for_its_size() {
        let limit = Duration::from_millis(limits::LANE_SLOW_MS);
        assert!(!Pace::is_too_slow(1, limit));
        assert!(Pace::is_too_slow(1, limit + MS));
        assert!(Pace::is_too_slow(5, limit + MS), "each takes 20 ms");
        assert!(!Pace::is_too_slow(256, 2 * limit), "it is large");
        assert!(Pace::is_too_slow(256, 256 * limit));
    }

    #[test]
    fn one_slow_batch_is_not_the_pace() {
        let mut pace = Pace::default();
        (0..10).for_each(|_| pace.done(100, MS));
        pace.done(1, 100 * MS);
        assert!(pace.wait(100) < Duration::from_secs(2));
        (0..60).for_each(|_| pace.done(100, MS));
        assert!(pace.wait(100) < 2 * MS);
    }
}
