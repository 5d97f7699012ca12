//! What a session counts in the gateway's metrics. Lanes count what they pack.

use std::sync::Arc;

use hotrow_core::session::RunOutcome;
use hotrow_gateway::metrics::{GaugeGuard, METRICS, Traffic};
use hotrow_mysql_wire::command::Command;

/// Why a statement was not packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPacked {
    /// The session has decided so.
    Because(RunOutcome),
    /// It has left its lane, which has counted the reason.
    LeftLane,
}

/// The numbers of a session's user and database. As long as this value lives, the client counts as connected.
#[derive(Debug)]
pub struct SessionCounts {
    traffic: Arc<Traffic>,
    _client: GaugeGuard,
    _connection: GaugeGuard,
}

impl SessionCounts {
    /// For a client that has logged in, whose session has a connection to the server.
    pub fn new(user: &[u8], database: Option<&[u8]>) -> Self {
        SessionCounts {
            traffic: traffic(user, database),
            _client: METRICS.clients.enter(),
            _connection: METRICS.held_connections.enter(),
        }
    }

    /// A command goes to the session's own connection. Only statements count.
    pub fn passed(&self, command: Command, why: NotPacked) {
        if !matches!(command, Command::Query | Command::StmtExecute) {
            return;
        }
        METRICS.passed_through.inc();
        self.traffic.passed.inc();
        if let NotPacked::Because(reason) = why {
            not_packed(reason);
        }
    }
}

/// The numbers of this user and the database of the login.
pub fn traffic(user: &[u8], database: Option<&[u8]>) -> Arc<Traffic> {
    let name = |bytes| String::from_utf8_lossy(bytes).into_owned();
    METRICS.traffic.of(&name(database.unwrap_or_default()), &name(user))
}

/// A statement was not packed.
pub fn not_packed(reason: RunOutcome) {
    METRICS.outcomes[reason as usize].inc();
}
