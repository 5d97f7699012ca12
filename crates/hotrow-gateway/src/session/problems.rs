//! The gateway's own errors for clients: no connection, no secret, shutting down.

use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use crate::metrics::{METRICS, RefusalReason};
use crate::server::held;
use crate::server::problems::{no_server, reason};

/// The error for a client that gets no connection.
pub fn no_connection(error: &held::Error, fatal: bool) -> Problem {
    because(error, fatal, "the statement was not executed", "It is safe to send the statement again.")
}

/// The error for a client that cannot log in because the gateway has no connection for it.
pub fn login_problem(error: &held::Error) -> Problem {
    because(error, true, "the client was not logged in", "Connect again.")
}

fn because(error: &held::Error, fatal: bool, outcome: &str, retry: &str) -> Problem {
    METRICS.refusals.add_because(refusal(error), 1, error);
    let in_use = |place| in_use(METRICS.pinned_clients.all(), place);
    let (code, message, hint) = match error {
        held::Error::AllInUse(_) => (SqlState::TooManyConnections, error.to_string(), in_use("")),
        held::Error::TableConnectionsInUse(..) => {
            (SqlState::TooManyConnections, error.to_string(), in_use(" in the [[pool]] table"))
        }
        held::Error::NoLogIn(_) => (
            SqlState::CannotConnectNow,
            error.to_string(),
            "Connect again, or raise server_wait_ms.".to_owned(),
        ),
        held::Error::Paused => return Problem { fatal, ..crate::lane::paused(outcome, retry) },
        held::Error::Upstream(error) => no_server(error, outcome, retry),
    };
    Problem { fatal, code, message, hint }
}

/// What to do if all connections that sessions may hold are in use. `pinned` has the reasons why clients keep one, with
/// the number of clients.
fn in_use(pinned: impl Iterator<Item = (&'static str, u64)>, place: &str) -> String {
    let reasons: Vec<_> = pinned.filter(|(_, clients)| *clients > 0).collect();
    let raise = format!("raise held_connections_max or held_wait_ms{place}");
    if reasons.is_empty() {
        return format!(
            "All connections that sessions may hold are in use. End transactions sooner, or {raise}."
        );
    }
    let reasons = reasons.iter().map(|(reason, clients)| format!("{reason}: {clients}"));
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    format!(
        "All connections that sessions may hold are in use. Some clients keep one because of the state of their sessions \
         ({reasons}): SHOW CLIENTS on the console lists them as pinned. Let these clients run DISCARD ALL, end \
         transactions sooner, or {raise}."
    )
}

fn refusal(error: &held::Error) -> RefusalReason {
    match error {
        held::Error::AllInUse(_) | held::Error::TableConnectionsInUse(..) => RefusalReason::NoFreeConnection,
        held::Error::Paused => RefusalReason::Paused,
        held::Error::NoLogIn(_) => RefusalReason::NoServer,
        held::Error::Upstream(error) => reason(error),
    }
}

/// The error for a client whose secrets cannot be made.
pub fn no_random_numbers() -> Problem {
    Problem::fatal(
        SqlState::InternalError,
        "the gateway cannot make a secret for this connection: the system gives no random numbers",
        "Check getrandom on the gateway's machine; the gateway's log has the system's error.",
    )
}

/// The error for a client whose session holds a connection to a primary that another one has left behind.
pub fn left_behind() -> Problem {
    let message = "the session's connection leads to an old primary, and another host serves now";
    Problem::fatal(
        SqlState::ConnectionFailure,
        message,
        "Connect again. An open transaction was rolled back.",
    )
}

/// The error for a client that an operator disconnects.
pub fn killed() -> Problem {
    let message = "terminating connection because an operator has run KILL";
    Problem::fatal(
        SqlState::AdminShutdown,
        message,
        "After KILL of a database, new clients wait until RESUME.",
    )
}

/// The error for a client when the gateway stops.
pub fn stopping() -> Problem {
    Problem::fatal(
        SqlState::AdminShutdown,
        "terminating connection because the gateway is shutting down",
        "Connect again.",
    )
}
