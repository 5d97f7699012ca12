//! A lane's report about itself for the console. The lane makes it, so no lock is needed.

use std::time::Duration;

use hotrow_lane::lane::UnitState;
use serde::Serialize;

use crate::hot_keys::KeySnapshot;

/// What a report includes besides the lane's own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    None,
    /// The earliest units.
    Units,
    /// The hottest and the blocked keys.
    Keys,
}

/// Where a lane leads.
#[derive(Debug, Default, Serialize)]
pub struct Place {
    /// The node of a distributed database, if it is not the pool's server.
    pub node: Option<i32>,
    /// The replica, if it is not the primary.
    pub replica: Option<String>,
    /// The process ID of its backend while the connection is up.
    pub backend_pid: Option<u32>,
}

/// A lane's state at one moment, as people see it.
#[derive(Debug, Serialize)]
pub struct LaneState {
    /// `write` or `read`.
    pub kind: &'static str,
    #[serde(flatten)]
    pub place: Place,
    /// Its index among the lanes of its kind there.
    pub lane: usize,
    /// The state of its connection.
    pub connection: &'static str,
    /// Waiting units.
    pub queued_units: usize,
    /// Units parked behind one that waits for an outsider's lock.
    pub parked_units: usize,
    /// Batches at the server.
    pub batches_under_way: usize,
    pub units_under_way: usize,
    /// Units in batches whose statements are all answered, so that only the commit is missing.
    pub units_committing: usize,
    /// The time that one unit takes while more units wait than fit into one batch.
    pub microseconds_per_unit: u128,
    #[serde(flatten)]
    pub totals: LaneTotals,
}

/// A lane's totals so far.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LaneTotals {
    /// Units answered.
    pub units_done: u64,
    /// Batches committed.
    pub batches_done: u64,
    /// Connections lost.
    pub connections_lost: u64,
}

/// A lane's report.
#[derive(Debug)]
pub struct LaneSnapshot {
    pub state: LaneState,
    /// The sessions with parked units.
    pub parked_sessions: Vec<u64>,
    /// The earliest units, if they were asked for.
    pub units: Vec<UnitSnapshot>,
    /// The hottest and the blocked keys, if they were asked for.
    pub keys: Vec<KeySnapshot>,
}

#[derive(Debug)]
pub struct UnitSnapshot {
    /// Its session's number.
    pub session: u64,
    /// The tables or functions of its statements.
    pub tables: Vec<String>,
    pub place: UnitState,
    /// How long ago it arrived.
    pub age: Duration,
    /// The shapes of its statements.
    pub shapes: Vec<String>,
}
