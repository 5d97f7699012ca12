//! What the source of a function shows against its pack rule. Functions that the source names are read, too, as far as their facts
//! are there: those that the function itself names.

use crate::classify::facts::FunctionFact;
use crate::classify::known::functions::{Behaviour, behaviour};
use crate::classify::text::source::Source;

/// Why the function does not do what its rule declares, as the end of a sentence. None if nothing is known against it.
pub(crate) fn contradiction(function: &FunctionFact, facts: &[FunctionFact]) -> Option<&'static str> {
    Reading { facts, read: Vec::new() }.of_function(function, true)
}

struct Reading<'f> {
    facts: &'f [FunctionFact],
    /// The functions that are read, or being read, by their versions.
    read: Vec<&'f str>,
}

impl<'f> Reading<'f> {
    /// `is_first` is whether the function has the rule itself, so that the facts about all names in its source are there.
    fn of_function(&mut self, function: &'f FunctionFact, is_first: bool) -> Option<&'static str> {
        if self.read.contains(&&*function.version) {
            return None;
        }
        self.read.push(&function.version);
        if !matches!(function.language.as_deref(), Some("sql" | "plpgsql")) {
            return None; // only the declaration tells
        }
        match function.source.as_deref().map(Source::read) {
            Some(Some(source)) => self.of_source(&source, is_first),
            Some(None) => Some("has a source that cannot be read"),
            None => None, // the body is stored as a query, which names its objects
        }
    }

    fn of_source(&mut self, source: &Source, is_first: bool) -> Option<&'static str> {
        if source.has_handler() {
            return Some("catches errors, and with them the timeouts of a lane");
        }
        if source.changes_session() {
            return Some("changes the session, although it has a pack rule");
        }
        let facts = self.facts;
        let is_user = |name: &str| facts.iter().any(|fact| fact.kind == "function" && fact.name == name);
        for called in source.functions(is_user) {
            let users = facts.iter().filter(|fact| {
                let is_meant = called.schema.as_ref().is_none_or(|schema| *schema == fact.schema);
                fact.kind == "function" && fact.name == called.name && is_meant
            });
            let builtin = matches!(called.schema.as_deref(), None | Some("pg_catalog"));
            let behaviour = if builtin { behaviour(&called.name) } else { Behaviour::Unknown };
            if let Some(why) = of_builtin(&called.name, behaviour) {
                return Some(why);
            }
            let is_known = behaviour != Behaviour::Unknown || users.clone().next().is_some();
            if !is_first && !is_known && !source.is_table(&called.name) {
                return Some("calls a function that calls others");
            }
            if let Some(why) = users.into_iter().find_map(|fact| self.of_function(fact, false)) {
                return Some(why);
            }
        }
        // A constant can be a statement.
        source.constants().find_map(|constant| self.of_source(&constant, is_first))
    }
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
