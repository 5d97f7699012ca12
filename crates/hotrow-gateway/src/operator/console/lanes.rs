//! SHOW LANES: connection, queue and pace of each lane, as reported by the lane.

use std::sync::Arc;

use hotrow_core::lane::LaneKind;

use super::answer::{Column, Row, row_of, text};
use crate::lane::LaneSnapshot;
use crate::pool::Pool;
use crate::shared::Shared;

/// The columns.
pub const COLUMNS: &[Column<(Arc<Pool>, LaneSnapshot)>] = &[
    ("pool", |(pool, _)| text(pool.id)),
    ("user", |(pool, _)| text(pool.identity.user())),
    ("database", |(pool, _)| text(pool.identity.database())),
    ("kind", |(_, lane)| text(kind(lane.kind))),
    ("lane", |(_, lane)| text(lane.index)),
    ("connection", |(_, lane)| text(lane.connection)),
    ("backend_pid", |(_, lane)| lane.backend.and_then(text)),
    ("queued_units", |(_, lane)| text(lane.queued)),
    ("parked_units", |(_, lane)| text(lane.parked)),
    ("batches_under_way", |(_, lane)| text(lane.batches_under_way)),
    ("units_under_way", |(_, lane)| text(lane.units_under_way)),
    ("microseconds_per_unit", |(_, lane)| text(lane.pace.as_micros())),
    ("units_done", |(_, lane)| text(lane.done.units)),
    ("batches_done", |(_, lane)| text(lane.done.batches)),
    ("units_per_batch", |(_, lane)| text(format!("{:.1}", units_per_batch(lane)))),
    ("connections_lost", |(_, lane)| text(lane.done.losses)),
];

/// One row for each lane.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    let mut rows = Vec::new();
    for pool in shared.pools() {
        let lanes = pool.lane_snapshots(false).await;
        rows.extend(lanes.into_iter().map(|lane| row_of(COLUMNS, &(pool.clone(), lane))));
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

fn units_per_batch(lane: &LaneSnapshot) -> f64 {
    if lane.done.batches == 0 { 0.0 } else { lane.done.units as f64 / lane.done.batches as f64 }
}
