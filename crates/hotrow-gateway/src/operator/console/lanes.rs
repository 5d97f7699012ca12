//! SHOW LANES: connection, queue and pace of each lane.

use super::answer::{Column, Row, row_of, text};
use crate::lane::LaneTotals;
use crate::operator::view::lanes::{LaneOfPool, lanes};
use crate::shared::Shared;

pub const COLUMNS: &[Column<LaneOfPool>] = &[
    ("pool", |lane| text(lane.pool)),
    ("user", |lane| text(&lane.user)),
    ("database", |lane| text(&lane.database)),
    ("kind", |lane| text(lane.state.kind)),
    ("node", |lane| lane.state.place.node.and_then(text)),
    ("replica", |lane| lane.state.place.replica.as_ref().and_then(text)),
    ("lane", |lane| text(lane.state.lane)),
    ("connection", |lane| text(lane.state.connection)),
    ("backend_pid", |lane| lane.state.place.backend_pid.and_then(text)),
    ("queued_units", |lane| text(lane.state.queued_units)),
    ("parked_units", |lane| text(lane.state.parked_units)),
    ("batches_under_way", |lane| text(lane.state.batches_under_way)),
    ("units_under_way", |lane| text(lane.state.units_under_way)),
    ("microseconds_per_unit", |lane| text(lane.state.microseconds_per_unit)),
    ("units_done", |lane| text(lane.state.totals.units_done)),
    ("batches_done", |lane| text(lane.state.totals.batches_done)),
    ("units_per_batch", |lane| text(format!("{:.1}", units_per_batch(&lane.state.totals)))),
    ("connections_lost", |lane| text(lane.state.totals.connections_lost)),
];

/// One row for each lane.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    lanes(shared).await.iter().map(|lane| row_of(COLUMNS, lane)).collect()
}

/// Units for each batch so far.
fn units_per_batch(totals: &LaneTotals) -> f64 {
    if totals.batches_done == 0 { 0.0 } else { totals.units_done as f64 / totals.batches_done as f64 }
}
