//! SHOW POOL_SETTINGS: pools by user, database and settings, and what is in force for them.

use std::sync::Arc;

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::Values;
use crate::pool::Pool;
use crate::shared::Shared;

/// The columns, of a pool, the number of its held connections, and whether values of settings are shown.
pub const COLUMNS: &[Column<(Arc<Pool>, usize, Values)>] = &[
    ("pool", |(pool, ..)| text(pool.id)),
    ("user", |(pool, ..)| text(pool.identity.user())),
    ("database", |(pool, ..)| text(pool.identity.database())),
    ("settings", |(pool, _, values)| text(settings(pool, *values))),
    ("clients", |(pool, ..)| text(pool.clients())),
    ("held_connections", |(_, held, _)| text(held)),
    ("paused", |(pool, ..)| text(if pool.database_state().is_paused() { "yes" } else { "no" })),
    ("packs", |(pool, ..)| {
        text(pool.context.unpackable().map_or("yes".to_owned(), |why| format!("no: {why}")))
    }),
    ("lanes", |(pool, ..)| text(pool.lanes_count())),
    ("lane_lock_timeout_ms", |(pool, ..)| text(pool.context.lock_timeout().as_millis())),
    ("table", |(pool, ..)| pool.config().table.as_ref().map(|table| table.describe())),
];

/// One row for each pool.
pub fn rows(shared: &Shared, values: Values) -> Vec<Row> {
    let mut pools = shared.pools();
    pools.sort_by_key(|pool| pool.id);
    let holding: Vec<_> =
        shared.controls.all().into_iter().filter(|control| control.backend().is_some()).collect();
    let of = |pool: Arc<Pool>| {
        let held = holding.iter().filter(|control| control.pool().id == pool.id).count();
        row_of(COLUMNS, &(pool, held, values))
    };
    pools.into_iter().map(of).collect()
}

/// The settings with their values, which can be names of tenants like those in statements.
fn settings(pool: &Pool, values: Values) -> String {
    let own = |name: &str| !matches!(name, "user" | "database");
    let parameters = pool.identity.parameters().iter().filter(|(name, _)| own(name));
    let parameters = parameters.map(|(name, value)| (&**name, &**value));
    let all = parameters.chain(pool.identity.settings().iter());
    let shown = |value| if values == Values::Shown { value } else { "?" };
    all.map(|(name, value)| format!("{name}={}", shown(value))).collect::<Vec<_>>().join(" ")
}
