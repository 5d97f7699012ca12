//! SHOW UNITS: the units that wait or run in lanes. Shows shapes without values, because values belong to the clients.

use hotrow_lane::cancel::WaitsFor;
use hotrow_lane::lane::UnitState;

use super::answer::{Row, row};
use crate::lane::Detail;
use crate::operator::view::labels;
use crate::session::state::ClientState;
use crate::shared::Shared;

/// The columns.
pub const COLUMNS: [&str; 9] =
    ["pool", "kind", "lane", "session", "table", "state", "age_milliseconds", "statements", "statement"];

/// One row for each unit. Of a long queue only the earliest units are shown. Waiting calls are not in a lane.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    let mut rows = Vec::new();
    for pool in shared.pools() {
        rows.extend(pool.waiting.snapshots().into_iter().map(|call| {
            let mut row = row![
                pool.id,
                "write",
                "",
                call.session,
                call.function,
                ClientState::Waits(WaitsFor::Answer),
                call.age.as_millis(),
                1,
                call.shape
            ];
            row[2] = None;
            row
        }));
        for lane in pool.lane_snapshots(Detail::Units).await {
            rows.extend(lane.units.into_iter().map(|unit| {
                let state = match unit.place {
                    UnitState::UnderWay(batch) => format!("under way in batch {batch}"),
                    UnitState::Queued => "queued".to_owned(),
                    UnitState::Parked(key) => {
                        let label = labels::label(pool.identity.database(), key).unwrap_or_default();
                        format!("parked behind key {label}")
                    }
                };
                let mut tables = unit.tables;
                tables.dedup();
                row![
                    pool.id,
                    lane.state.kind,
                    lane.state.lane,
                    unit.session,
                    tables.join(", "),
                    state,
                    unit.age.as_millis(),
                    unit.shapes.len(),
                    unit.shapes.join("; "),
                ]
            }));
        }
    }
    rows
}
