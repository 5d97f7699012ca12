//! A lane's task makes its snapshot.

use hotrow_core::limits;
use hotrow_lane::lane::{LaneKind, UnitState};

use super::Task;
use super::backend::{Backend, Work};
use super::snapshot::{Detail, LaneSnapshot, LaneState, UnitSnapshot};

impl<B: Backend> Task<B> {
    pub(super) fn snapshot(&mut self, detail: Detail) -> LaneSnapshot {
        let units = if detail == Detail::Units { self.units() } else { Vec::new() };
        let keys = if detail == Detail::Keys { self.hot_keys.snapshots(&self.core) } else { Vec::new() };
        let parked = self.core.units().filter(|(place, _)| matches!(place, UnitState::Parked(_)));
        let parked_sessions =
            if self.core.parked() > 0 { parked.map(|(_, unit)| unit.session).collect() } else { Vec::new() };
        let under_way = self.core.under_way();
        let state = LaneState {
            kind: kind(self.kind),
            place: self.backend.place(),
            lane: self.index,
            connection: self.core.connection(),
            queued_units: self.core.queued(),
            parked_units: self.core.parked(),
            batches_under_way: under_way.len(),
            units_under_way: under_way.iter().map(|batch| batch.units.len()).sum(),
            units_committing: (under_way.iter().filter(|batch| batch.is_committing()))
                .map(|batch| batch.units.len())
                .sum(),
            microseconds_per_unit: self.core.time_per_unit().as_micros(),
            totals: self.totals,
        };
        LaneSnapshot { state, parked_sessions, units, keys }
    }

    fn units(&self) -> Vec<UnitSnapshot> {
        let units = self.core.units().take(limits::SHOWN_UNITS_MAX);
        let snapshots = units.map(|(place, unit)| UnitSnapshot {
            session: unit.session,
            tables: unit.payload.tables(),
            place,
            age: unit.payload.since().elapsed(),
            shapes: unit.payload.shapes(),
        });
        snapshots.collect()
    }
}

/// The kind of a lane as people see it.
fn kind(kind: LaneKind) -> &'static str {
    match kind {
        LaneKind::Write => "write",
        LaneKind::Read => "read",
    }
}
