//! A look at a lane, for people who ask: taken by the lane itself, so that nobody else needs a lock.

use std::time::Duration;

use hotrow_core::lane::{LaneKind, UnitState};
use hotrow_core::limits;

use super::Task;

/// A lane as it was when it was asked.
#[derive(Debug)]
pub struct LaneSnapshot {
    /// Whether its batches can change anything.
    pub kind: LaneKind,
    /// Its number among those of its kind.
    pub index: usize,
    /// The state of its connection.
    pub connection: &'static str,
    /// Its backend's process id.
    pub backend: Option<u32>,
    /// Units that wait.
    pub queued: usize,
    /// Units that wait behind one which waits for an outsider's lock.
    pub parked: usize,
    /// Batches with the server.
    pub batches_under_way: usize,
    /// Units in them.
    pub units_under_way: usize,
    /// How long one unit takes.
    pub pace: Duration,
    /// Units and batches done so far, and connections lost.
    pub done: LaneTotals,
    /// The units, if they were asked for: the earliest of them.
    pub units: Vec<UnitSnapshot>,
}

/// What a lane has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaneTotals {
    /// Units answered.
    pub units: u64,
    /// Batches committed.
    pub batches: u64,
    /// Connections lost.
    pub losses: u64,
}

/// A unit in a lane.
#[derive(Debug)]
pub struct UnitSnapshot {
    /// Whose it is.
    pub session: u64,
    /// The tables or functions of its statements.
    pub tables: Vec<String>,
    /// Where it is.
    pub place: UnitState,
    /// How long ago it came.
    pub age: Duration,
    /// The shapes of its statements.
    pub shapes: Vec<String>,
}

impl Task {
    pub(super) fn snapshot(&mut self, with_units: bool) -> LaneSnapshot {
        let units = if with_units { self.units() } else { Vec::new() };
        let under_way = self.core.under_way();
        LaneSnapshot {
            kind: self.kind,
            index: self.index,
            connection: self.core.connection(),
            queued: self.core.queued(),
            parked: self.core.parked(),
            batches_under_way: under_way.len(),
            units_under_way: under_way.iter().map(|batch| batch.units.len()).sum(),
            pace: self.pace.wait(1),
            done: self.totals,
            units,
            backend: self.connection.upstream().map(|upstream| upstream.process_id),
        }
    }

    fn units(&self) -> Vec<UnitSnapshot> {
        let units = self.core.units().take(limits::SHOWN_UNITS_MAX);
        let snapshots = units.map(|(place, unit)| UnitSnapshot {
            session: unit.session,
            tables: unit.payload.unit.runs().map(|run| run.packing.table.clone()).collect(),
            place,
            age: unit.payload.since.elapsed(),
            shapes: (unit.payload.unit.runs())
                .map(|run| run.statement.shown(limits::SHOWN_SHAPE_CHARS_MAX))
                .collect(),
        });
        snapshots.collect()
    }
}
