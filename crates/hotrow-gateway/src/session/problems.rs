//! The gateway's own errors for clients: no connection, no secret, shutting down.

use hotrow_wire::backend::Problem;

use crate::metrics::{METRICS, RefusalReason};
use crate::server::{held, upstream};

/// The error for a client that gets no connection.
pub fn no_connection(error: &held::Error, fatal: bool) -> Problem {
    because(error, fatal, "the statement was not executed", "It is safe to send the statement again.")
}

/// The error for a client that cannot log in because the gateway has no connection for it.
pub fn log_in_problem(error: &held::Error) -> Problem {
    because(error, true, "the client was not logged in", "Connect again.")
}

fn because(error: &held::Error, fatal: bool, outcome: &str, retry: &str) -> Problem {
    METRICS.refusals.add(refusal(error), 1);
    let retry_later = format!("{retry} server_wait_ms limits how long clients wait for the server.");
    let (code, message, hint) = match error {
        held::Error::AllInUse(_) => (
            "53300",
            error.to_string(),
            "All connections that sessions may hold are in use. End transactions sooner, or raise held_connections_max or held_wait_ms.",
        ),
        held::Error::TableConnectionsInUse(..) => (
            "53300",
            error.to_string(),
            "End transactions sooner, or raise held_connections_max or held_wait_ms in the [[pool]] table.",
        ),
        held::Error::NoLogIn(_) => ("57P03", error.to_string(), "Connect again, or raise server_wait_ms."),
        held::Error::Paused => return Problem { fatal, ..crate::lane::paused(outcome, retry) },
        held::Error::Upstream(upstream::Error::Io { .. } | upstream::Error::Timeout { .. }) => {
            ("57P03", format!("the server can't be reached: {error}; {outcome}"), &*retry_later)
        }
        held::Error::Upstream(upstream::Error::NoPassword(_) | upstream::Error::OtherVerifier(_)) => (
            "28000",
            format!("the gateway can't log in at the server for this client: {error}"),
            "Change users_file or auth_query in the gateway's settings, then reload.",
        ),
        held::Error::Upstream(cause) => (
            "57P03",
            format!("the server gave no connection: {error}; {outcome}"),
            // A refusal by the server, such as too many connections, may be over at the next attempt.
            match cause.is_retryable() || matches!(cause, upstream::Error::Refused { .. }) {
                true => retry,
                false => {
                    "Retrying does not help until the settings of the gateway or of the server are changed."
                }
            },
        ),
    };
    Problem { fatal, code, message, hint: hint.to_owned() }
}

fn refusal(error: &held::Error) -> RefusalReason {
    match error {
        held::Error::AllInUse(_) | held::Error::TableConnectionsInUse(..) => RefusalReason::NoFreeConnection,
        held::Error::Paused => RefusalReason::Paused,
        held::Error::NoLogIn(_) | held::Error::Upstream(_) => RefusalReason::NoServer,
    }
}

/// The error for a client whose secrets cannot be made.
pub fn no_random_numbers() -> Problem {
    Problem::fatal(
        "XX000",
        "the gateway cannot make a secret for this connection: the system gives no random numbers",
        "Check getrandom on the gateway's machine; the gateway's log has the system's error.",
    )
}

/// The error for a client that an operator disconnects.
pub fn killed() -> Problem {
    let message = "terminating connection because an operator has run KILL";
    Problem::fatal("57P01", message, "After KILL of a database, new clients wait until RESUME.")
}

/// The error for a client when the gateway stops.
pub fn stopping() -> Problem {
    Problem::fatal("57P01", "terminating connection because the gateway is shutting down", "Connect again.")
}
