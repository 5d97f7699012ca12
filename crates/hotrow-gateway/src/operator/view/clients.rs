//! The connected clients, with their states and backends.

use std::collections::HashSet;

use serde::Serialize;

use super::snapshots;
use crate::lane::Detail;
use crate::session::control::Control;
pub use crate::session::state::{ClientClass, ClientState};
use crate::shared::Shared;

#[derive(Debug, Serialize)]
pub struct Client {
    /// The process ID that the client was told.
    pub process_id: u32,
    /// Its session's number.
    pub session: u64,
    pub user: String,
    pub database: String,
    pub application_name: String,
    /// Its address, `unix`, or `inside` for the gateway's own HTTP API.
    pub address: String,
    /// Whether its connection is encrypted.
    pub tls: bool,
    pub state: ClientState,
    /// The class of its state.
    pub class: ClientClass,
    /// Time since its last message.
    pub since_seconds: f64,
    /// The backend that works for it.
    pub backend_pid: Option<u32>,
    /// Its units that went to lanes.
    pub units_packed: u64,
    /// Units among them that went to replicas.
    pub units_on_replicas: u64,
    /// Its units that were passed through.
    pub units_passed: u64,
    /// Bytes of its answers that it has not read.
    pub unread_bytes: usize,
}

/// All clients, the oldest first.
pub async fn clients(shared: &Shared) -> Vec<Client> {
    let lanes = snapshots(shared, Detail::None).await;
    let parked: HashSet<u64> =
        lanes.iter().flat_map(|(_, lane)| lane.parked_sessions.iter().copied()).collect();
    shared.controls.all().iter().map(|control| Client::new(control, &parked)).collect()
}

impl Client {
    fn new(control: &Control, parked: &HashSet<u64>) -> Self {
        let pool = control.pool();
        let (units_packed, units_passed) = control.activity.counts();
        let state = state(control, parked);
        Client {
            process_id: control.process_id,
            session: control.mailbox.session,
            user: pool.identity.user().to_owned(),
            database: pool.identity.database().to_owned(),
            application_name: control.activity.name(),
            address: address(control),
            tls: control.peer.tls.is_some(),
            state,
            class: state.class(),
            since_seconds: control.activity.since_last_message().as_secs_f64(),
            backend_pid: control.backend(),
            units_packed,
            units_on_replicas: control.activity.on_replicas(),
            units_passed,
            unread_bytes: control.mailbox.unread(),
        }
    }
}

fn address(control: &Control) -> String {
    match control.peer.address {
        Some(address) => address.to_string(),
        None if control.peer.internal => "inside".to_owned(),
        None => "unix".to_owned(),
    }
}

fn state(control: &Control, parked: &HashSet<u64>) -> ClientState {
    if control.backend().is_some() {
        control.activity.held_state()
    } else if let Some(waits_for) = control.waits_for() {
        ClientState::Waits(waits_for)
    } else if parked.contains(&control.mailbox.session) {
        ClientState::Parked
    } else if control.mailbox.pending() > 0 {
        ClientState::InLane
    } else {
        control.activity.idle_state()
    }
}
