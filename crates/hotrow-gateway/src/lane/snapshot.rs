//! A lane's report about itself for the console. The lane makes it, so no lock is needed.

use std::time::Duration;

use hotrow_lane::lane::{LaneKind, UnitState};

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

/// Where a lane leads, for people.
#[derive(Debug, Default)]
pub struct Place {
    /// The node of a distributed database, if it is not the pool's server.
    pub node: Option<i32>,
    /// The replica, if it is not the primary.
    pub replica: Option<String>,
    /// The process ID of its backend while the connection is up.
    pub backend: Option<u32>,
}

/// A lane's state at one moment.
#[derive(Debug)]
pub struct LaneSnapshot {
    /// Whether it is for writes or for reads.
    pub kind: LaneKind,
    /// Where it leads.
    pub place: Place,
    /// Its index among the lanes of its kind there.
    pub index: usize,
    /// The state of its connection.
    pub connection: &'static str,
    /// Waiting units.
    pub queued: usize,
    /// Units parked behind one that waits for an outsider's lock.
    pub parked: usize,
    /// Batches at the server.
    pub batches_under_way: usize,
    pub units_under_way: usize,
    /// Units in batches whose statements are all answered, so that only the commit is missing.
    pub units_committing: usize,
    /// The time that one unit takes.
    pub pace: Duration,
    /// Its totals so far.
    pub done: LaneTotals,
    /// The sessions with parked units.
    pub parked_sessions: Vec<u64>,
    /// The earliest units, if they were asked for.
    pub units: Vec<UnitSnapshot>,
    /// The hottest and the blocked keys, if they were asked for.
    pub keys: Vec<KeySnapshot>,
}

/// A lane's totals so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaneTotals {
    /// Units answered.
    pub units: u64,
    /// Batches committed.
    pub batches: u64,
    /// Connections lost.
    pub losses: u64,
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
