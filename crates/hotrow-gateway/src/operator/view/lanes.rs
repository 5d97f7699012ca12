//! The lanes, as each lane reports itself.

use hotrow_lane::lane::LaneKind;
use serde::Serialize;

use super::snapshots;
use crate::lane::{Detail, LaneSnapshot};
use crate::pool::Pool;
use crate::shared::Shared;

#[derive(Debug, Serialize)]
pub struct LaneState {
    /// Its pool's number.
    pub pool: u64,
    /// The pool's user.
    pub user: String,
    /// The pool's database.
    pub database: String,
    /// `write` or `read`.
    pub kind: &'static str,
    /// The node of a distributed database to which it connects, if it is not the pool's server.
    pub node: Option<i32>,
    /// The replica to which it connects, if it does not connect to the primary.
    pub replica: Option<String>,
    /// Its index among the lanes of its kind there.
    pub lane: usize,
    pub connection: &'static str,
    /// Its backend's process ID.
    pub backend_pid: Option<u32>,
    /// Waiting units.
    pub queued_units: usize,
    /// Units behind one that waits for an outsider's lock.
    pub parked_units: usize,
    /// Batches at the server.
    pub batches_under_way: usize,
    pub units_under_way: usize,
    /// Units in batches of which only the commit is missing.
    pub units_committing: usize,
    /// The time that one unit takes while more units wait than fit into one batch.
    pub microseconds_per_unit: u128,
    /// Units answered so far.
    pub units_done: u64,
    /// Batches committed so far.
    pub batches_done: u64,
    /// Connections lost so far.
    pub connections_lost: u64,
}

impl LaneState {
    fn new(pool: &Pool, lane: &LaneSnapshot) -> Self {
        LaneState {
            pool: pool.id,
            user: pool.identity.user().to_owned(),
            database: pool.identity.database().to_owned(),
            kind: kind(lane.kind),
            node: lane.place.node,
            replica: lane.place.replica.clone(),
            lane: lane.index,
            connection: lane.connection,
            backend_pid: lane.place.backend,
            queued_units: lane.queued,
            parked_units: lane.parked,
            batches_under_way: lane.batches_under_way,
            units_under_way: lane.units_under_way,
            units_committing: lane.units_committing,
            microseconds_per_unit: lane.pace.as_micros(),
            units_done: lane.done.units,
            batches_done: lane.done.batches,
            connections_lost: lane.done.losses,
        }
    }

    /// Units for each batch so far.
    pub fn units_per_batch(&self) -> f64 {
        if self.batches_done == 0 { 0.0 } else { self.units_done as f64 / self.batches_done as f64 }
    }
}

/// The lanes of all pools.
pub async fn lanes(shared: &Shared) -> Vec<LaneState> {
    snapshots(shared, Detail::None).await.iter().map(|(pool, lane)| LaneState::new(pool, lane)).collect()
}

/// The kind of a lane as text.
pub fn kind(kind: LaneKind) -> &'static str {
    match kind {
        LaneKind::Write => "write",
        LaneKind::Read => "read",
    }
}
