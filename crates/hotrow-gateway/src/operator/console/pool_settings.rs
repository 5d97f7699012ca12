//! SHOW POOL_SETTINGS: pools by user, database and settings, and what is in force for them.

use std::sync::Arc;

use super::answer::{Column, Row, row_of, text};
use crate::pool::Pool;
use crate::shared::Shared;

/// The columns, of a pool and the number of its held connections.
pub const COLUMNS: &[Column<(Arc<Pool>, usize)>] = &[
    ("pool", |(pool, _)| text(pool.id)),
    ("user", |(pool, _)| text(pool.identity.user())),
    ("database", |(pool, _)| text(pool.identity.database())),
    ("settings", |(pool, _)| text(settings(pool))),
    ("clients", |(pool, _)| text(pool.clients())),
    ("held_connections", |(_, held)| text(held)),
    ("paused", |(pool, _)| text(if pool.database_state().is_paused() { "yes" } else { "no" })),
    ("packs", |(pool, _)| {
        text(pool.context.unpackable().map_or("yes".to_owned(), |why| format!("no: {why}")))
    }),
    ("lanes", |(pool, _)| text(pool.lanes_count())),
    ("lane_lock_timeout_ms", |(pool, _)| text(pool.context.lock_timeout().as_millis())),
    ("table", |(pool, _)| pool.config().table.as_ref().map(|table| table.describe())),
];

/// One row for each pool.
pub fn rows(shared: &Shared) -> Vec<Row> {
    let mut pools = shared.pools();
    pools.sort_by_key(|pool| pool.id);
    let holding: Vec<_> =
        shared.controls.all().into_iter().filter(|control| control.backend().is_some()).collect();
    let of = |pool: Arc<Pool>| {
        let held = holding.iter().filter(|control| control.pool().id == pool.id).count();
        row_of(COLUMNS, &(pool, held))
    };
    pools.into_iter().map(of).collect()
}

fn settings(pool: &Pool) -> String {
    let own = |name: &str| !matches!(name, "user" | "database");
    let parameters = pool.identity.parameters().iter().filter(|(name, _)| own(name));
    let parameters = parameters.map(|(name, value)| (&**name, &**value));
    let all = parameters.chain(pool.identity.settings().iter());
    all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
