//! The gateway's metrics, and their text for Prometheus. No label has unbounded values.

mod lags;
mod pinned;
mod refusals;
mod servers;
mod shadow;
mod text;
mod traffic;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hotrow_core::session::RunOutcome;

pub use lags::{Lag, ReplicaLags};
pub use pinned::{PinnedClients, Pins};
pub use refusals::{RefusalReason, Refusals};
pub use servers::ServerStates;
pub use shadow::ShadowTraffic;
pub use traffic::{Traffic, TrafficByClients};

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

    /// Replaces the caller's share of the value.
    pub fn replace(&self, before: u64, now: u64) {
        if now != before {
            self.0.fetch_add(now.wrapping_sub(before), Relaxed);
        }
    }

    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
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
        self.buckets[bucket(value, self.first, N)].inc();
        self.sum.add(value);
    }

    /// The counts of the buckets, the lowest first.
    pub fn counts(&self) -> [u64; N] {
        self.buckets.each_ref().map(Counter::get)
    }

    /// Adds counts that one task has gathered.
    pub fn add(&self, tally: &Tally<N>) {
        let counts = self.buckets.iter().zip(tally.buckets);
        counts.filter(|(_, count)| *count > 0).for_each(|(bucket, count)| bucket.add(count));
        self.sum.add(tally.sum);
    }

    /// Counts for one task, to be added at once.
    pub fn tally(&self) -> Tally<N> {
        Tally { first: self.first, buckets: [0; N], sum: 0 }
    }
}

/// The index of a value's bucket.
fn bucket(value: u64, first: u64, buckets: usize) -> usize {
    let above = value.saturating_sub(1) / first;
    ((u64::BITS - above.leading_zeros()) as usize).min(buckets - 1)
}

/// Counts like those of a histogram that no other task sees.
#[derive(Debug)]
pub struct Tally<const N: usize> {
    first: u64,
    buckets: [u64; N],
    /// The sum of all values.
    pub sum: u64,
}

impl<const N: usize> Tally<N> {
    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.buckets[bucket(value, self.first, N)] += 1;
        self.sum += value;
    }
}

/// All metrics.
#[derive(Debug)]
pub struct Metrics {
    /// Units committed in a batch of writes.
    pub packed: Counter,
    /// Units answered from a batch of reads.
    pub packed_reads: Counter,
    /// Units among them that a replica has answered.
    pub replica_reads: Counter,
    /// Reads that the primary ran because no replica was available, or because none had replayed the session's commits.
    pub replica_fallbacks: Counter,
    /// Searches of sessions for a replica that shows the primary's present state.
    pub replica_searches: Counter,
    /// Whether servers answer.
    pub servers: ServerStates,
    pub replica_lags: ReplicaLags,
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
    /// Units and clients that were refused.
    pub refusals: Refusals,
    /// Statements run, by outcome.
    pub outcomes: [Counter; 15],
    /// The numbers by database and user.
    pub traffic: TrafficByClients,
    /// Clients that failed to authenticate, or whose access the access file denies.
    pub logins_failed: Counter,
    /// Rounds of questions to the catalog about statements.
    pub catalog_questions: Counter,
    /// Comparisons of a table's fingerprint by a lane.
    pub table_comparisons: Counter,
    /// Units whose outcome is unknown.
    pub unknown: Counter,
    /// Batches committed.
    pub batches: Counter,
    /// Batches of reads among them.
    pub read_batches: Counter,
    /// Batches rolled back because a unit failed.
    pub rolled_back: Counter,
    /// Writes that transactions have held back.
    pub writes_deferred: Counter,
    /// Transactions whose writes were foretold wrongly.
    pub foretold_wrong: Counter,
    /// Connections of lanes that were lost.
    pub lost: Counter,
    /// Notifications that shared listening connections have received, counted for each client.
    pub notifications: Counter,
    /// Spans of batches that the collector of traces has accepted.
    pub spans_exported: Counter,
    /// Spans of batches that were dropped.
    pub spans_dropped: Counter,
    /// Connected clients.
    pub clients: Gauge,
    /// Connected lanes.
    pub lanes: Gauge,
    /// Open upstream connections outside lanes.
    pub held_connections: Gauge,
    /// Clients that keep a connection because of the state of their session.
    pub pinned_clients: PinnedClients,
    /// Transactions that wait for others that work on the same row.
    pub row_waits: Gauge,
    /// Calls that found nothing and wait.
    pub waiting_calls: Gauge,
    /// Clients that have listened without a connection of their own.
    pub listening_clients: Gauge,
    /// Connections that listen for clients.
    pub listening_connections: Gauge,
    /// Units that wait in the queues of lanes.
    pub queued: Gauge,
    /// Units that wait behind one that waits for an outsider's lock.
    pub parked: Gauge,
    /// Orders of the hotrow schema's queues that are dead letters.
    pub dead_letters: Gauge,
    /// The age of the oldest order that waits.
    pub oldest_order_seconds: Gauge,
    /// Whether the hotrow schema's maintenance has succeeded, so the two numbers before are known.
    pub pack_known: Gauge,
    /// Rounds of the hotrow schema's maintenance that failed although the server answered, in databases that have it.
    pub maintenance_failures: Counter,
    /// Time from a unit's arrival to its commit, for writes in batches that are not merged.
    pub packed_microseconds: Histogram<18>,
    /// The same for calls that became part of a merged call.
    pub merged_microseconds: Histogram<18>,
    /// The same for point reads in batches.
    pub read_microseconds: Histogram<18>,
    /// Time from the arrival of a unit that is passed through to its answer.
    pub passed_microseconds: Histogram<18>,
    /// Time that sessions wait for a connection to the server.
    pub server_wait_microseconds: Histogram<18>,
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
            replica_reads: Counter::new(),
            replica_fallbacks: Counter::new(),
            replica_searches: Counter::new(),
            servers: ServerStates::new(),
            replica_lags: ReplicaLags::new(),
            merged: Counter::new(),
            passed_through: Counter::new(),
            failed: Counter::new(),
            blocked: Counter::new(),
            too_slow: Counter::new(),
            refusals: Refusals::new(),
            outcomes: [const { Counter::new() }; 15],
            traffic: TrafficByClients::new(),
            logins_failed: Counter::new(),
            catalog_questions: Counter::new(),
            table_comparisons: Counter::new(),
            unknown: Counter::new(),
            batches: Counter::new(),
            read_batches: Counter::new(),
            rolled_back: Counter::new(),
            writes_deferred: Counter::new(),
            foretold_wrong: Counter::new(),
            lost: Counter::new(),
            notifications: Counter::new(),
            spans_exported: Counter::new(),
            spans_dropped: Counter::new(),
            clients: Gauge::new(),
            lanes: Gauge::new(),
            held_connections: Gauge::new(),
            pinned_clients: PinnedClients::new(),
            row_waits: Gauge::new(),
            waiting_calls: Gauge::new(),
            listening_clients: Gauge::new(),
            listening_connections: Gauge::new(),
            queued: Gauge::new(),
            parked: Gauge::new(),
            dead_letters: Gauge::new(),
            oldest_order_seconds: Gauge::new(),
            pack_known: Gauge::new(),
            maintenance_failures: Counter::new(),
            packed_microseconds: Histogram::new(50),
            merged_microseconds: Histogram::new(50),
            read_microseconds: Histogram::new(50),
            passed_microseconds: Histogram::new(50),
            server_wait_microseconds: Histogram::new(50),
            batch_units: Histogram::new(1),
            batch_microseconds: Histogram::new(50),
            queue_microseconds: Histogram::new(50),
        }
    }
}

/// The process's metrics: one gateway per process.
pub static METRICS: Metrics = Metrics::new();

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Milliseconds from the first use of this clock.
pub fn milliseconds_since_start(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(*START).as_millis()).unwrap_or(u64::MAX)
}

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
        let mut tally = histogram.tally();
        [1, 4, 1000].into_iter().for_each(|value| tally.record(value));
        histogram.add(&tally);
        let counts: Vec<_> = histogram.buckets.iter().map(Counter::get).collect();
        assert_eq!((counts, histogram.sum.get(), tally.sum), (vec![3, 1, 3, 3], 2020, 1005));
    }
}
