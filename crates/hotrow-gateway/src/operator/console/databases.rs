//! SHOW DATABASES: the databases that the settings name or clients use, in the form of PgBouncer.

use std::collections::BTreeMap;

use hotrow_connect::net::Address;

use super::answer::{Column, Row, row_of, text};
use super::pools::POOL_MODE;
use crate::config::routes::Route;
use crate::operator::view::servers::servers;
use crate::shared::Shared;

#[derive(Debug)]
pub struct DatabaseRow {
    name: String,
    name_there: String,
    forced_user: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    /// The most connections that sessions may hold. Lanes have theirs besides.
    held_max: usize,
    connections: usize,
    is_paused: bool,
}

/// The columns. There are no reserves, and a database cannot be disabled.
pub const COLUMNS: &[Column<DatabaseRow>] = &[
    ("name", |database| text(&database.name)),
    ("host", |database| database.host.clone()),
    ("port", |database| database.port.and_then(text)),
    ("database", |database| text(&database.name_there)),
    ("force_user", |database| database.forced_user.clone()),
    ("pool_size", |database| text(database.held_max)),
    ("min_pool_size", |_| text(0)),
    ("reserve_pool", |_| text(0)),
    ("pool_mode", |_| text(POOL_MODE)),
    ("max_connections", |database| text(database.held_max)),
    ("current_connections", |database| text(database.connections)),
    ("paused", |database| text(u8::from(database.is_paused))),
    ("disabled", |_| text(0)),
];

/// The columns that are text.
pub const TEXTS: [&str; 5] = ["name", "host", "database", "force_user", "pool_mode"];

/// One row for each database that a table names or a client uses.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    let config = shared.config();
    let mut databases = BTreeMap::new();
    let row = |name: &str, route: &Route, is_paused| {
        let (host, port) = match route.server.upstream.hosts.in_turn().next() {
            Some(Address::Tcp(host, port)) => (Some(host.clone()), Some(*port)),
            Some(Address::Unix(path)) => (path.to_str().map(str::to_owned), None),
            None => (None, None),
        };
        DatabaseRow {
            name: name.to_owned(),
            name_there: route.database(name).to_owned(),
            forced_user: route.forced_user().map(str::to_owned),
            host,
            port,
            held_max: config.held_connections_max,
            connections: 0,
            is_paused,
        }
    };
    for (name, route) in config.routes.named() {
        let is_paused = shared.directory.databases.is_paused(name);
        databases.insert(name.to_owned(), row(name, route, is_paused));
    }
    for pool in shared.pools() {
        let (name, is_paused) = (pool.identity.database(), pool.database_state().is_paused());
        let new = || row(name, pool.identity.route(), is_paused);
        databases.entry(name.to_owned()).or_insert_with(new).is_paused |= is_paused;
    }
    for server in servers(shared).await {
        if let Some(database) = databases.get_mut(&server.database) {
            database.connections += 1;
        }
    }
    databases.values().map(|database| row_of(COLUMNS, database)).collect()
}
