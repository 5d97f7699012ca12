//! SHOW DATABASES: the databases that clients use, in the form of PgBouncer.

use std::collections::BTreeMap;

use super::answer::{Column, Row, row_of, text};
use super::pools::POOL_MODE;
use crate::net::Address;
use crate::operator::view::servers::servers;
use crate::shared::Shared;

/// A database.
#[derive(Debug)]
pub struct DatabaseRow {
    name: String,
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
    ("database", |database| text(&database.name)),
    ("force_user", |_| None),
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

/// One row for each database.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    let config = shared.config();
    let (host, port) = match config.upstream.hosts.in_turn().next() {
        Some(Address::Tcp(host, port)) => (Some(host.clone()), Some(*port)),
        Some(Address::Unix(path)) => (path.to_str().map(str::to_owned), None),
        None => (None, None),
    };
    let mut databases = BTreeMap::new();
    for pool in shared.pools() {
        let name = pool.identity.database().to_owned();
        databases.entry(name.clone()).or_insert_with(|| DatabaseRow {
            name,
            host: host.clone(),
            port,
            held_max: config.held_connections_max,
            connections: 0,
            is_paused: pool.database_state().is_paused(),
        });
    }
    for server in servers(shared).await {
        if let Some(database) = databases.get_mut(&server.database) {
            database.connections += 1;
        }
    }
    databases.values().map(|database| row_of(COLUMNS, database)).collect()
}
