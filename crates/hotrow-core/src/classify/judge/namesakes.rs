//! Judges functions, operators and types by the lists of built-in names and by other objects with the same
//! names. Tables are judged elsewhere.

use crate::classify::facts::{FunctionFact, OwnType, TableFacts};
use crate::classify::known::functions::{Behaviour, behaviour, is_known_extension_function};
use crate::classify::read::candidate::{Call, Candidate, Verb};
use crate::classify::reason::Reason;
use crate::classify::text::names::{FunctionName, TypeName};
use crate::classify::text::source::Source;

/// Judges functions, operators and types by the lists of built-in names and by other objects with the same
/// names.
pub(crate) struct Judge<'f> {
    pub facts: &'f [FunctionFact],
}

impl Judge<'_> {
    /// Whether everything that the statement calls can be packed.
    pub(crate) fn statement(&self, candidate: &Candidate) -> Result<(), Reason> {
        // A row that is updated or deleted is locked in any case. A read would hold the lock longer than it needs.
        let may_lock = matches!(candidate.verb, Verb::Update | Verb::Delete);
        candidate.functions.iter().try_for_each(|name| self.function(name, may_lock))?;
        let is_own = |name: &&&str| self.namesakes(name, "function").any(|fact| fact.visible);
        if let Some(name) = candidate.of_rows.iter().find(is_own) {
            let why = "is user-defined and not proven to use its arguments only";
            return Err(Reason::Function { name: (*name).to_owned(), why });
        }
        self.operators_and_casts(candidate)
    }

    /// Whether the arguments of a call can be computed in a lane.
    pub(crate) fn arguments(&self, call: &Call) -> Result<(), Reason> {
        for name in &call.inner_functions {
            self.function(name, false)?;
            if behaviour(&name.name) == Behaviour::MovesSequence {
                let why = "advances a sequence in an argument";
                return Err(Reason::Function { name: name.to_string(), why });
            }
        }
        Ok(())
    }

    /// Whether all operators and types that it uses are PostgreSQL's own, and all casts between these types.
    pub(crate) fn operators_and_casts(&self, candidate: &Candidate) -> Result<(), Reason> {
        if let Some(cast) = self.facts.iter().find(|fact| fact.kind == "cast" && !self.is_tame(fact)) {
            return Err(Reason::UserCast(cast.name.clone()));
        }
        let wild =
            |name: &&String| self.namesakes(name, "operator").any(|fact| fact.visible && !self.is_tame(fact));
        if let Some(operator) = candidate.operators.iter().find(wild) {
            return Err(Reason::Operator(operator.clone()));
        }
        match candidate.casts.iter().find(|cast| self.namesakes(cast, "type").any(|fact| fact.visible)) {
            Some(cast) => Err(Reason::Cast(cast.clone())),
            None => Ok(()),
        }
    }

    /// Whether each user's type that it casts to is the type of a column of its table. The check at the batch's end then covers
    /// the type. A domain's checks are among the expressions of the table, which are judged for a write.
    pub(crate) fn own_casts(&self, candidate: &Candidate, table: Option<&TableFacts>) -> Result<(), Reason> {
        let is_of_column = |cast: &TypeName| {
            let means = |fact: &FunctionFact, own: &OwnType| {
                let named = cast.schema.as_ref().map_or(fact.visible, |schema| *schema == fact.schema);
                named && fact.schema == own.schema && (candidate.verb.writes() || !own.is_domain)
            };
            let owns = table
                .into_iter()
                .flat_map(|table| &table.columns)
                .filter_map(|column| column.own_type.as_ref());
            owns.filter(|own| own.name == cast.name)
                .any(|own| self.namesakes(&cast.name, "type").any(|fact| means(fact, own)))
        };
        match candidate.own_casts.iter().find(|cast| !is_of_column(cast)) {
            Some(cast) => Err(Reason::Cast(cast.to_string())),
            None => Ok(()),
        }
    }

    fn namesakes<'a>(&'a self, name: &'a str, kind: &'a str) -> impl Iterator<Item = &'a FunctionFact> {
        self.facts.iter().filter(move |fact| fact.name == name && fact.kind == kind)
    }

    /// Whether a call of this function can be packed. `may_lock` is whether it may try to take a lock.
    pub(crate) fn function(&self, function: &FunctionName, may_lock: bool) -> Result<(), Reason> {
        let refuse = |why| Err(Reason::Function { name: function.to_string(), why });
        let mut namesakes = self
            .namesakes(&function.name, "function")
            .filter(|fact| function.schema.as_ref().map_or(fact.visible, |schema| *schema == fact.schema))
            .peekable();
        let users = !function.is_builtin_for_sure() && namesakes.peek().is_some();
        if users && namesakes.any(|fact| !self.is_tame(fact)) {
            return refuse("is user-defined and not proven to use its arguments only");
        }
        let builtin = function.schema.is_none() || function.is_builtin_for_sure();
        match if builtin { behaviour(&function.name) } else { Behaviour::Unknown } {
            Behaviour::Packable | Behaviour::MovesSequence => Ok(()),
            Behaviour::Unknown if users => Ok(()),
            Behaviour::Unknown => refuse("is not known to be harmless"),
            Behaviour::Plural => refuse("reads or returns more than one row"),
            Behaviour::Observing(why) => refuse(why),
            Behaviour::SetsSequence => refuse("sets a sequence, regardless of the order of transactions"),
            Behaviour::ReadsSequence => refuse("reads the session's sequence values"),
            Behaviour::TriesLock if may_lock => Ok(()),
            Behaviour::TriesLock | Behaviour::LocksSession | Behaviour::UnlocksSession => {
                refuse("takes or releases an advisory lock")
            }
            Behaviour::ChangesSettings => refuse("changes the session's settings"),
        }
    }
}

/// Words that an immutable function's source does not need, because they reach beyond its arguments. EXCEPTION could catch the
/// timeouts of a lane.
const REACHING_WORDS: &str = "
    alter analyze call close cluster commit copy create cursor deallocate delete discard do drop exception execute explain
    fetch from grant import insert into listen load lock merge move notify open operator perform prepare raise refresh reindex
    reset revoke rollback savepoint security set show table temp temporary truncate unlisten update vacuum with
";

impl Judge<'_> {
    /// Whether an object with one of these names outside `pg_catalog` can run in a lane, or on a connection
    /// that other clients get afterwards. This is so for a function or operator whose source uses its
    /// arguments only, and for a known extension. A declaration as immutable proves nothing: PostgreSQL
    /// allows such a function to change settings.
    pub(crate) fn is_tame(&self, fact: &FunctionFact) -> bool {
        let is_immutable = !fact.special && fact.volatility == Some('i');
        match fact.kind.as_str() {
            // Reading the name runs no code.
            "relation" | "text search configuration" | "text search dictionary" | "collation" | "setting" => {
                return true;
            }
            // The cast has no function, or one in C. Only a superuser can add a function in C.
            "cast" if fact.language.is_none() => return true,
            "cast" if matches!(fact.language.as_deref(), Some("c" | "internal")) => return is_immutable,
            _ => {}
        }
        if let Some(extension) = fact.extension.as_deref().filter(|_| fact.kind != "cast") {
            return (!fact.special || fact.kind == "type")
                && is_known_extension_function(extension, &fact.name);
        }
        if fact.kind == "type" {
            return !fact.special;
        }
        if fact.kind == "operator" && fact.language.as_deref() == Some("internal") {
            return is_immutable; // one of PostgreSQL's own functions, or a superuser's
        }
        let is_readable = matches!(fact.language.as_deref(), Some("sql" | "plpgsql"));
        let source = fact.source.as_deref().filter(|_| is_readable).and_then(Source::read);
        is_immutable
            && source.is_some_and(|source| {
                source.mentions(REACHING_WORDS).is_none()
                    && self.functions(&source).iter().all(|called| self.is_plain(called))
                    && source.operators().iter().all(|name| self.namesakes(name, "operator").next().is_none())
                    && self.types(&source)
            })
    }

    /// All functions that a source calls.
    pub(crate) fn functions(&self, source: &Source) -> Vec<FunctionName> {
        source.functions(|name| self.namesakes(name, "function").any(|fact| fact.visible))
    }

    /// Whether a source names no type that runs code. A domain has checks and a default, a base type has
    /// functions.
    pub(crate) fn types(&self, source: &Source) -> bool {
        source.words().all(|word| self.namesakes(&word, "type").all(|fact| self.is_tame(fact)))
    }

    /// Whether a name can only mean one of PostgreSQL's own functions that can be packed.
    fn is_plain(&self, function: &FunctionName) -> bool {
        matches!(function.schema.as_deref(), None | Some("pg_catalog"))
            && behaviour(&function.name) == Behaviour::Packable
            && self.namesakes(&function.name, "function").next().is_none()
    }

    /// Whether an operator in a table's own expressions can be packed, regardless of its schema.
    pub(crate) fn operator(&self, name: &str) -> bool {
        self.namesakes(name, "operator").all(|fact| self.is_tame(fact))
    }
}

/// The names in the sources of user-defined functions and casts, for a second catalog query.
pub(crate) fn names_in_sources(facts: &[FunctionFact]) -> Vec<String> {
    let sources = facts
        .iter()
        .filter(|fact| fact.extension.is_none() || fact.kind == "cast")
        .filter_map(|fact| fact.source.as_deref());
    let mut names: Vec<String> = sources
        .filter_map(Source::read)
        .flat_map(|source| source.names().into_iter().chain(source.words_of_constants()))
        .collect();
    names.sort();
    names.dedup();
    names
}
