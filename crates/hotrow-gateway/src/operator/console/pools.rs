//! SHOW POOLS: users and databases, and the settings in force for them.

use super::answer::{Row, row};
use crate::shared::Shared;

/// The columns.
pub const COLUMNS: [&str; 11] = [
    "pool",
    "user",
    "database",
    "settings",
    "clients",
    "held_connections",
    "paused",
    "packs",
    "lanes",
    "lane_lock_timeout_ms",
    "table",
];

/// One row for each pool.
pub fn rows(shared: &Shared) -> Vec<Row> {
    let mut pools = shared.pools();
    pools.sort_by_key(|pool| pool.id);
    let holding: Vec<_> =
        shared.controls.all().into_iter().filter(|control| control.backend().is_some()).collect();
    let own = |name: &str| !matches!(name, "user" | "database");
    let of = |pool: &std::sync::Arc<crate::pool::Pool>| {
        let settings = pool.identity.parameters().iter().filter(|(name, _)| own(name));
        let settings: Vec<String> = settings.map(|(name, value)| format!("{name}={value}")).collect();
        let table = pool.config().table.as_ref().map(|table| table.describe());
        let mut row = row![
            pool.id,
            pool.identity.user(),
            pool.identity.database(),
            settings.join(" "),
            pool.clients(),
            holding.iter().filter(|control| control.pool.id == pool.id).count(),
            if pool.database_state().is_paused() { "yes" } else { "no" },
            pool.context.unpackable().map_or("yes".to_owned(), |why| format!("no: {why}")),
            pool.lanes_count(),
            pool.context.lock_timeout().as_millis(),
        ];
        row.push(table);
        row
    };
    pools.iter().map(of).collect()
}
