//! SHOW LANES: connection, queue and pace of each lane, as reported by the lane.

use hotrow_core::lane::LaneKind;

use super::answer::{Row, row};
use crate::lane::LaneSnapshot;
use crate::pool::Pool;
use crate::shared::Shared;

/// The columns.
pub const COLUMNS: [&str; 16] = [
    "pool",
    "user",
    "database",
    "kind",
    "lane",
    "connection",
    "backend_pid",
    "queued_units",
    "parked_units",
    "batches_under_way",
    "units_under_way",
    "microseconds_per_unit",
    "units_done",
    "batches_done",
    "units_per_batch",
    "connections_lost",
];

/// One row for each lane.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    let mut rows = Vec::new();
    for pool in shared.pools() {
        rows.extend(pool.lane_snapshots(false).await.iter().map(|lane| row_of(&pool, lane)));
    }
    rows
}

/// The kind of a lane as text.
pub fn kind(kind: LaneKind) -> &'static str {
    match kind {
        LaneKind::Write => "write",
        LaneKind::Read => "read",
    }
}

fn row_of(pool: &Pool, lane: &LaneSnapshot) -> Row {
    let mean = if lane.done.batches == 0 { 0.0 } else { lane.done.units as f64 / lane.done.batches as f64 };
    let identity = &pool.identity;
    let mut row =
        row![pool.id, identity.user(), identity.database(), kind(lane.kind), lane.index, lane.connection];
    row.push(lane.backend.map(|pid| pid.to_string()));
    row.extend(row![
        lane.queued,
        lane.parked,
        lane.batches_under_way,
        lane.units_under_way,
        lane.pace.as_micros(),
        lane.done.units,
        lane.done.batches,
        format!("{mean:.1}"),
        lane.done.losses,
    ]);
    row
}
