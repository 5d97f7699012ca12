//! The work of the clients by database, since the gateway's start.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::METRICS;
use crate::shared::Shared;

/// The numbers of one database.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DatabaseTraffic {
    pub database: String,
    /// Units that were packed, merged or passed through. A transaction whose statements come one by one has several.
    pub units: u64,
    /// Transactions of clients: packed units, and what ended on connections of sessions.
    pub transactions: u64,
    /// Batches committed.
    pub batches: u64,
    /// Bytes received from clients.
    pub received_bytes: u64,
    /// Bytes sent to clients.
    pub sent_bytes: u64,
    /// The time of all units, from their arrival to their answer.
    pub unit_microseconds: u64,
    /// The time that sessions waited for connections.
    pub wait_microseconds: u64,
}

/// The numbers of all databases that clients have used.
pub fn traffic(shared: &Shared) -> Vec<DatabaseTraffic> {
    let mut databases = BTreeMap::<String, DatabaseTraffic>::new();
    for ((database, _), traffic) in METRICS.traffic.all() {
        let sum = databases.entry(database).or_default();
        let packed = traffic.packed.get() + traffic.packed_reads.get();
        sum.units += packed + traffic.passed.get();
        sum.transactions += packed + traffic.transactions.get();
        sum.batches += traffic.batches.get();
        sum.received_bytes += traffic.received_bytes.get();
        sum.sent_bytes += traffic.sent_bytes.get();
        sum.unit_microseconds += traffic.lane_microseconds.get() + traffic.passed_microseconds.get();
        sum.wait_microseconds += traffic.wait_microseconds.get();
    }
    for control in shared.controls.all() {
        if let Some(sum) = databases.get_mut(control.pool().identity.database()) {
            sum.received_bytes += control.activity.received_bytes();
            sum.sent_bytes += control.mailbox.sent_bytes();
        }
    }
    databases.into_iter().map(|(database, sum)| DatabaseTraffic { database, ..sum }).collect()
}
