//! The present state of the gateway as plain data: for the console's tables, and for a page.

pub mod blockers;
pub mod clients;
pub mod keys;
pub mod labels;
pub mod lanes;
pub mod replicas;
pub mod servers;
pub mod shadow;
pub mod statements;
pub mod traffic;

use std::sync::Arc;

use serde::Serialize;

use crate::lane::{Detail, LaneSnapshot};
use crate::metrics::METRICS;
use crate::pool::Pool;
use crate::shared::Shared;

/// Whether values of the clients' statements are shown, or `?` in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// For administrators.
    Shown,
    /// For all other users.
    Hidden,
}

/// The state of the gateway.
#[derive(Debug, Serialize)]
pub struct View {
    /// The gateway's version.
    pub version: &'static str,
    /// The numbers of units and commits since the start.
    pub totals: Totals,
    /// The numbers of this moment.
    pub gauges: Gauges,
    /// The hottest keys, and those that are blocked.
    pub keys: Vec<keys::HotKey>,
    /// Shapes of statements, those with the most runs first.
    pub statements: Vec<statements::ShownStatement>,
    /// The sums over all shapes.
    pub statement_totals: statements::StatementTotals,
    /// The connected clients.
    pub clients: Vec<clients::Client>,
    pub lanes: Vec<lanes::LaneOfPool>,
    /// The work by database.
    pub databases: Vec<traffic::DatabaseTraffic>,
    /// What shadow mode has found.
    pub shadow: Vec<shadow::ShadowOfClients>,
}

/// Numbers since the start.
#[derive(Debug, Serialize)]
pub struct Totals {
    /// Units of writes committed in batches. Calls that were merged are among them.
    pub units_packed: u64,
    /// Calls that became part of a merged call.
    pub units_merged: u64,
    /// Point reads answered from batches.
    pub reads_packed: u64,
    /// Units passed through.
    pub units_passed: u64,
    /// Batches committed, of writes and of reads.
    pub batches: u64,
    /// Batches of reads among them.
    pub read_batches: u64,
    /// Transactions of clients that ended outside lanes.
    pub transactions: u64,
    /// Refused clients and units.
    pub refused: u64,
    /// Units by the time from their arrival to their answer: up to 50 µs, up to 100 µs, and so on. The last number
    /// has no bound.
    pub latencies: [u64; 18],
}

/// Numbers of this moment.
#[derive(Debug, Serialize)]
pub struct Gauges {
    /// Connected clients.
    pub clients: u64,
    /// Lanes with a connection.
    pub lanes: u64,
    /// Connections outside lanes.
    pub held_connections: u64,
    /// Units that wait in the queues of lanes.
    pub queued_units: u64,
    /// Units behind one that waits for an outsider's lock.
    pub parked_units: u64,
    /// Transactions that wait for others that work on the same row.
    pub row_waits: u64,
    /// Calls that found nothing and wait.
    pub waiting_calls: u64,
    /// Orders of the hotrow schema's queues that are dead letters, if they are known.
    pub dead_letters: Option<u64>,
}

impl Totals {
    /// The numbers now. Asks no lane and no server.
    pub fn now() -> Self {
        let of_units = [
            METRICS.packed_microseconds.counts(),
            METRICS.merged_microseconds.counts(),
            METRICS.read_microseconds.counts(),
            METRICS.passed_microseconds.counts(),
        ];
        Totals {
            units_packed: METRICS.packed.get(),
            units_merged: METRICS.merged.get(),
            reads_packed: METRICS.packed_reads.get(),
            units_passed: METRICS.passed_through.get(),
            batches: METRICS.batches.get(),
            read_batches: METRICS.read_batches.get(),
            transactions: METRICS.traffic.all().iter().map(|(_, traffic)| traffic.transactions.get()).sum(),
            refused: METRICS.refusals.total(),
            latencies: std::array::from_fn(|index| of_units.iter().map(|counts| counts[index]).sum()),
        }
    }
}

impl Gauges {
    fn now() -> Self {
        Gauges {
            clients: METRICS.clients.get(),
            lanes: METRICS.lanes.get(),
            held_connections: METRICS.held_connections.get(),
            queued_units: METRICS.queued.get(),
            parked_units: METRICS.parked.get(),
            row_waits: METRICS.row_waits.get(),
            waiting_calls: METRICS.waiting_calls.get(),
            dead_letters: (METRICS.pack_known.get() > 0).then(|| METRICS.dead_letters.get()),
        }
    }
}

/// The state of the gateway. Asks the server only if units wait for the locks of others.
pub async fn view(shared: &Shared, values: Values) -> View {
    View {
        version: env!("CARGO_PKG_VERSION"),
        totals: Totals::now(),
        gauges: Gauges::now(),
        keys: keys::keys(shared, values).await,
        statements: statements::statements(shared),
        statement_totals: statements::totals(shared),
        clients: clients::clients(shared).await,
        lanes: lanes::lanes(shared).await,
        databases: traffic::traffic(shared),
        shadow: shadow::shadow(shared),
    }
}

/// All lanes of all pools.
async fn snapshots(shared: &Shared, detail: Detail) -> Vec<(Arc<Pool>, LaneSnapshot)> {
    let mut all = Vec::new();
    for pool in shared.pools() {
        let lanes = pool.lane_snapshots(detail).await;
        all.extend(lanes.into_iter().map(|lane| (pool.clone(), lane)));
    }
    all
}
