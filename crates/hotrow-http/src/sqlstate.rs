//! Which problem an error of the database server or the gateway is for an HTTP client. Never guesses that something
//! was not executed: only what says so counts.

use tokio_postgres::error::{DbError, Severity};

use crate::problem::{Kind, Problem};

const REPEAT: &str = "Repeat the request with the same Idempotency-Key: then it is executed once. If it had none, look first; \
    PUT, confirm, cancel and extend may be repeated in any case.";

/// Nobody knows what became of a call that may have changed something.
pub fn outcome_unknown(detail: &str) -> Problem {
    Problem::new(Kind::OutcomeUnknown, detail, REPEAT)
}

/// The answer did not come, or is no answer: what that means depends on whether the call writes.
pub fn lost(writes: bool, detail: &str) -> Problem {
    if writes {
        outcome_unknown(detail)
    } else {
        Problem::new(Kind::ServerAway, detail, "Nothing was changed: it is safe to repeat the request.")
    }
}

/// An error that came in place of the answer of a call that was sent.
pub fn refused(error: &DbError, writes: bool) -> Problem {
    let fatal = error.parsed_severity() != Some(Severity::Error);
    let sqlstate = error.code().code();
    let problem = match met(sqlstate, fatal) {
        Kind::OutcomeUnknown => lost(writes, error.message()),
        // The server's hint names the function that makes one.
        Kind::NotFound => {
            Problem::new(Kind::NotFound, error.message(), "Make it with PUT /v1/queues/{queue}.")
        }
        kind => Problem::new(kind, error.message(), error.hint().unwrap_or(hint(kind))),
    };
    problem.with_sqlstate(sqlstate)
}

/// The kind of an error that a call has met.
fn met(sqlstate: &str, fatal: bool) -> Kind {
    match sqlstate {
        "08007" | "40003" => Kind::OutcomeUnknown,
        // What the gateway says before it has sent anything to the server.
        "53000" => Kind::QueueFull,
        "53300" | "53400" => Kind::Busy,
        "57P03" => Kind::ServerAway,
        // The end of a session says nothing of what was under way in it.
        _ if fatal => Kind::OutcomeUnknown,
        _ => kind(sqlstate),
    }
}

/// The kind of an error that has surely rolled back whatever it met.
fn kind(sqlstate: &str) -> Kind {
    match sqlstate {
        "42883" | "3F000" | "42P01" | "42501" | "26000" | "0A000" | "42703" => Kind::PackMissing,
        // Deadlock, lock timeout, a cancelled statement, a server that is read-only or shuts down.
        "40001" | "40P01" | "55P03" | "57014" | "25006" | "57P01" | "57P02" => Kind::ServerAway,
        // A queue that is not there.
        "P0002" => Kind::NotFound,
        _ if sqlstate.starts_with("22") || sqlstate.starts_with("23") => Kind::RefusedArgument,
        _ if sqlstate.starts_with("53") => Kind::Busy,
        _ if sqlstate.starts_with("08") => Kind::ServerAway,
        _ => Kind::Internal,
    }
}

/// Whether what was prepared on this connection may have been made for functions that are there no more.
pub fn is_outdated(error: &DbError) -> bool {
    matches!(kind(error.code().code()), Kind::PackMissing)
}

/// What to do where the server does not say it.
pub fn hint(kind: Kind) -> &'static str {
    match kind {
        Kind::QueueFull | Kind::Busy | Kind::ServerAway => {
            "The call was not executed: it is safe to repeat the request."
        }
        Kind::PackMissing => {
            "Run hotrow migrate, and let the user of --upstream be a member of the pack's role."
        }
        Kind::RefusedArgument => "See /openapi.json for what each field may be.",
        _ => "Look into Hotrow's log and the database server's.",
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
    Problem::new(kind, error.message(), hint(kind)).with_sqlstate(sqlstate)
}

/// The function is there with other parameters than those that the API has values for.
pub fn mismatch(error: &tokio_postgres::Error) -> Problem {
    Problem::new(Kind::PackMissing, error.to_string(), hint(Kind::PackMissing))
}

/// The function has a column that has no JSON, so that its answer could not be written.
pub fn unknown_column(column: &tokio_postgres::Column) -> Problem {
    let detail =
        format!("the column {} has the type {}, which the API does not know", column.name(), column.type_());
    Problem::new(Kind::PackMissing, detail, hint(Kind::PackMissing))
}

/// The pack's functions are not called.
pub fn untrusted() -> Problem {
    let detail = "the schema hotrow is not there, or the user of --upstream can't trust its functions: \
        all must belong to the schema's owner, which must be that user, the owner of the database or a superuser, and for a \
        superuser a superuser";
    Problem::new(Kind::PackMissing, detail, hint(Kind::PackMissing))
}

/// The server did not take the call.
pub fn away(detail: &str) -> Problem {
    let detail = format!("the call could not be sent: {detail}");
    Problem::new(Kind::ServerAway, detail, hint(Kind::ServerAway))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_surely_not_executed_is_said_to_be_so() {
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
