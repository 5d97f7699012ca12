//! SHOW SERVERS: the connections to the server that work for clients.

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::servers::{Server, servers};
use crate::shared::Shared;

/// The columns. Those with names of PgBouncer have its meaning.
pub const COLUMNS: &[Column<Server>] = &[
    ("type", |_| text("S")),
    ("user", |server| text(&server.user)),
    ("database", |server| text(&server.database)),
    ("state", |server| text(server.state.word())),
    ("pool", |server| text(server.pool)),
    ("used_by", |server| text(&server.used_by)),
    ("link", |server| server.client.and_then(text)),
    ("remote_pid", |server| server.backend_pid.and_then(text)),
];

/// One row for each connection.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    servers(shared).await.iter().map(|server| row_of(COLUMNS, server)).collect()
}
