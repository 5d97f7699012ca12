//! SHOW LANES: connection, queue and pace of each lane.

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::lanes::{LaneState, lanes};
use crate::shared::Shared;

pub const COLUMNS: &[Column<LaneState>] = &[
    ("pool", |lane| text(lane.pool)),
    ("user", |lane| text(&lane.user)),
    ("database", |lane| text(&lane.database)),
    ("kind", |lane| text(lane.kind)),
    ("node", |lane| lane.node.and_then(text)),
    ("replica", |lane| lane.replica.as_ref().and_then(text)),
    ("lane", |lane| text(lane.lane)),
    ("connection", |lane| text(lane.connection)),
    ("backend_pid", |lane| lane.backend_pid.and_then(text)),
    ("queued_units", |lane| text(lane.queued_units)),
    ("parked_units", |lane| text(lane.parked_units)),
    ("batches_under_way", |lane| text(lane.batches_under_way)),
    ("units_under_way", |lane| text(lane.units_under_way)),
    ("microseconds_per_unit", |lane| text(lane.microseconds_per_unit)),
    ("units_done", |lane| text(lane.units_done)),
    ("batches_done", |lane| text(lane.batches_done)),
    ("units_per_batch", |lane| text(format!("{:.1}", lane.units_per_batch()))),
    ("connections_lost", |lane| text(lane.connections_lost)),
];

/// One row for each lane.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    lanes(shared).await.iter().map(|lane| row_of(COLUMNS, lane)).collect()
}
