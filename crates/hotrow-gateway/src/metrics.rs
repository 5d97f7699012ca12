//! The gateway's metrics, and their text for Prometheus. No label has unbounded values.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Counter(AtomicU64::new(0))
    }

    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds this many.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    const fn new() -> Self {
        Gauge(AtomicU64::new(0))
    }

    /// Adds one until the guard is dropped.
    pub fn enter(&'static self) -> GaugeGuard {
        self.0.fetch_add(1, Relaxed);
        GaugeGuard(self)
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Subtracts one from its gauge when dropped.
#[derive(Debug)]
pub struct GaugeGuard(&'static Gauge);

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// Counts of values by upper bounds that double.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    first: u64,
    buckets: [Counter; N],
    sum: Counter,
}

impl<const N: usize> Histogram<N> {
    /// Buckets up to `first`, twice `first`, four times `first`, and so on.
    pub const fn new(first: u64) -> Self {
        Histogram {
            first,
            buckets: [const { Counter(AtomicU64::new(0)) }; N],
            sum: Counter(AtomicU64::new(0)),
        }
    }

    /// Counts a value.
    pub fn record(&self, value: u64) {
        let above = value.saturating_sub(1) / self.first;
        let index = (u64::BITS - above.leading_zeros()) as usize;
        self.buckets[index.min(N - 1)].inc();
        self.sum.add(value);
    }

    fn write(&self, out: &mut String, name: &str, help: &str, units: f64) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut count = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            count += bucket.get();
            if index + 1 == N {
                let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}");
            } else {
                let bound = (self.first << index) as f64 / units;
                let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}");
            }
        }
        let _ = writeln!(out, "{name}_sum {}\n{name}_count {count}", self.sum.get() as f64 / units);
    }
}

/// All metrics.
#[derive(Debug)]
pub struct Metrics {
    /// Units committed in a batch of writes.
    pub packed: Counter,
    /// Units answered from a batch of reads.
    pub packed_reads: Counter,
    /// Calls that became part of a merged call.
    pub merged: Counter,
    /// Units run on a connection of their own session.
    pub passed_through: Counter,
    /// Units that left their lane because they failed there.
    pub failed: Counter,
    /// Units that left their lane because an outsider held their lock.
    pub blocked: Counter,
    /// Units that left their lane because they took too long there.
    pub too_slow: Counter,
    /// Units and clients rejected at a limit.
    pub refused: Counter,
    /// Clients that failed to authenticate, or whose access the access file denies.
    pub log_ins_failed: Counter,
    /// Units whose outcome is unknown.
    pub unknown: Counter,
    /// Batches committed.
    pub batches: Counter,
    /// Batches rolled back because a unit failed.
    pub rolled_back: Counter,
    /// Connections of lanes that were lost.
    pub lost: Counter,
    /// Notifications that shared listening connections have received, counted for each client.
    pub notifications: Counter,
    /// Connected clients.
    pub clients: Gauge,
    /// Connected lanes.
    pub lanes: Gauge,
    /// Open upstream connections outside lanes.
    pub held_connections: Gauge,
    /// Transactions that wait for others that work on the same row.
    pub row_waits: Gauge,
    /// Calls that found nothing and wait.
    pub waiting_calls: Gauge,
    /// Clients that have listened without a connection of their own.
    pub listening_clients: Gauge,
    /// Connections that listen for clients.
    pub listening_connections: Gauge,
    /// Units in one batch.
    pub batch_units: Histogram<10>,
    /// Time from writing a batch to its commit.
    pub batch_microseconds: Histogram<18>,
    /// Time from a unit's arrival to the writing of its batch.
    pub queue_microseconds: Histogram<18>,
}

impl Metrics {
    const fn new() -> Self {
        Metrics {
            packed: Counter::new(),
            packed_reads: Counter::new(),
            merged: Counter::new(),
            passed_through: Counter::new(),
            failed: Counter::new(),
            blocked: Counter::new(),
            too_slow: Counter::new(),
            refused: Counter::new(),
            log_ins_failed: Counter::new(),
            unknown: Counter::new(),
            batches: Counter::new(),
            rolled_back: Counter::new(),
            lost: Counter::new(),
            notifications: Counter::new(),
            clients: Gauge::new(),
            lanes: Gauge::new(),
            held_connections: Gauge::new(),
            row_waits: Gauge::new(),
            waiting_calls: Gauge::new(),
            listening_clients: Gauge::new(),
            listening_connections: Gauge::new(),
            batch_units: Histogram::new(1),
            batch_microseconds: Histogram::new(50),
            queue_microseconds: Histogram::new(50),
        }
    }

    /// In Prometheus' text format.
    pub fn render(&self) -> String {
        let mut out = String::with_capacity(8 << 10);
        let counters = [
            ("packed_units_total", "Writing units committed in a batch.", &self.packed),
            ("packed_reads_total", "Point reads answered from a batch.", &self.packed_reads),
            ("merged_units_total", "Function calls that became part of a merged call.", &self.merged),
            (
                "passed_through_units_total",
                "Units run on an upstream connection of their session.",
                &self.passed_through,
            ),
            ("failed_units_total", "Units that failed in a lane and ran again on their own.", &self.failed),
            ("blocked_units_total", "Units that left a lane because an outsider held a lock.", &self.blocked),
            ("slow_units_total", "Units that left a lane because they took too long there.", &self.too_slow),
            ("refused_total", "Units and clients rejected at a limit.", &self.refused),
            (
                "log_ins_failed_total",
                "Clients that failed to authenticate or were rejected by the access file.",
                &self.log_ins_failed,
            ),
            ("unknown_units_total", "Units whose outcome is unknown (08007).", &self.unknown),
            ("batches_total", "Batches committed.", &self.batches),
            ("batches_rolled_back_total", "Batches rolled back because a unit failed.", &self.rolled_back),
            ("lane_connections_lost_total", "Connections of lanes that were lost.", &self.lost),
            (
                "notifications_total",
                "Notifications received by shared listening connections, counted for each client.",
                &self.notifications,
            ),
        ];
        for (name, help, counter) in counters {
            put(&mut out, name, help, "counter", counter.get());
        }
        let gauges = [
            ("clients", "Clients connected.", &self.clients),
            ("lanes_connected", "Lanes with a connection to the server.", &self.lanes),
            ("held_connections", "Open upstream connections outside lanes.", &self.held_connections),
            ("row_waits", "Transactions that wait for others that work on the same row.", &self.row_waits),
            ("waiting_calls", "Calls that found nothing and wait.", &self.waiting_calls),
            (
                "listening_clients",
                "Clients that listen without a connection of their own.",
                &self.listening_clients,
            ),
            (
                "listening_connections",
                "Shared connections that listen for clients.",
                &self.listening_connections,
            ),
        ];
        for (name, help, gauge) in gauges {
            put(&mut out, name, help, "gauge", gauge.get());
        }
        self.batch_units.write(&mut out, "hotrow_batch_units", "Units in one batch.", 1.0);
        self.batch_microseconds.write(
            &mut out,
            "hotrow_batch_seconds",
            "Seconds from writing a batch to its commit.",
            1e6,
        );
        self.queue_microseconds.write(
            &mut out,
            "hotrow_queue_seconds",
            "Seconds from a unit's arrival to the writing of its batch.",
            1e6,
        );
        out
    }
}

fn put(out: &mut String, name: &str, help: &str, kind: &str, value: u64) {
    let _ = writeln!(out, "# HELP hotrow_{name} {help}\n# TYPE hotrow_{name} {kind}\nhotrow_{name} {value}");
}

/// The process's metrics: one gateway per process.
pub static METRICS: Metrics = Metrics::new();

/// A duration in microseconds.
pub fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_buckets_count_values_up_to_their_bound() {
        let histogram = Histogram::<4>::new(1);
        for value in [0, 1, 2, 3, 4, 5, 1000] {
            histogram.record(value);
        }
        let counts: Vec<_> = histogram.buckets.iter().map(Counter::get).collect();
        assert_eq!(counts, [2, 1, 2, 2]); // at most 1, 2, 4, and more
        let mut text = String::new();
        histogram.write(&mut text, "x", "help", 1.0);
        assert!(
            text.contains("x_bucket{le=\"4\"} 5\nx_bucket{le=\"+Inf\"} 7\nx_sum 1015\nx_count 7"),
            "{text}"
        );
        text.clear();
        histogram.write(&mut text, "y", "help", 1e6);
        assert!(text.contains("y_bucket{le=\"0.000004\"} 5\n"), "{text}");
    }
}
