//! Puts what the text says and what the catalogue says together: packed with which key, or passed through and why.

use crate::key::{KeyColumn, KeySource, KeySpec, ValueForm};

use super::functions::{Conduct, conduct, is_known_extension_function};
use super::{
    Candidate, Column, Effect, Facts, FunctionFact, FunctionName, Index, Operand, Reason, TableFacts, Verb,
    table,
};

/// What becomes of a candidate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Run in a batch on a lane.
    Packed(Packing),
    /// Passed through.
    Pass {
        /// Why.
        reason: Reason,
        /// What it may leave behind in the session.
        effect: Effect,
    },
}

/// Which lanes a packed statement may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It changes something, so its answer waits for a flush.
    Write,
    /// It changes nothing.
    Read,
}

/// How a statement is packed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packing {
    /// Which lanes.
    pub kind: Kind,
    /// The table's name, for people; empty without one.
    pub table: String,
    /// How its key is computed; `None` when it contends for no row known beforehand.
    pub key: Option<KeySpec>,
    /// At most so many units of one key in one commit, so that a row's versions fit one page.
    pub rows_per_commit: u16,
    /// It moves a sequence that `currval` or `lastval` of the session would see.
    pub touches_sequence: bool,
    /// It returns rows.
    pub returns_rows: bool,
    /// Why it can be packed, in words.
    pub why: String,
}

/// The names of functions, operators and types whose namesakes outside `pg_catalog` the decision needs to know.
pub fn names_to_look_up(candidate: &Candidate, table: Option<&TableFacts>) -> Vec<String> {
    let own =
        candidate.functions.iter().filter(|name| !name.is_builtin_for_sure()).map(|name| name.name.clone());
    let mut names: Vec<String> =
        own.chain(candidate.operators.iter().cloned()).chain(candidate.casts.iter().cloned()).collect();
    if let Some(table) = table
        && candidate.verb != Verb::Select
    {
        names.extend(table::names_called(candidate, table));
    }
    names.sort();
    names.dedup();
    names
}

/// Decides about a candidate, given what the catalogue says.
pub fn decide(candidate: &Candidate, facts: &Facts) -> Decision {
    match packing(candidate, facts) {
        Ok(packing) => Decision::Packed(packing),
        Err(reason) => Decision::Pass { reason, effect: candidate.effect() },
    }
}

fn packing(candidate: &Candidate, facts: &Facts) -> Result<Packing, Reason> {
    let judge = Judge { facts: &facts.functions };
    judge.statement(candidate)?;
    let moves_sequence = candidate.functions.iter().any(|name| conduct(&name.name) == Conduct::MovesSequence);
    let Some(name) = &candidate.table else {
        if let Some(column) = candidate.columns.first() {
            return Err(Reason::NoColumn(column.clone()));
        }
        return Ok(Packing {
            kind: if moves_sequence { Kind::Write } else { Kind::Read },
            table: String::new(),
            key: None,
            rows_per_commit: MOST_ROWS_PER_COMMIT,
            touches_sequence: moves_sequence,
            returns_rows: true,
            why: "it reads no table".to_owned(),
        });
    };
    let table = facts.table.as_ref().ok_or_else(|| Reason::NoTable(name.to_string()))?;
    table::check_kind(table)?;
    table::check_columns(candidate, table)?;
    if candidate.verb != Verb::Select {
        table::check_writing(candidate, table, &judge)?;
    }
    let (key, why) = match candidate.verb {
        Verb::Insert => insert_key(candidate, table)?,
        Verb::Select | Verb::Update | Verb::Delete => {
            let (index, key) = point_key(candidate, table)?;
            (Some(key), format!("all columns of {} are bound by equality", index.name))
        }
    };
    let writes = candidate.verb != Verb::Select || moves_sequence;
    Ok(Packing {
        kind: if writes { Kind::Write } else { Kind::Read },
        table: format!("{}.{}", table.schema, table.name),
        key,
        rows_per_commit: rows_per_commit(table),
        touches_sequence: moves_sequence || candidate.defaults_move_sequence(table),
        returns_rows: candidate.returns_rows,
        why,
    })
}

/// Judges functions, operators and types by the lists and by what else bears their names.
pub(super) struct Judge<'f> {
    facts: &'f [FunctionFact],
}

impl Judge<'_> {
    fn statement(&self, candidate: &Candidate) -> Result<(), Reason> {
        candidate.functions.iter().try_for_each(|name| self.function(name))?;
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

/// The unique index whose columns are all bound by equality, the primary key first.
fn point_key<'t>(candidate: &Candidate, table: &'t TableFacts) -> Result<(&'t Index, KeySpec), Reason> {
    let bound = |name: &String| {
        candidate.equalities.iter().find(|equality| equality.column == *name).map(|it| it.operand.clone())
    };
    table
        .indexes_by_preference()
        .find_map(|index| Some((index, key_over(table, &index.columns, bound)?)))
        .ok_or_else(|| Reason::NoUniqueIndex(table.name.clone()))
}

/// The key of a row to be inserted: the conflict target if it may be updated, else the primary key if it is given.
fn insert_key(candidate: &Candidate, table: &TableFacts) -> Result<(Option<KeySpec>, String), Reason> {
    let insert = candidate.insert.as_ref().ok_or(Reason::Form("INSERT from a query"))?;
    let given = |name: &String| candidate.inserted(name, table);
    let target = insert.conflict.as_ref().and_then(|conflict| {
        let named = conflict.constraint.as_ref();
        let index = named.and_then(|name| table.unique_indexes.iter().find(|index| index.name == *name));
        let columns = index.map_or(&conflict.columns, |index| &index.columns);
        key_over(table, columns, given).map(|key| (key, columns.join(", ")))
    });
    if insert.conflict.as_ref().is_some_and(|conflict| conflict.updates) && target.is_none() {
        return Err(Reason::ConflictTarget);
    }
    if let Some((key, columns)) = target {
        return Ok((Some(key), format!("the conflict target ({columns}) is given")));
    }
    let primary = table.unique_indexes.iter().find(|index| index.primary);
    match primary.and_then(|index| key_over(table, &index.columns, given)) {
        Some(key) => Ok((Some(key), "the primary key is given".to_owned())),
        None => Ok((None, "an INSERT of new rows waits for nobody known beforehand".to_owned())),
    }
}

/// A key over these columns, if each has a parameter or constant.
fn key_over(
    table: &TableFacts,
    columns: &[String],
    value: impl Fn(&String) -> Option<Operand>,
) -> Option<KeySpec> {
    if columns.is_empty() {
        return None;
    }
    let columns = columns.iter().map(|name| {
        let column = table.column(name)?;
        let source = match value(name)? {
            Operand::Param(index) => KeySource::Param(index),
            Operand::Const(text) => KeySource::Const(text),
            Operand::Default | Operand::Expression => return None,
        };
        Some(KeyColumn {
            name: name.clone(),
            attnum: column.attnum,
            form: ValueForm::of_type(column.type_oid),
            source,
        })
    });
    Some(KeySpec { table: table.oid, columns: columns.collect::<Option<_>>()? })
}

/// Bounds for the number of versions of one row that one commit may leave in a heap page.
const LEAST_ROWS_PER_COMMIT: u16 = 16;
const MOST_ROWS_PER_COMMIT: u16 = 128;

/// How many versions of one row fit a heap page with a fifth to spare: more than that and the updates leave the page.
fn rows_per_commit(table: &TableFacts) -> u16 {
    const PAGE_BYTES: u64 = 8160 * 8 / 10;
    const TUPLE_HEADER_AND_POINTER_BYTES: u64 = 28 + 4;
    let width: u64 = table.columns.iter().map(|column| u64::from(column.avg_width)).sum();
    let rows = PAGE_BYTES / (TUPLE_HEADER_AND_POINTER_BYTES + width.next_multiple_of(8));
    u16::try_from(rows).unwrap_or(u16::MAX).clamp(LEAST_ROWS_PER_COMMIT, MOST_ROWS_PER_COMMIT)
}

impl TableFacts {
    /// Unique indexes, the primary key first, then by name so that every gateway prefers the same.
    fn indexes_by_preference(&self) -> impl Iterator<Item = &Index> {
        let mut indexes: Vec<&Index> = self.unique_indexes.iter().collect();
        indexes.sort_by_key(|index| (!index.primary, &index.name));
        indexes.into_iter()
    }
}

impl Candidate {
    /// What the statement leaves behind in the session when it is passed through.
    pub fn effect(&self) -> Effect {
        let mut effect = Effect { touches_sequence: self.verb == Verb::Insert, ..Effect::NONE };
        for function in &self.functions {
            let of_function = match function.schema.as_deref() {
                None | Some("pg_catalog") => conduct(&function.name).effect(),
                Some("hotrow") => Effect::NONE,
                Some(_) => Effect::UNKNOWN,
            };
            effect = effect.union(of_function);
        }
        let temporary = self.table.as_ref().and_then(|table| table.schema.as_deref());
        effect.temporary |= temporary.is_some_and(|schema| schema.starts_with("pg_temp"));
        effect
    }

    /// It updates an existing row.
    pub(super) fn updates(&self) -> bool {
        let conflict = self.insert.as_ref().and_then(|insert| insert.conflict.as_ref());
        self.verb == Verb::Update || conflict.is_some_and(|conflict| conflict.updates)
    }

    /// The value a single-row INSERT gives a column.
    fn inserted(&self, name: &str, table: &TableFacts) -> Option<Operand> {
        let insert = self.insert.as_ref()?;
        let [row] = insert.rows.as_slice() else { return None };
        row.get(self.position(name, table)?).cloned()
    }

    /// Where a column's value stands in the rows of VALUES.
    fn position(&self, name: &str, table: &TableFacts) -> Option<usize> {
        let columns = &self.insert.as_ref()?.columns;
        if columns.is_empty() {
            table.columns.iter().position(|column| column.name == name)
        } else {
            columns.iter().position(|column| column == name)
        }
    }

    /// True when the column's default is computed for some row.
    pub(super) fn uses_default_of(&self, column: &Column, table: &TableFacts) -> bool {
        let inserted = self.insert.as_ref().is_some_and(|insert| {
            let position = self.position(&column.name, table);
            insert.rows.iter().any(|row| {
                matches!(position.and_then(|position| row.get(position)), None | Some(Operand::Default))
            })
        });
        inserted || self.defaulted.contains(&column.name)
    }

    /// True when a default that is computed moves a sequence.
    fn defaults_move_sequence(&self, table: &TableFacts) -> bool {
        table.columns.iter().any(|column| {
            let sequence = column.identity
                || column.default.as_deref().is_some_and(|default| default.contains("nextval("));
            sequence && self.uses_default_of(column, table)
        })
    }
}
