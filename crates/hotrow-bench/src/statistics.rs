//! Computes medians, spreads and latencies. It measures nothing.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The values of one figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median. For an even number of values, it is the mean of the two in the middle.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// The spread of these values. `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Self { median, min, max })
    }
}

/// The latencies of many requests, in microseconds, to three digits.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
    untimed: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    const LONGEST: Duration = Duration::from_secs(3600);

    /// Without requests.
    pub fn new() -> Self {
        let longest_us = u64::try_from(Self::LONGEST.as_micros()).expect("an hour of microseconds fits");
        let histogram = Histogram::new_with_bounds(1, longest_us, 3)
            .expect("the bounds are in order and three digits are allowed");
        Self { histogram, untimed: 0 }
    }

    /// Adds a request. A latency of more than an hour counts as an hour.
    ///
    /// If an answer arrives before the `send` of pgbench returns, pgbench does not read the clock again and logs 0. These
    /// requests are the fastest, with an unknown latency.
    pub fn record(&mut self, microseconds: u64) {
        self.record_many(microseconds, 1);
    }

    /// Adds a request that was due at this time and has just been answered.
    pub fn record_since(&mut self, due: Instant) {
        self.record(u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds a number of requests with the same latency.
    pub fn record_many(&mut self, microseconds: u64, requests: u64) {
        if microseconds == 0 {
            self.untimed += requests;
        }
        self.histogram.saturating_record_n(microseconds, requests);
    }

    /// Adds all requests of another run.
    pub fn add(&mut self, other: &Self) {
        self.untimed += other.untimed;
        self.histogram.add(&other.histogram).expect("all histograms here have the same bounds");
    }

    /// The number of requests.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The reported figures. `None` without requests.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let at = |quantile| self.histogram.value_at_quantile(quantile);
        (!self.histogram.is_empty()).then(|| Quantiles {
            samples: self.count(),
            untimed: self.untimed,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.histogram.max(),
        })
    }
}

/// Latencies in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// The number of requests.
    pub samples: u64,
    /// The number of requests that were too fast for pgbench to measure. A quantile of 0 is one of them.
    pub untimed: u64,
    /// Median.
    pub p50_us: u64,
    /// 90th percentile.
    pub p90_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// 99.9th percentile.
    pub p999_us: u64,
    /// Maximum.
    pub max_us: u64,
}

#[cfg(test)]
mod tests {
    use super::{Latencies, Spread};

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        assert_eq!(Spread::of(&[30.0, 10.0, 20.0]), Some(Spread { median: 20.0, min: 10.0, max: 30.0 }));
        assert_eq!(Spread::of(&[4.0, 1.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::of(&[7.0]), Some(Spread { median: 7.0, min: 7.0, max: 7.0 }));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn quantiles_are_those_of_all_runs_together() {
        let (mut fast, mut slow) = (Latencies::new(), Latencies::new());
        (1..=99).for_each(|_| fast.record(100));
        slow.record(1_000_000);
        fast.add(&slow);
        let quantiles = fast.quantiles().unwrap();
        assert_eq!((quantiles.samples, quantiles.p50_us, quantiles.p99_us), (100, 100, 100));
        assert!(quantiles.p999_us >= 999_000, "{quantiles:?}");
        assert_eq!(Latencies::new().quantiles(), None);
    }

    #[test]
    fn requests_that_were_not_timed_are_counted_as_the_fastest() {
        let mut latencies = Latencies::new();
        (0..2).for_each(|_| latencies.record(0));
        latencies.record(100);
        let quantiles = latencies.quantiles().unwrap();
        assert_eq!(
            (quantiles.samples, quantiles.untimed, quantiles.p50_us, quantiles.p99_us),
            (3, 2, 0, 100)
        );
    }

    #[test]
    fn a_request_of_more_than_an_hour_is_kept_as_an_hour() {
        let mut latencies = Latencies::new();
        latencies.record(u64::MAX);
        assert!(latencies.quantiles().unwrap().max_us >= 3_600_000_000);
    }
}
