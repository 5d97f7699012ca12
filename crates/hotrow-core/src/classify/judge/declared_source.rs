//! What the source of a function shows against its pack rule. Functions that the source names are read, too, as far as their facts
//! are there: those that the function itself names.

use crate::classify::facts::FunctionFact;
use crate::classify::known::functions::{Behaviour, behaviour};
use crate::classify::text::source::Source;

/// Calls of functions in calls. Beyond this, a source is not looked at.
const DEPTH_MAX: usize = 8;

/// Why the function does not do what its rule declares, as the end of a sentence. None if nothing is known against it.
pub(crate) fn contradiction(function: &FunctionFact, facts: &[FunctionFact]) -> Option<&'static str> {
    of_function(function, facts, 0)
}

fn of_function(function: &FunctionFact, facts: &[FunctionFact], depth: usize) -> Option<&'static str> {
    if !matches!(function.language.as_deref(), Some("sql" | "plpgsql")) {
        return None; // only the declaration tells
    }
    match function.source.as_deref().map(Source::read) {
        Some(Some(source)) => of_source(&source, facts, depth),
        Some(None) => Some("has a source that cannot be read"),
        None => None, // the body is stored as a query, which names its objects
    }
}

fn of_source(source: &Source, facts: &[FunctionFact], depth: usize) -> Option<&'static str> {
    if source.has_handler() {
        return Some("catches errors, and with them the timeouts of a lane");
    }
    if source.changes_session() {
        return Some("changes the session, although it has a pack rule");
    }
    let is_user = |name: &str| facts.iter().any(|fact| fact.kind == "function" && fact.name == name);
    let called = source.functions(is_user).into_iter().find_map(|name| {
        let mut users = facts.iter().filter(|fact| {
            let is_meant = name.schema.as_ref().is_none_or(|schema| *schema == fact.schema);
            fact.kind == "function" && fact.name == name.name && is_meant
        });
        let builtin = matches!(name.schema.as_deref(), None | Some("pg_catalog"));
        let is_known =
            users.clone().next().is_some() || builtin && behaviour(&name.name) != Behaviour::Unknown;
        match behaviour(&name.name) {
            _ if depth > 0 && !is_known && !source.is_table(&name.name) => {
                Some("calls a function that calls others")
            }
            _ if depth >= DEPTH_MAX => Some("calls functions in too many levels"),
            behaviour if builtin && of_builtin(&name.name, behaviour).is_some() => {
                of_builtin(&name.name, behaviour)
            }
            _ => users.find_map(|fact| of_function(fact, facts, depth + 1)),
        }
    });
    // A constant can be a statement.
    called.or_else(|| source.constants().find_map(|constant| of_source(&constant, facts, depth)))
}

/// What a function of PostgreSQL's own does that a declared one must not do.
fn of_builtin(name: &str, behaviour: Behaviour) -> Option<&'static str> {
    match behaviour {
        Behaviour::ReadsSequence => Some("reads the session's sequence values"),
        Behaviour::LocksSession | Behaviour::UnlocksSession => {
            Some("takes or releases a lock of the session")
        }
        Behaviour::ChangesSettings => Some("changes the session, although it has a pack rule"),
        Behaviour::Observing(why) => {
            let is_other = matches!(name, "pg_advisory_unlock" | "pg_advisory_unlock_shared")
                || why.starts_with("depends on")
                || why.starts_with("waits");
            is_other.then_some(why)
        }
        _ => None,
    }
}
