//! SHOW KEYS: the hottest rows, now and since the start, and who holds a blocked one.

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::Values;
use crate::operator::view::keys::{HotKey, keys};
use crate::shared::Shared;

pub const COLUMNS: &[Column<HotKey>] = &[
    ("database", |key| text(&key.database)),
    ("kind", |key| text(key.kind)),
    ("table", |key| text(&key.table)),
    ("key", |key| text(key.row())),
    ("label", |key| key.label.clone()),
    ("units_per_second", |key| text(format!("{:.1}", key.units_per_second))),
    ("units_per_commit", |key| text(format!("{:.1}", key.units_per_commit))),
    ("waiting", |key| text(key.waiting)),
    ("parked", |key| text(key.parked)),
    ("p50_milliseconds", |key| key.p50_milliseconds.and_then(milliseconds)),
    ("p99_milliseconds", |key| key.p99_milliseconds.and_then(milliseconds)),
    ("units", |key| text(key.units)),
    ("units_missed_max", |key| text(key.units_missed_max)),
    ("commits", |key| text(key.commits)),
    ("commits_saved", |key| text(key.commits_saved)),
    ("blockers", |key| match &key.blockers[..] {
        [] => None,
        blockers => text(blockers.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }),
];

/// One row for each key.
pub async fn rows(shared: &Shared, values: Values) -> Vec<Row> {
    keys(shared, values).await.iter().map(|key| row_of(COLUMNS, key)).collect()
}

fn milliseconds(time: f64) -> Option<String> {
    text(format!("{time:.3}"))
}
