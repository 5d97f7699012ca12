//! SHOW STATS, STATS_TOTALS and STATS_AVERAGES: units, bytes and times by database, in the form of PgBouncer. Times are in
//! microseconds. Averages are over the time since the gateway's start.

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::traffic::{DatabaseTraffic, traffic};
use crate::shared::Shared;

/// A database, and the seconds since the start.
type Stat = (DatabaseTraffic, f64);

/// The columns of SHOW STATS_TOTALS. A query is a unit: usually one statement.
pub const TOTALS: &[Column<Stat>] = &[
    ("database", |(stat, _)| text(&stat.database)),
    ("xact_count", |(stat, _)| text(stat.transactions)),
    ("query_count", |(stat, _)| text(stat.units)),
    ("bytes_received", |(stat, _)| text(stat.received_bytes)),
    ("bytes_sent", |(stat, _)| text(stat.sent_bytes)),
    ("xact_time", |(stat, _)| text(stat.unit_microseconds)),
    ("query_time", |(stat, _)| text(stat.unit_microseconds)),
    ("wait_time", |(stat, _)| text(stat.wait_microseconds)),
];

/// The columns of SHOW STATS_AVERAGES.
pub const AVERAGES: &[Column<Stat>] = &[
    ("database", |(stat, _)| text(&stat.database)),
    ("xact_count", |stat| per_second(stat, stat.0.transactions)),
    ("query_count", |stat| per_second(stat, stat.0.units)),
    ("bytes_received", |stat| per_second(stat, stat.0.received_bytes)),
    ("bytes_sent", |stat| per_second(stat, stat.0.sent_bytes)),
    ("xact_time", |(stat, _)| text(stat.unit_microseconds / stat.transactions.max(1))),
    ("query_time", |(stat, _)| text(stat.unit_microseconds / stat.units.max(1))),
    ("wait_time", |(stat, _)| text(stat.wait_microseconds / stat.transactions.max(1))),
];

/// The columns of SHOW STATS: the database, and the others of both tables under these names.
const NAMES: [(&str, &str); 7] = [
    ("total_xact_count", "avg_xact_count"),
    ("total_query_count", "avg_query_count"),
    ("total_received", "avg_recv"),
    ("total_sent", "avg_sent"),
    ("total_xact_time", "avg_xact_time"),
    ("total_query_time", "avg_query_time"),
    ("total_wait_time", "avg_wait_time"),
];

/// The columns that are text.
pub const TEXTS: [&str; 1] = ["database"];

/// The columns of SHOW STATS.
pub fn all() -> Vec<Column<Stat>> {
    let (database, totals) = TOTALS.split_first().expect("there are columns");
    let totals = NAMES.iter().zip(totals).map(|((name, _), (_, text))| (*name, *text));
    let averages = NAMES.iter().zip(&AVERAGES[1..]).map(|((_, name), (_, text))| (*name, *text));
    [*database].into_iter().chain(totals).chain(averages).collect()
}

/// One row for each database.
pub fn rows(shared: &Shared, columns: &[Column<Stat>]) -> Vec<Row> {
    let seconds = shared.started.elapsed().as_secs_f64();
    traffic(shared).into_iter().map(|stat| row_of(columns, &(stat, seconds))).collect()
}

fn per_second((_, seconds): &Stat, count: u64) -> Option<String> {
    text((count as f64 / seconds.max(1.0)) as u64)
}
