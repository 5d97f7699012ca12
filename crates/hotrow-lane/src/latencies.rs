//! Counts of times by their size, in little memory, for quantiles that are exact to a fifth.

/// Buckets for each doubling.
const STEPS: u32 = 4;
/// Times below 2^5 µs share the first bucket.
const FIRST: u32 = 5;
/// The last bucket holds everything from about a minute on.
const BUCKETS: usize = 84;

/// Counts of times in microseconds.
#[derive(Clone, Debug)]
pub struct Latencies([u32; BUCKETS]);

impl Default for Latencies {
    fn default() -> Self {
        Latencies([0; BUCKETS])
    }
}

impl Latencies {
    /// Counts a time.
    pub fn record(&mut self, microseconds: u64) {
        let count = &mut self.0[bucket(microseconds)];
        *count = count.saturating_add(1);
    }

    /// Adds the counts of another one.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count = count.saturating_add(more));
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.0.iter().copied().map(u64::from).sum()
    }

    /// The time that this share of all times, from 0 to 1, does not exceed: the upper end of its bucket. `None` without
    /// times.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = (self.count() as f64 * share).ceil().max(1.0);
        let mut count = 0.0;
        let index = self.0.iter().position(|more| {
            count += f64::from(*more);
            count >= wanted
        });
        index.map(end)
    }
}

fn bucket(microseconds: u64) -> usize {
    let Some(doublings) = microseconds.checked_ilog2().and_then(|log| log.checked_sub(FIRST)) else {
        return 0;
    };
    // The two bits after the first one.
    let step = (microseconds >> (doublings + FIRST - STEPS.ilog2())) & u64::from(STEPS - 1);
    (1 + (doublings * STEPS) as usize + step as usize).min(BUCKETS - 1)
}

/// The first time that is above this bucket.
fn end(bucket: usize) -> u64 {
    let steps = bucket as u64 % u64::from(STEPS) + u64::from(STEPS);
    let doublings = bucket as u64 / u64::from(STEPS) + u64::from(FIRST - STEPS.ilog2());
    steps << doublings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_quantile_is_the_upper_end_of_its_bucket(time in 0_u64..50_000_000) {
            let mut latencies = Latencies::default();
            latencies.record(time);
            let shown = latencies.quantile(0.5).unwrap();
            prop_assert!(time < shown && (shown <= 32 || shown as f64 <= time as f64 * 1.25 + 1.0), "{time} {shown}");
        }
    }

    #[test]
    fn quantiles_of_many_times() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        for time in [100; 98].into_iter().chain([5_000, 1_000_000_000_000]) {
            latencies.record(time);
        }
        let mut twice = latencies.clone();
        twice.add(&latencies);
        for latencies in [&latencies, &twice] {
            assert_eq!(latencies.quantile(0.5), Some(112));
            assert_eq!(latencies.quantile(0.99), Some(5_120));
        }
        assert_eq!((latencies.count(), twice.count()), (100, 200));
        assert!(latencies.quantile(1.0).unwrap() > 50_000_000, "the last bucket has no end");
    }
}
