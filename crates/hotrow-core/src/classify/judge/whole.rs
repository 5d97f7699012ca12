//! Decides about a whole statement. Each part of a statement with WITH is judged as a statement of its own. For the server all
//! parts are one statement with one snapshot, in a batch as directly.

use hotrow_lane::lane::LaneKind;

use crate::classify::facts::Facts;
use crate::classify::judge::decision::{Decision, Packing, packing};
use crate::classify::read::candidate::{Candidate, Operand, ResultColumn, Verb};
use crate::classify::read::query::ROW_LOCK;
use crate::classify::reason::{Reason, StatementKind};

/// The names of a statement's columns, in order. None if PostgreSQL chooses the name.
type Columns = Vec<Option<String>>;

/// Decides about a candidate from the catalog's facts and the parameter types that the client declared.
pub fn decide(candidate: &Candidate, facts: &Facts, types: &[u32]) -> Decision {
    let packing = match candidate.with.is_empty() {
        true => packing(candidate, facts, types),
        false => packing_with(candidate, facts, types),
    };
    match packing {
        Ok(packing) if candidate.locks_row => Decision::Pass {
            reason: Reason::Unsupported(ROW_LOCK),
            effect: candidate.effect(),
            locks: Some(Box::new(packing)),
        },
        Ok(packing) => Decision::Packed(packing),
        Err(reason) => {
            let reads = candidate.verb == Verb::Select && candidate.with.is_empty() && !candidate.locks_row;
            let reason = if reads { reason.in_kind(StatementKind::Reads) } else { reason };
            Decision::Pass { reason, effect: candidate.effect(), locks: None }
        }
    }
}

/// How a statement with WITH is packed.
fn packing_with(whole: &Candidate, facts: &Facts, types: &[u32]) -> Result<Packing, Reason> {
    let mut columns: Vec<Columns> = Vec::with_capacity(whole.with.len());
    let mut parts = Parts { packed: Vec::with_capacity(whole.with.len() + 1), written: Vec::new(), types };
    let unknown = Facts::default();
    for (place, common) in whole.with.iter().enumerate() {
        let facts = facts.with.get(place).unwrap_or(&unknown);
        let statement = resolved(&common.statement, &columns)?;
        parts.add(&statement, facts)?;
        let mut returned = columns_of(&statement, facts, &columns);
        returned.iter_mut().zip(&common.columns).for_each(|(column, name)| *column = Some(name.clone()));
        columns.push(returned);
    }
    parts.add(&resolved(whole, &columns)?, facts)?;
    let mut with = parts.packed;
    let last = with.pop().ok_or(Reason::Empty)?;
    Ok(Packing {
        kind: LaneKind::Write,
        touches_sequence: last.touches_sequence || with.iter().any(|part| part.touches_sequence),
        why: "each of its statements can be packed, and no two of them change the same table".to_owned(),
        with: with.into(),
        ..last
    })
}

/// The parts that are judged so far.
struct Parts<'t> {
    packed: Vec<Packing>,
    /// The OIDs of the tables that they change.
    written: Vec<u32>,
    types: &'t [u32],
}

impl Parts<'_> {
    fn add(&mut self, statement: &Candidate, facts: &Facts) -> Result<(), Reason> {
        let packing = packing(statement, facts, self.types)?;
        let changes = facts.table.as_ref().filter(|_| statement.verb.writes());
        if let Some(table) = changes {
            // PostgreSQL does not tell which of two changes of a row is made. The facts about a view are those about its table.
            if self.written.contains(&table.oid) {
                return Err(Reason::ChangedTwice(table.name.clone()));
            }
            self.written.push(table.oid);
        }
        if packing.distribution.is_some() {
            let why = "is distributed, and its coordinator runs the statements in WITH one by one";
            return Err(Reason::Distributed { table: packing.table, why });
        }
        // Nothing contends for a row that is only read.
        let key = packing.key.filter(|_| changes.is_some());
        self.packed.push(Packing { key, ..packing });
        Ok(())
    }
}

/// The statement with the columns of the statement in WITH that it reads. Fails if it mentions another one: `a.f` can be a call
/// of a function with the whole row.
fn resolved(statement: &Candidate, columns: &[Columns]) -> Result<Candidate, Reason> {
    let mut statement = statement.clone();
    let Some(reading) = &statement.reads else { return Ok(statement) };
    let there = columns.get(reading.place).filter(|columns| !columns.is_empty());
    let there = there.ok_or(Reason::Unsupported("a name in WITH that returns no rows"))?;
    let is_there = |name: &&String| there.iter().flatten().any(|column| column == *name);
    if let Some(missing) = reading.columns.iter().find(|name| !is_there(name)) {
        return Err(Reason::NotReturned(missing.clone()));
    }
    for row in statement.insert.iter_mut().flat_map(|insert| &mut insert.rows) {
        let all = |operand| match operand {
            Operand::All => vec![Operand::Expression; there.len()],
            operand => vec![operand],
        };
        *row = std::mem::take(row).into_iter().flat_map(all).collect();
    }
    Ok(statement)
}

/// The columns that a statement returns.
fn columns_of(statement: &Candidate, facts: &Facts, columns: &[Columns]) -> Columns {
    let of_table = || -> Columns {
        let Some(table) = &facts.table else { return Vec::new() };
        match table.views.first() {
            Some(view) => view.columns.iter().cloned().map(Some).collect(),
            None => table.columns.iter().map(|column| Some(column.name.clone())).collect(),
        }
    };
    let read = statement.reads.as_ref().filter(|_| statement.verb == Verb::Select);
    let all = || match read {
        Some(reading) => columns.get(reading.place).cloned().unwrap_or_default(),
        None => of_table(),
    };
    let each = |result: &ResultColumn| match result {
        ResultColumn::Named(name) => vec![Some(name.clone())],
        ResultColumn::Unnamed => vec![None],
        ResultColumn::All => all(),
    };
    statement.results.iter().flat_map(each).collect()
}
