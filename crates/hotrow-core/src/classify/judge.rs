//! Judges functions, operators and types by the lists and by what else bears their names; never tables.

use super::functions::{Conduct, conduct, is_known_extension_function};
use super::{Candidate, FunctionFact, FunctionName, Reason};

/// Judges functions, operators and types by the lists and by what else bears their names.
pub(super) struct Judge<'f> {
    pub facts: &'f [FunctionFact],
}

impl Judge<'_> {
    /// Whether everything the statement calls may be packed.
    pub(super) fn statement(&self, candidate: &Candidate) -> Result<(), Reason> {
        candidate.functions.iter().try_for_each(|name| self.function(name))?;
        self.operators_and_casts(candidate)
    }

    /// Whether all operators and types it uses are PostgreSQL's own.
    pub(super) fn operators_and_casts(&self, candidate: &Candidate) -> Result<(), Reason> {
        let wild =
            |name: &&String| self.namesakes(name, "operator").any(|fact| fact.visible && !is_tame(fact));
        if let Some(operator) = candidate.operators.iter().find(wild) {
            return Err(Reason::Operator(operator.clone()));
        }
        match candidate.casts.iter().find(|cast| self.namesakes(cast, "type").any(|fact| fact.visible)) {
            Some(cast) => Err(Reason::Cast(cast.clone())),
            None => Ok(()),
        }
    }

    fn namesakes<'a>(&'a self, name: &'a str, kind: &'a str) -> impl Iterator<Item = &'a FunctionFact> {
        self.facts.iter().filter(move |fact| fact.name == name && fact.kind == kind)
    }

    /// Whether calling this function may be packed.
    pub(super) fn function(&self, function: &FunctionName) -> Result<(), Reason> {
        let refuse = |why| Err(Reason::Function { name: function.to_string(), why });
        let mut namesakes = self
            .namesakes(&function.name, "function")
            .filter(|fact| function.schema.as_ref().map_or(fact.visible, |schema| *schema == fact.schema))
            .peekable();
        let users = !function.is_builtin_for_sure() && namesakes.peek().is_some();
        if users && namesakes.any(|fact| !is_tame(fact)) {
            return refuse("is a user's, and not declared immutable");
        }
        let builtin = function.schema.is_none() || function.is_builtin_for_sure();
        match if builtin { conduct(&function.name) } else { Conduct::Unknown } {
            Conduct::Packable | Conduct::MovesSequence => Ok(()),
            Conduct::Unknown if users => Ok(()),
            Conduct::Unknown => refuse("is not known to be harmless"),
            Conduct::Plural => refuse("looks at or returns more than one row"),
            Conduct::Telling(why) => refuse(why),
            Conduct::SetsSequence => refuse("sets a sequence, which no transaction orders"),
            Conduct::ReadsSequence => refuse("reads the session's sequence values"),
            Conduct::LocksSession | Conduct::UnlocksSession => refuse("takes or gives back an advisory lock"),
            Conduct::ChangesSettings => refuse("changes the session's settings"),
        }
    }
}

/// A user's function that may be packed: immutable by its declaration, or of an extension that is known.
fn is_tame(fact: &FunctionFact) -> bool {
    let known = fact.extension.as_deref().is_some_and(|it| is_known_extension_function(it, &fact.name));
    !fact.special && (fact.volatility == Some('i') || known)
}
