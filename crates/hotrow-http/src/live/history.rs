//! Rates of the gateway's counters, and the points of the last 15 minutes. No clock: the caller passes the time.

use std::collections::VecDeque;

use crate::limits;
use serde::Serialize;

/// Numbers of the gateway since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Units of writes that lanes committed.
    pub packed: u64,
    /// Calls that became part of a merged call. They are also counted as packed.
    pub merged: u64,
    /// Point reads that lanes answered.
    pub reads: u64,
    /// Units that were passed through.
    pub passed: u64,
    /// Batches of writes: each is one commit.
    pub batches: u64,
    /// Transactions that ended outside lanes.
    pub transactions: u64,
    /// Refused clients and units.
    pub refused: u64,
    /// Units by latency: up to 50 µs, up to 100 µs, and so on. The last number has no bound.
    pub latencies: [u64; 18],
}

/// The upper end of the first bucket of latencies, in milliseconds.
const FIRST_MS: f64 = 0.05;

/// The rates of one second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Seconds since 1970.
    pub at: u64,
    /// Units per second.
    pub units: f64,
    /// Units of writes that lanes committed, per second.
    pub packed: f64,
    /// Calls that became part of a merged call, per second.
    pub merged: f64,
    /// Point reads that lanes answered, per second.
    pub reads: f64,
    /// Units that were passed through, per second.
    pub passed: f64,
    /// Commits per second: batches of writes, and transactions outside lanes.
    pub commits: f64,
    /// Commits per second that the units in lanes did not need.
    pub saved: f64,
    /// Refused clients and units per second.
    pub refused: f64,
    /// Median of the units' latencies. `None` without units.
    pub p50_ms: Option<f64>,
    /// The latency of the slowest unit of a hundred.
    pub p99_ms: Option<f64>,
    /// WAL flushes of the server per second. `None` if no page was open or the server does not show it.
    pub flushes: Option<f64>,
}

/// The counters at the last point, and the points.
#[derive(Debug)]
pub struct History {
    before: Counters,
    points: VecDeque<Point>,
}

impl History {
    /// No points yet.
    pub fn new(counters: Counters) -> Self {
        History { before: counters, points: VecDeque::with_capacity(limits::LIVE_HISTORY_SECONDS) }
    }

    /// Adds the point of the last `seconds`, which end at the time `at`.
    pub fn add(&mut self, at: u64, seconds: f64, now: Counters, flushes: Option<f64>) -> Point {
        let point = Point { flushes, ..point(at, seconds, self.before, now) };
        self.before = now;
        if self.points.len() == limits::LIVE_HISTORY_SECONDS {
            self.points.pop_front();
        }
        self.points.push_back(point);
        point
    }

    /// All points, the earliest first.
    pub fn points(&self) -> &VecDeque<Point> {
        &self.points
    }
}

fn point(at: u64, seconds: f64, before: Counters, now: Counters) -> Point {
    let rate = |count: fn(&Counters) -> u64| {
        let change = count(&now).saturating_sub(count(&before));
        if seconds > 0.0 { change as f64 / seconds } else { 0.0 }
    };
    let (packed, batches) = (rate(|all| all.packed), rate(|all| all.batches));
    let latencies = std::array::from_fn(|index| now.latencies[index].saturating_sub(before.latencies[index]));
    Point {
        at,
        units: rate(|all| all.packed + all.reads + all.passed),
        packed,
        merged: rate(|all| all.merged),
        reads: rate(|all| all.reads),
        passed: rate(|all| all.passed),
        commits: batches + rate(|all| all.transactions),
        saved: (packed - batches).max(0.0),
        refused: rate(|all| all.refused),
        p50_ms: quantile(&latencies, 0.5),
        p99_ms: quantile(&latencies, 0.99),
        flushes: None,
    }
}

/// The latency in milliseconds that this share of the units does not exceed, estimated within its bucket.
fn quantile(counts: &[u64; 18], share: f64) -> Option<f64> {
    let total: u64 = counts.iter().sum();
    let wanted = total as f64 * share;
    let mut below = 0.0;
    for (index, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = *count as f64;
        if below + count >= wanted {
            let upper = FIRST_MS * f64::from(1_u32 << index);
            let lower = if index == 0 { 0.0 } else { upper / 2.0 };
            return Some(lower + (upper - lower) * (wanted - below) / count);
        }
        below += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(packed: u64, batches: u64) -> Counters {
        Counters { packed, batches, ..Counters::default() }
    }

    #[test]
    fn a_point_has_the_changes_per_second() {
        let mut history = History::new(counters(1_000, 100));
        let now = Counters { passed: 10, transactions: 4, ..counters(3_000, 120) };
        let point = history.add(7, 2.0, now, Some(11.0));
        assert_eq!((point.at, point.units, point.packed, point.passed), (7, 1_005.0, 1_000.0, 5.0));
        assert_eq!((point.commits, point.saved, point.flushes), (12.0, 990.0, Some(11.0)));
        assert_eq!((point.p50_ms, point.p99_ms), (None, None), "no unit, no latency");
        let idle = history.add(8, 1.0, now, None);
        assert_eq!((idle.units, idle.saved), (0.0, 0.0));
        assert_eq!(history.points().iter().collect::<Vec<_>>(), [&point, &idle]);
    }

    #[test]
    fn the_history_has_a_bound() {
        let mut history = History::new(Counters::default());
        for at in 0..2 * limits::LIVE_HISTORY_SECONDS as u64 {
            history.add(at, 1.0, Counters::default(), None);
        }
        assert_eq!(history.points().len(), limits::LIVE_HISTORY_SECONDS);
        assert_eq!(history.points().front().unwrap().at, limits::LIVE_HISTORY_SECONDS as u64);
    }

    #[test]
    fn latencies_are_estimated_within_their_bucket() {
        let mut counts = [0; 18];
        counts[4] = 90; // up to 0.8 ms
        counts[7] = 10; // up to 6.4 ms
        let median = quantile(&counts, 0.5).unwrap();
        assert!((0.4..=0.8).contains(&median), "{median}");
        let slowest = quantile(&counts, 0.99).unwrap();
        assert!((3.2..=6.4).contains(&slowest), "{slowest}");
        assert_eq!(quantile(&[0; 18], 0.5), None);
    }
}
