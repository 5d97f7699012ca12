//! The connections to the server that work for clients: of lanes, held by sessions, and idle.

use serde::Serialize;

use super::snapshots;
use crate::lane::{Detail, LaneState};
use crate::shared::Shared;

/// A connection.
#[derive(Debug, Serialize)]
pub struct Server {
    /// Its pool's number.
    pub pool: u64,
    /// The pool's user.
    pub user: String,
    /// The pool's database.
    pub database: String,
    /// What it does.
    pub state: ServerState,
    /// The lane that has it, as in `write lane 0`, `session` for one that a client holds, or nothing.
    pub used_by: String,
    /// Its backend's process ID, if it is logged in.
    pub backend_pid: Option<u32>,
    /// The process ID of the client that holds it.
    pub client: Option<u32>,
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// A lane has units there, or a session holds it.
    Active,
    /// Nothing.
    Idle,
    /// It is being made.
    Login,
}

impl ServerState {
    pub fn word(self) -> &'static str {
        match self {
            ServerState::Active => "active",
            ServerState::Idle => "idle",
            ServerState::Login => "login",
        }
    }
}

/// All connections, by pool.
pub async fn servers(shared: &Shared) -> Vec<Server> {
    let mut servers = Vec::new();
    for (pool, snapshot) in snapshots(shared, Detail::None).await {
        let LaneState { kind, place, lane, connection, units_under_way, .. } = snapshot.state;
        let state = match (place.backend_pid, units_under_way) {
            (None, _) if connection.starts_with("connecting") => ServerState::Login,
            (None, _) => continue,
            (Some(_), 0) => ServerState::Idle,
            (Some(_), _) => ServerState::Active,
        };
        servers.push(Server {
            pool: pool.id,
            user: pool.identity.user().to_owned(),
            database: pool.identity.database().to_owned(),
            state,
            used_by: match (place.node, place.replica) {
                (Some(node), _) => format!("{kind} lane {lane} of node {node}"),
                (_, Some(replica)) => format!("{kind} lane {lane} of replica {replica}"),
                (None, None) => format!("{kind} lane {lane}"),
            },
            backend_pid: place.backend_pid,
            client: None,
        });
    }
    for control in shared.controls.all() {
        let (pool, Some(backend)) = (control.pool(), control.backend()) else { continue };
        servers.push(Server {
            pool: pool.id,
            user: pool.identity.user().to_owned(),
            database: pool.identity.database().to_owned(),
            state: ServerState::Active,
            used_by: "session".to_owned(),
            backend_pid: Some(backend),
            client: Some(control.process_id),
        });
    }
    for pool in shared.pools() {
        servers.extend(pool.idle_backends().into_iter().map(|backend| Server {
            pool: pool.id,
            user: pool.identity.user().to_owned(),
            database: pool.identity.database().to_owned(),
            state: ServerState::Idle,
            used_by: String::new(),
            backend_pid: Some(backend),
            client: None,
        }));
    }
    servers.sort_by_key(|server| server.pool);
    servers
}
