//! Maps errors of the database server and the gateway to problems for HTTP clients. A problem says that the call changed
//! nothing only if the error proves it.

use tokio_postgres::error::{DbError, Severity};

use crate::problem::{Kind, Problem};

const REPEAT: &str = "Repeat the request with the same Idempotency-Key: then it is executed exactly once. If it had no key, check \
    its effect first. PUT, confirm, cancel and extend are safe to repeat.";

/// A call that may have changed data was executed once or not at all.
pub fn outcome_unknown(detail: &str) -> Problem {
    Problem::new(Kind::OutcomeUnknown, detail, REPEAT)
}

/// The answer is lost. The outcome is unknown if the call writes.
pub fn lost(writes: bool, detail: &str) -> Problem {
    if writes {
        outcome_unknown(detail)
    } else {
        Problem::new(Kind::ServerAway, detail, "The request changes nothing. It is safe to repeat.")
    }
}

/// The server or the gateway answered a call with an error.
pub fn refused(error: &DbError, writes: bool) -> Problem {
    let fatal = error.parsed_severity() != Some(Severity::Error);
    let sqlstate = error.code().code();
    let problem = match met(sqlstate, fatal) {
        Kind::OutcomeUnknown => lost(writes, error.message()),
        // The server's hint names the SQL function that creates a queue.
        Kind::NotFound => {
            Problem::new(Kind::NotFound, error.message(), "Create it with PUT /v1/queues/{queue}.")
        }
        kind => Problem::new(kind, error.message(), error.hint().unwrap_or(next_step(kind, sqlstate))),
    };
    problem.with_sqlstate(sqlstate)
}

/// The kind of an error that answers a call.
fn met(sqlstate: &str, fatal: bool) -> Kind {
    match sqlstate {
        "08007" | "40003" => Kind::OutcomeUnknown,
        // From the gateway: it did not send the call, or a take found nothing. From the server: it ran out of a resource and
        // rolled the call back.
        "53000" => Kind::QueueFull,
        "53300" | "53400" => Kind::Busy,
        "57P03" => Kind::ServerAway,
        // The end of a session leaves the outcome of its calls open.
        _ if fatal => Kind::OutcomeUnknown,
        _ => kind(sqlstate),
    }
}

/// The kind of an error that has certainly rolled back its call.
fn kind(sqlstate: &str) -> Kind {
    match sqlstate {
        "42883" | "3F000" | "42P01" | "42501" | "26000" | "0A000" | "42703" => Kind::PackMissing,
        // Deadlock, lock timeout, a cancelled statement, a server that is read-only or shuts down.
        "40001" | "40P01" | "55P03" | "57014" | "25006" | "57P01" | "57P02" => Kind::ServerAway,
        // A queue that does not exist.
        "P0002" => Kind::NotFound,
        _ if sqlstate.starts_with("22") || sqlstate.starts_with("23") => Kind::RefusedArgument,
        _ if sqlstate.starts_with("53") => Kind::Busy,
        _ if sqlstate.starts_with("08") => Kind::ServerAway,
        _ => Kind::Internal,
    }
}

/// Returns whether the statements prepared on this connection may be for functions that no longer exist.
pub fn is_outdated(error: &DbError) -> bool {
    matches!(kind(error.code().code()), Kind::PackMissing)
}

/// The next step for errors without a hint of the server.
pub fn hint(kind: Kind) -> &'static str {
    match kind {
        Kind::QueueFull | Kind::Busy | Kind::ServerAway => {
            "The call changed nothing. Repeat the request after the time in Retry-After."
        }
        Kind::PackMissing => {
            "Run hotrow migrate for this database, and grant the group role to the user of the setting upstream: grant hotrow_caller to USER."
        }
        Kind::RefusedArgument => "See /openapi.json for the values that each field accepts.",
        _ => "Check the logs of Hotrow and of the database server.",
    }
}

/// The next step for this error.
fn next_step(kind: Kind, sqlstate: &str) -> &'static str {
    match (kind, sqlstate) {
        (Kind::PackMissing, "42501") => {
            "Grant the group role to the user of the setting upstream: grant hotrow_caller to USER."
        }
        _ => hint(kind),
    }
}

/// The call could not be sent.
pub fn not_sent(error: &tokio_postgres::Error) -> Problem {
    let Some(error) = error.as_db_error() else { return away(&error.to_string()) };
    let sqlstate = error.code().code();
    let kind = match kind(sqlstate) {
        kind @ (Kind::PackMissing | Kind::Busy) => kind,
        _ => Kind::ServerAway,
    };
    Problem::new(kind, error.message(), next_step(kind, sqlstate)).with_sqlstate(sqlstate)
}

/// The function has other parameters than the API passes.
pub fn mismatch(error: &tokio_postgres::Error) -> Problem {
    Problem::new(Kind::PackMissing, error.to_string(), hint(Kind::PackMissing))
}

/// The function returns a column that cannot be written as JSON.
pub fn unknown_column(column: &tokio_postgres::Column) -> Problem {
    let detail =
        format!("the column {} has the type {}, which the API does not know", column.name(), column.type_());
    Problem::new(Kind::PackMissing, detail, hint(Kind::PackMissing))
}

/// The hotrow schema is not installed.
pub fn not_installed(database: &str) -> Problem {
    let detail =
        format!("the hotrow schema is not installed: the database {database:?} has no schema hotrow");
    Problem::new(Kind::PackMissing, detail, "Run hotrow migrate for this database.")
}

/// The hotrow schema's functions are not trusted, and are not called.
pub fn untrusted(user: &str) -> Problem {
    let detail = format!(
        "the schema hotrow exists, and its functions are not trusted: all of them must belong to the schema's owner. This owner must be \
         {user:?} (the user of the setting upstream), the owner of the database or a superuser; if {user:?} is a superuser, the owner \
         must be a superuser"
    );
    let hint = "Give the schema and all functions in it to such a role: alter schema hotrow owner to ROLE, and the same for each function.";
    Problem::new(Kind::PackMissing, detail, hint)
}

/// The call could not be sent to the server.
pub fn away(detail: &str) -> Problem {
    let detail = format!("the call could not be sent: {detail}");
    Problem::new(Kind::ServerAway, detail, hint(Kind::ServerAway))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_certainly_changed_nothing_are_reported_so() {
        for (sqlstate, fatal, expected) in [
            ("08007", false, Kind::OutcomeUnknown),
            ("08006", true, Kind::OutcomeUnknown),
            ("57P01", true, Kind::OutcomeUnknown),
            ("53000", false, Kind::QueueFull),
            ("53300", true, Kind::Busy),
            ("53200", false, Kind::Busy),
            ("57P03", true, Kind::ServerAway),
            ("57P03", false, Kind::ServerAway),
            ("55P03", false, Kind::ServerAway),
            ("22023", false, Kind::RefusedArgument),
            ("22004", false, Kind::RefusedArgument),
            ("P0002", false, Kind::NotFound),
            ("42883", false, Kind::PackMissing),
            ("42501", false, Kind::PackMissing),
            ("XX000", false, Kind::Internal),
        ] {
            assert_eq!(met(sqlstate, fatal), expected, "{sqlstate} {fatal}");
        }
    }
}
