//! The present state of the gateway as plain data: for the console's tables, and for a page.

pub mod blockers;
pub mod clients;
pub mod keys;
pub mod lanes;
pub mod servers;
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
    /// The hottest keys, and those that are blocked.
    pub keys: Vec<keys::HotKey>,
    /// Shapes of statements, those passed through most often first.
    pub statements: Vec<statements::ShownStatement>,
    /// The connected clients.
    pub clients: Vec<clients::Client>,
    /// The lanes.
    pub lanes: Vec<lanes::LaneState>,
    /// The work by database.
    pub databases: Vec<traffic::DatabaseTraffic>,
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
}

/// The state of the gateway. Asks the server only if units wait for the locks of others.
pub async fn view(shared: &Shared, values: Values) -> View {
    View {
        version: env!("CARGO_PKG_VERSION"),
        totals: Totals {
            units_packed: METRICS.packed.get(),
            units_merged: METRICS.merged.get(),
            reads_packed: METRICS.packed_reads.get(),
            units_passed: METRICS.passed_through.get(),
            batches: METRICS.batches.get(),
        },
        keys: keys::keys(shared, values).await,
        statements: statements::statements(shared),
        clients: clients::clients(shared).await,
        lanes: lanes::lanes(shared).await,
        databases: traffic::traffic(shared),
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
