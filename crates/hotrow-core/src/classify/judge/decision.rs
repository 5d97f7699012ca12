//! Combines the analysis of a statement, or of one in WITH, with facts from the catalog: it can be packed with a key, or not
//! for a reason.

use std::sync::Arc;

use hotrow_lane::key::Key;
use hotrow_lane::lane::LaneKind;

use crate::distribution::Distribution;
use crate::key::{KeySource, KeySpec, ValueForm};

use crate::classify::effects::effect::Effect;
use crate::classify::facts::{Facts, MergeRule, TableFacts};
use crate::classify::judge::declared::Declared;
use crate::classify::judge::lock_statement::LockStatement;
use crate::classify::judge::merging::{Matched, Merging};
use crate::classify::judge::namesakes::Judge;
use crate::classify::judge::row::{
    MOST_ROWS_PER_COMMIT, arrays, head_key, head_limit, insert_key, is_exact, point_key, rows_per_commit,
};
use crate::classify::judge::table;
use crate::classify::judge::view::{SeenThrough, check_views};
use crate::classify::judge::watch::Watch;
use crate::classify::known::builtin_types;
use crate::classify::read::candidate::{Candidate, Output, Verb};
use crate::classify::reason::Reason;

/// The decision about a candidate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Run in a batch on a lane.
    Packed(Packing),
    /// Passed through.
    Pass {
        /// Why.
        reason: Reason,
        /// Its possible effects on the session.
        effect: Effect,
        /// If it locks a row until its transaction ends: how it would be packed otherwise.
        locks: Option<Box<Packing>>,
    },
}

/// How a statement is packed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packing {
    /// The lanes that can run it.
    pub kind: LaneKind,
    /// The table's name, for people. Empty if there is no table.
    pub table: String,
    /// How its key is computed. `None` if the row for which it contends is not known beforehand.
    pub key: Option<KeySpec>,
    /// Maximum number of units of one key in one commit. With more, the versions of the row would not fit one
    /// page.
    pub rows_per_commit: u16,
    /// It advances a sequence, which changes `currval` and `lastval` of the session.
    pub touches_sequence: bool,
    pub returns_rows: bool,
    /// How calls of several clients are merged, if they can be.
    pub merging: Option<Merging>,
    /// The statement that can lock its row before it runs.
    pub lock_statement: Option<LockStatement>,
    /// It calls a function with a rule. Its key belongs to a key space and not to a table.
    pub in_key_space: bool,
    /// It calls a function of which only a pack rule says that it leaves nothing in the session.
    pub is_declared: bool,
    /// A query with LIMIT finds its rows: the largest number of them. It takes any that nobody has locked, and the key stands for
    /// all of them.
    pub takes: Option<Box<KeySource>>,
    /// The table that it relies on.
    pub watch: Option<Box<Watch>>,
    /// How the table is distributed over several servers, if it is.
    pub distribution: Option<Arc<Distribution>>,
    /// The other statements of its WITH. Each has a table, a key and a lock statement of its own.
    pub with: Box<[Packing]>,
    /// The parameters whose elements are rows that it inserts.
    pub arrays: Box<[u16]>,
    /// Why it can be packed, in plain English.
    pub why: String,
}

impl Packing {
    /// Whether it only reads rows by their keys, not from a distributed table, and a batch can check the table. Such a read can
    /// run on a replica.
    pub fn is_plain_read(&self) -> bool {
        let is_read = self.kind == LaneKind::Read && self.merging.is_none();
        is_read && self.distribution.is_none() && self.watch.is_some()
    }

    /// Whether its key names one row. Transactions that begin with the same row wait for each other in the gateway.
    pub fn is_of_one_row(&self) -> bool {
        let names_one = self.key.as_ref().is_some_and(KeySpec::is_single);
        names_one && self.takes.is_none() && !self.in_key_space && self.with.is_empty()
    }

    /// Whether the outcome of this statement in a transaction can be foretold, so that it can be held back: it changes the row
    /// of a key or adds one, and the client needs no more than its count.
    pub fn may_be_held_back(&self, candidate: &Candidate) -> bool {
        let is_plain = self.kind == LaneKind::Write
            && !self.returns_rows
            && !self.in_key_space
            && !self.is_declared
            && self.merging.is_none()
            // A sequence moves also if the transaction is rolled back, and the session can read its value.
            && !self.touches_sequence
            && self.takes.is_none()
            && self.with.is_empty()
            && self.distribution.is_none()
            && candidate.with.is_empty()
            && candidate.call.is_none();
        let insert = candidate.insert.as_ref();
        is_plain
            && match candidate.verb {
                Verb::Update => self.is_of_one_row(),
                Verb::Insert => insert.is_some_and(|insert| insert.conflict.is_none() && !insert.is_bulk()),
                _ => false,
            }
    }

    /// All statements that it consists of: itself, and those in its WITH.
    pub fn parts(&self) -> impl Iterator<Item = &Packing> {
        std::iter::once(self).chain(&self.with)
    }

    /// The one of them that can contend for this row, with its key. No two of them change the same table.
    pub fn part_of(&self, key: Key) -> Option<(&Packing, &KeySpec)> {
        self.parts().find_map(|part| Some((part, part.key.as_ref().filter(|spec| spec.table == key.table)?)))
    }

    /// A statement that returns rows, and of which the catalog says nothing more.
    fn without_table(kind: LaneKind, why: String) -> Self {
        Packing {
            kind,
            table: String::new(),
            key: None,
            rows_per_commit: MOST_ROWS_PER_COMMIT,
            touches_sequence: false,
            returns_rows: true,
            merging: None,
            lock_statement: None,
            in_key_space: false,
            is_declared: false,
            takes: None,
            watch: None,
            distribution: None,
            with: Box::default(),
            arrays: Box::default(),
            why,
        }
    }
}

/// Names of functions, operators, types, collations and constants in one part of a statement. The decision needs to know the objects
/// outside `pg_catalog` with these names.
pub(crate) fn names_to_look_up(candidate: &Candidate, table: Option<&TableFacts>) -> Vec<String> {
    let own =
        candidate.functions.iter().filter(|name| !name.is_builtin_for_sure()).map(|name| name.name.clone());
    let mut names: Vec<String> = own
        .chain(candidate.operators.iter().cloned())
        .chain(candidate.casts.iter().cloned())
        .chain(candidate.objects.iter().cloned())
        .chain(candidate.own_casts.iter().map(|cast| cast.name.clone()))
        .chain(candidate.of_rows.iter().map(|name| (*name).to_owned()))
        .collect();
    if let Some(table) = table {
        names.extend(table::names_in(table.views.iter().map(|view| &*view.definition)));
        // If the statement cannot be seen through its view, it is passed through in any case.
        let through = SeenThrough::new(candidate, table).unwrap_or_default();
        let candidate = through.as_ref().map_or(candidate, |through| &through.candidate);
        if candidate.verb.writes() {
            names.extend(table::names_called(candidate, table));
        }
    }
    names.sort();
    names.dedup();
    names
}

/// How one part of a statement is packed: the whole, if it has no WITH.
pub(crate) fn packing(candidate: &Candidate, facts: &Facts, types: &[u32]) -> Result<Packing, Reason> {
    let judge = Judge { facts: &facts.functions };
    judge.own_casts(candidate, facts.table.as_ref())?;
    if let Some(call) = &candidate.call {
        if let Some(matched) = Matched::find(call, facts) {
            judge.operators_and_casts(candidate)?;
            judge.arguments(call)?;
            return call_packing(&matched, types);
        }
        if let Some(declared) = Declared::find(call, facts) {
            judge.operators_and_casts(candidate)?;
            judge.arguments(call)?;
            return declared_packing(&declared);
        }
        if let Output::Rows { .. } = call.output {
            let name = call.function.to_string();
            return Err(Reason::Function { name, why: "has no rule that matches this call" });
        }
    }
    judge.statement(candidate)?;
    let moves_sequence = candidate.names_sequence();
    if facts.cached_sequences && moves_any_sequence(candidate, facts.table.as_ref()) {
        let why = "may use a sequence with a cache, and each connection caches its own values";
        return Err(Reason::Function { name: "nextval".to_owned(), why });
    }
    let Some(name) = &candidate.table else {
        if let Some(column) = candidate.columns.first() {
            return Err(Reason::NoColumn(column.clone()));
        }
        let kind = if moves_sequence { LaneKind::Write } else { LaneKind::Read };
        let packing = Packing::without_table(kind, "it reads no table".to_owned());
        return Ok(Packing { touches_sequence: moves_sequence, ..packing });
    };
    let table = facts.table.as_ref().ok_or_else(|| Reason::NoTable(name.to_string()))?;
    table::check_kind(table)?;
    let through = SeenThrough::new(candidate, table)?;
    check_views(candidate, table, &judge)?;
    let candidate = through.as_ref().map_or(candidate, |through| &through.candidate);
    table::check_columns(candidate, table)?;
    if candidate.verb.writes() {
        table::check_writing(candidate, table, &judge)?;
    }
    let (key, why) = key_and_reason(candidate, table)?;
    let writes = candidate.verb.writes() || moves_sequence;
    let touches_sequence = moves_any_sequence(candidate, Some(table))
        || writes && table::expressions_move_sequence(candidate, table);
    if let Some(distribution) = &table.distribution {
        table::check_distribution(table, distribution, key.as_ref(), touches_sequence)?;
        check_exact(candidate, table, distribution, types)?;
    }
    // A role that can delete a row may lack the privilege to lock it. A plain INSERT has no row to lock.
    let lock_statement = key
        .as_ref()
        .filter(|_| candidate.updates() && candidate.head.is_none())
        .and_then(|key| LockStatement::new(table, through.as_ref(), key, types));
    let kind = if writes { LaneKind::Write } else { LaneKind::Read };
    Ok(Packing {
        table: format!("{}.{}", table.schema, table.name),
        key,
        rows_per_commit: if candidate.head.is_some() { MOST_ROWS_PER_COMMIT } else { rows_per_commit(table) },
        takes: candidate.head.as_ref().map(head_limit).transpose()?.map(Box::new),
        touches_sequence,
        returns_rows: candidate.returns_rows,
        lock_statement,
        watch: Some(Box::new(Watch::new(name, table))),
        distribution: table.distribution.clone(),
        arrays: arrays(candidate, types)?,
        ..Packing::without_table(kind, why)
    })
}

/// What the statement contends for, and why it can be packed.
fn key_and_reason(candidate: &Candidate, table: &TableFacts) -> Result<(Option<KeySpec>, String), Reason> {
    if let Some(head) = &candidate.head {
        check_head(table)?;
        let why = "a query with LIMIT finds its rows in the same table".to_owned();
        return Ok((Some(head_key(candidate, head, table)?), why));
    }
    if candidate.verb == Verb::Insert {
        return insert_key(candidate, table);
    }
    let (index, key) = point_key(candidate, table)?;
    let to = if key.is_single() { "by equality" } else { "to a list of values" };
    Ok((Some(key), format!("all columns of {} are bound {to}", index.name)))
}

/// Checks that a query for the first rows reads the table itself, and all of it.
fn check_head(table: &TableFacts) -> Result<(), Reason> {
    if let Some(view) = table.views.first() {
        let why = "whose first rows the statement takes".to_owned();
        return Err(Reason::View { view: view.name.clone(), why });
    }
    if table.distribution.is_some() {
        let why = "is distributed, and its first rows can be on any node";
        return Err(Reason::Distributed { table: table.name.clone(), why });
    }
    Ok(())
}

/// Checks that the value that decides on the node is the one that the row has.
fn check_exact(
    candidate: &Candidate,
    table: &TableFacts,
    distribution: &Distribution,
    types: &[u32],
) -> Result<(), Reason> {
    let column = table.column(&distribution.column);
    if column.is_some_and(|column| is_exact(candidate, table, column, types)) {
        return Ok(());
    }
    let why = "is distributed, and the statement converts the value that decides where its row is";
    Err(Reason::Distributed { table: table.name.clone(), why })
}

/// Whether it advances a sequence that the table's defaults do not show: the statement names one, or a
/// trigger uses one. It then matters whether any sequence has a cache.
pub(crate) fn moves_any_sequence(candidate: &Candidate, table: Option<&TableFacts>) -> bool {
    candidate.names_sequence()
        || candidate.verb.writes()
            && table.is_some_and(|table| table::triggers_move_sequence(candidate, table))
}

/// A call of a function with a merge rule, merged or not.
fn call_packing(matched: &Matched<'_>, types: &[u32]) -> Result<Packing, Reason> {
    let rule = matched.rule;
    let key = matched.key().ok_or(Reason::Unsupported("a call whose arguments do not show its key"))?;
    let merging = matched.merging(types);
    if rule.wait_argument.is_some() && merging.is_none() {
        // A call that is not merged would wait in the lane.
        return Err(Reason::Unsupported("a call that can wait but cannot be merged"));
    }
    if rule.may_change_other_nodes {
        // A direct call commits on one node. A merged one would need a prepared transaction on each node of its keys, and the
        // coordinator could not tell the outcome of the parts after a failure.
        let why = "is not a function of the hotrow schema and may change rows of several nodes (the database has Citus)";
        return Err(Reason::Distributed { table: format!("{}.{}", rule.schema, rule.name), why });
    }
    if let Some(distribution) = &rule.distribution {
        check_distributed_call(rule, distribution, &key, merging.as_ref(), types)?;
    }
    let (schema, name) = (&rule.batch_schema, &rule.batch_name);
    let why = format!("a merge rule combines concurrent calls into one call of {schema}.{name}");
    Ok(Packing {
        table: format!("{}.{}", rule.schema, rule.name),
        key: Some(key),
        merging,
        in_key_space: true,
        distribution: rule.distribution.clone(),
        ..Packing::without_table(LaneKind::Write, why)
    })
}

/// A call of a function with a pack rule. The sequences that it advances are not known.
fn declared_packing(declared: &Declared<'_>) -> Result<Packing, Reason> {
    let why = "a pack rule declares that a call leaves nothing in the session".to_owned();
    Ok(Packing {
        table: declared.function()?,
        key: declared.key(),
        in_key_space: true,
        is_declared: true,
        touches_sequence: true,
        ..Packing::without_table(LaneKind::Write, why)
    })
}

/// Checks that a call of a distributed hotrow schema shows on which node its rows are. Otherwise it runs through the coordinator,
/// but in no lane, because the commit on another node could not be asked about after a crash.
fn check_distributed_call(
    rule: &MergeRule,
    distribution: &Distribution,
    key: &KeySpec,
    merging: Option<&Merging>,
    types: &[u32],
) -> Result<(), Reason> {
    let not = |why| Err(Reason::Distributed { table: format!("{}.{}", rule.schema, rule.name), why });
    if let Err(why) = distribution.check() {
        return not(why);
    }
    let Some(column) = key.columns.iter().find(|column| column.name == distribution.column) else {
        return not("is distributed, and its arguments do not show on which node its rows are");
    };
    // The server converts a value of another type before it computes the hash, for example removes its blanks.
    let is_plain = match column.source {
        KeySource::Param(param) => {
            let declared = types.get(usize::from(param)).copied().unwrap_or_default();
            builtin_types::OPEN.contains(&declared)
                || match ValueForm::of_type(distribution.type_oid) {
                    ValueForm::Integer => ValueForm::of_type(declared) == ValueForm::Integer,
                    _ => matches!(declared, builtin_types::TEXT | builtin_types::VARCHAR),
                }
        }
        _ => true,
    };
    if !is_plain {
        return not("is distributed, and its key is of another type than the function's parameter");
    }
    // The OIDs of other types differ from node to node.
    let elements = merging.map(|merging| merging.elements.as_slice()).unwrap_or_default();
    if elements.iter().any(|element| !builtin_types::is_builtin(element.type_oid)) {
        return not("is distributed and has arguments of types that are not PostgreSQL's own");
    }
    Ok(())
}
