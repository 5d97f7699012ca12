//! SHOW CLIENTS: the connected clients, with their states and backends.

use super::answer::Row;
use crate::session::control::Control;
use crate::shared::Shared;

/// The columns.
pub const COLUMNS: [&str; 13] = [
    "process_id",
    "session",
    "user",
    "database",
    "application_name",
    "address",
    "tls",
    "state",
    "since_seconds",
    "backend_pid",
    "units_packed",
    "units_passed",
    "unread_bytes",
];

/// One row for each client.
pub fn rows(shared: &Shared) -> Vec<Row> {
    shared.controls.all().iter().map(|control| row(control)).collect()
}

fn row(control: &Control) -> Row {
    let identity = &control.pool.identity;
    let address = match control.peer.address {
        Some(address) => address.to_string(),
        None if control.peer.internal => "inside".to_owned(),
        None => "unix".to_owned(),
    };
    let (packed, passed) = control.activity.counts();
    let texts = [
        control.process_id.to_string(),
        control.mailbox.session.to_string(),
        identity.user().to_owned(),
        identity.database().to_owned(),
        control.activity.name(),
        address,
        (if control.peer.tls.is_some() { "on" } else { "off" }).to_owned(),
        state(control),
        format!("{:.3}", control.activity.since_last_message().as_secs_f64()),
    ];
    let backend = control.backend().map(|pid| pid.to_string());
    let last = [packed.to_string(), passed.to_string(), control.mailbox.unread().to_string()];
    texts.into_iter().map(Some).chain([backend]).chain(last.map(Some)).collect()
}

fn state(control: &Control) -> String {
    if control.backend().is_some() {
        control.activity.describe_held()
    } else if let Some(what) = control.waiting() {
        what.to_owned()
    } else if control.mailbox.pending() > 0 {
        "in a lane".to_owned()
    } else {
        "idle".to_owned()
    }
}
