//! SHOW LANES: connection, queue and pace of each lane, as it says of itself.

use hotrow_core::lane::LaneKind;

use super::answer::{Row, row};
use crate::lane::Look;
use crate::pool::Pool;
use crate::shared::Shared;

/// What it shows.
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
        rows.extend(pool.look(false).await.iter().map(|look| lane(&pool, look)));
    }
    rows
}

/// What its lanes are for.
pub fn kind(kind: LaneKind) -> &'static str {
    match kind {
        LaneKind::Write => "write",
        LaneKind::Read => "read",
    }
}

fn lane(pool: &Pool, look: &Look) -> Row {
    let mean = if look.done.batches == 0 { 0.0 } else { look.done.units as f64 / look.done.batches as f64 };
    let identity = &pool.identity;
    let mut row =
        row![pool.id, identity.user(), identity.database(), kind(look.kind), look.index, look.connection];
    row.push(look.backend.map(|pid| pid.to_string()));
    row.extend(row![
        look.queued,
        look.parked,
        look.batches_under_way,
        look.units_under_way,
        look.pace.as_micros(),
        look.done.units,
        look.done.batches,
        format!("{mean:.1}"),
        look.done.losses,
    ]);
    row
}
