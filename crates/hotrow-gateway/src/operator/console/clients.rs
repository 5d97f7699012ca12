//! SHOW CLIENTS: the connected clients, with their states and backends.

use super::answer::{Column, Row, row_of, text};
use crate::session::control::Control;
use crate::shared::Shared;

/// The columns.
pub const COLUMNS: &[Column<Control>] = &[
    ("process_id", |control| text(control.process_id)),
    ("session", |control| text(control.mailbox.session)),
    ("user", |control| text(control.pool().identity.user())),
    ("database", |control| text(control.pool().identity.database())),
    ("application_name", |control| text(control.activity.name())),
    ("address", |control| text(address(control))),
    ("tls", |control| text(if control.peer.tls.is_some() { "on" } else { "off" })),
    ("state", |control| text(state(control))),
    ("since_seconds", |control| text(format!("{:.3}", control.activity.since_last_message().as_secs_f64()))),
    ("backend_pid", |control| control.backend().and_then(text)),
    ("units_packed", |control| text(control.activity.counts().0)),
    ("units_passed", |control| text(control.activity.counts().1)),
    ("unread_bytes", |control| text(control.mailbox.unread())),
];

/// One row for each client.
pub fn rows(shared: &Shared) -> Vec<Row> {
    shared.controls.all().iter().map(|control| row_of(COLUMNS, control)).collect()
}

fn address(control: &Control) -> String {
    match control.peer.address {
        Some(address) => address.to_string(),
        None if control.peer.internal => "inside".to_owned(),
        None => "unix".to_owned(),
    }
}

fn state(control: &Control) -> String {
    if control.backend().is_some() {
        control.activity.describe_held()
    } else if let Some(what) = control.waiting() {
        what.to_owned()
    } else if control.mailbox.pending() > 0 {
        "in a lane".to_owned()
    } else if control.activity.listens() {
        "idle, listens".to_owned()
    } else {
        control.activity.describe_idle().to_owned()
    }
}
