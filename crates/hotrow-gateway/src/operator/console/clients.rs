//! SHOW CLIENTS: the connected clients, with their states and backends.

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::clients::{Client, clients};
use crate::shared::Shared;

pub const COLUMNS: &[Column<Client>] = &[
    ("process_id", |client| text(client.process_id)),
    ("session", |client| text(client.session)),
    ("user", |client| text(&client.user)),
    ("database", |client| text(&client.database)),
    ("application_name", |client| text(&client.application_name)),
    ("address", |client| text(&client.address)),
    ("tls", |client| text(if client.tls { "on" } else { "off" })),
    ("state", |client| text(client.state)),
    ("since_seconds", |client| text(format!("{:.3}", client.since_seconds))),
    ("backend_pid", |client| client.backend_pid.and_then(text)),
    ("units_packed", |client| text(client.units_packed)),
    ("units_passed", |client| text(client.units_passed)),
    ("unread_bytes", |client| text(client.unread_bytes)),
    ("units_on_replicas", |client| text(client.units_on_replicas)),
];

/// One row for each client.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    clients(shared).await.iter().map(|client| row_of(COLUMNS, client)).collect()
}
