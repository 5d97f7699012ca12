//! How long what comes to a lane now would have to wait, by how fast the last batches went; never asks a clock.

use std::time::Duration;

/// How many batches back the past counts for half.
const HALF_LIFE_BATCHES: u32 = 6;

/// A lane's pace while more waits than a batch takes. Other batches say nothing of it: a single unit pays for a whole
/// commit, and a full batch would have cost hardly more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Nanoseconds for one unit, as a mean that forgets; it starts at nothing, so that the first batches, which plan
    /// and warm up, turn nobody away.
    per_unit: u64,
}

impl Pace {
    /// A batch of so many units, behind which others had to wait, has taken so long since the one before it, or since it
    /// was written.
    pub fn done(&mut self, units: usize, took: Duration) {
        let now = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / (units as u64).max(1);
        self.per_unit =
            self.per_unit - self.per_unit / u64::from(HALF_LIFE_BATCHES) + now / u64::from(HALF_LIFE_BATCHES);
    }

    /// How long a unit would wait behind so many.
    pub fn wait(&self, units: usize) -> Duration {
        Duration::from_nanos(self.per_unit.saturating_mul(units as u64))
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
    fn one_slow_batch_is_not_the_pace() {
        let mut pace = Pace::default();
        (0..10).for_each(|_| pace.done(100, MS));
        pace.done(1, 100 * MS);
        assert!(pace.wait(100) < Duration::from_secs(2));
        (0..60).for_each(|_| pace.done(100, MS));
        assert!(pace.wait(100) < 2 * MS);
    }
}
