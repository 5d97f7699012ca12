//! Combines the text's analysis with facts from the catalogue: a statement is packed with a key, or passed
//! through with a reason.

use crate::key::KeySpec;
use crate::lane::LaneKind;

use crate::classify::effects::effect::Effect;
use crate::classify::facts::{Facts, TableFacts};
use crate::classify::judge::lock_statement::LockStatement;
use crate::classify::judge::merging::{Matched, Merging};
use crate::classify::judge::namesakes::Judge;
use crate::classify::judge::row::{MOST_ROWS_PER_COMMIT, insert_key, point_key, rows_per_commit};
use crate::classify::judge::table;
use crate::classify::judge::watch::Watch;
use crate::classify::read::candidate::{Candidate, Output, Verb};
use crate::classify::read::point::ROW_LOCK;
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
    /// It returns rows.
    pub returns_rows: bool,
    /// How calls of several clients are merged, if they can be.
    pub merging: Option<Merging>,
    /// The statement that can lock its row before it runs.
    pub lock_statement: Option<LockStatement>,
    /// It calls a function with a merge rule. Its key belongs to a key space and not to a table.
    pub in_key_space: bool,
    /// The table that it relies on.
    pub watch: Option<Box<Watch>>,
    /// Why it can be packed, in plain English.
    pub why: String,
}

impl Packing {
    /// A statement that returns rows, and of which the catalogue says nothing more.
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
            watch: None,
            why,
        }
    }
}

/// Names of functions, operators, types, collations and constants. The decision needs to know the objects
/// outside `pg_catalog` with these names.
pub fn names_to_look_up(candidate: &Candidate, table: Option<&TableFacts>) -> Vec<String> {
    let own =
        candidate.functions.iter().filter(|name| !name.is_builtin_for_sure()).map(|name| name.name.clone());
    let mut names: Vec<String> = own
        .chain(candidate.operators.iter().cloned())
        .chain(candidate.casts.iter().cloned())
        .chain(candidate.objects.iter().cloned())
        .collect();
    if let Some(table) = table
        && candidate.verb != Verb::Select
    {
        names.extend(table::names_called(candidate, table));
    }
    names.sort();
    names.dedup();
    names
}

/// Decides about a candidate from the catalogue's facts and the parameter types that the client declared.
pub fn decide(candidate: &Candidate, facts: &Facts, types: &[u32]) -> Decision {
    match packing(candidate, facts, types) {
        Ok(packing) if candidate.locks_row => Decision::Pass {
            reason: Reason::Unsupported(ROW_LOCK),
            effect: candidate.effect(),
            locks: Some(Box::new(packing)),
        },
        Ok(packing) => Decision::Packed(packing),
        Err(reason) => Decision::Pass { reason, effect: candidate.effect(), locks: None },
    }
}

fn packing(candidate: &Candidate, facts: &Facts, types: &[u32]) -> Result<Packing, Reason> {
    let judge = Judge { facts: &facts.functions };
    if let Some(call) = &candidate.call {
        if let Some(matched) = Matched::find(call, facts) {
            judge.operators_and_casts(candidate)?;
            judge.arguments(call)?;
            return call_packing(&matched, types);
        }
        if let Output::Rows { .. } = call.output {
            let name = call.function.name.clone();
            return Err(Reason::Function { name, why: "has no merge rule that matches this call" });
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
    table::check_columns(candidate, table)?;
    if candidate.verb != Verb::Select {
        table::check_writing(candidate, table, &judge)?;
    }
    let (key, why) = match candidate.verb {
        Verb::Insert => insert_key(candidate, table)?,
        Verb::Select | Verb::Update | Verb::Delete => {
            let (index, key) = point_key(candidate, table)?;
            let to = if key.is_single() { "by equality" } else { "to a list of values" };
            (Some(key), format!("all columns of {} are bound {to}", index.name))
        }
    };
    // A role that can delete a row may lack the privilege to lock it. A plain INSERT has no row to lock.
    let lock_statement =
        key.as_ref().filter(|_| candidate.updates()).and_then(|key| LockStatement::new(table, key, types));
    let writes = candidate.verb != Verb::Select || moves_sequence;
    let kind = if writes { LaneKind::Write } else { LaneKind::Read };
    Ok(Packing {
        table: format!("{}.{}", table.schema, table.name),
        key,
        rows_per_commit: rows_per_commit(table),
        touches_sequence: moves_any_sequence(candidate, Some(table))
            || writes && table::expressions_move_sequence(candidate, table),
        returns_rows: candidate.returns_rows,
        lock_statement,
        watch: Some(Box::new(Watch::new(name, table))),
        ..Packing::without_table(kind, why)
    })
}

/// Whether it advances a sequence that the table's defaults do not show: the statement names one, or a
/// trigger uses one. It then matters whether any sequence has a cache.
pub fn moves_any_sequence(candidate: &Candidate, table: Option<&TableFacts>) -> bool {
    candidate.names_sequence()
        || candidate.verb != Verb::Select
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
    let (schema, name) = (&rule.batch_schema, &rule.batch_name);
    let why = format!("a merge rule combines concurrent calls into one call of {schema}.{name}");
    Ok(Packing {
        table: format!("{}.{}", rule.schema, rule.name),
        key: Some(key),
        merging,
        in_key_space: true,
        ..Packing::without_table(LaneKind::Write, why)
    })
}
