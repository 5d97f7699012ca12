//! Statements on simple views. The server rewrites such a statement to one on the table below, with the view's columns and
//! conditions. It is therefore judged as a statement on that table, and its key is one of the table's.

use crate::classify::facts::{TableFacts, View};
use crate::classify::judge::namesakes::Judge;
use crate::classify::judge::table;
use crate::classify::read::candidate::{Candidate, Equality, Operand, Verb};
use crate::classify::read::view;
use crate::classify::reason::Reason;

/// A statement on a view, as one on the table below.
#[derive(Debug)]
pub(crate) struct SeenThrough {
    /// The statement with the table's names of columns.
    pub candidate: Candidate,
    /// The columns of the outermost view with those of the table.
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    outer: String,
    /// None if a view computes it.
    below: Option<String>,
}

impl SeenThrough {
    /// None if the statement does not name a view.
    pub(crate) fn new(candidate: &Candidate, table: &TableFacts) -> Result<Option<Self>, Reason> {
        let Some(outermost) = table.views.first() else { return Ok(None) };
        let same = |name: &String| Column { outer: name.clone(), below: Some(name.clone()) };
        let mut columns: Vec<Column> = outermost.columns.iter().map(same).collect();
        for view in &table.views {
            let below = view::columns(&view.definition).map_err(|reason| refused(view, &reason))?;
            for column in &mut columns {
                let place = view.columns.iter().position(|name| Some(name) == column.below.as_ref());
                column.below = place.and_then(|place| below.get(place).cloned().flatten());
            }
        }
        let mut through = SeenThrough { candidate: candidate.clone(), columns };
        through.translate(&candidate.clone())?;
        Ok(Some(through))
    }

    fn translate(&mut self, of_view: &Candidate) -> Result<(), Reason> {
        let all =
            |names: &[String]| names.iter().map(|name| self.changed(name)).collect::<Result<Vec<_>, _>>();
        let assigned = all(&of_view.assigned)?;
        let defaulted = all(&of_view.defaulted)?;
        let insert = match of_view.insert.clone() {
            None => None,
            Some(mut insert) => {
                // The values of an INSERT without names are those of the view's first columns.
                if insert.columns.is_empty() {
                    let given = insert.rows.iter().map(Vec::len).max().unwrap_or(0);
                    insert.columns = self.columns.iter().take(given).map(|it| it.outer.clone()).collect();
                }
                insert.columns = all(&insert.columns)?;
                if let Some(conflict) = &mut insert.conflict {
                    conflict.columns = all(&conflict.columns)?;
                }
                Some(insert)
            }
        };
        let mut columns = Vec::new();
        for name in &of_view.columns {
            columns.extend(self.column(name)?.below.clone());
        }
        let below = |equality: &Equality| {
            let column = self.column(&equality.column).ok()?.below.clone()?;
            Some(Equality { column, operand: equality.operand.clone() })
        };
        let equalities = of_view.equalities.iter().filter_map(below).collect();
        self.candidate = Candidate { assigned, defaulted, insert, columns, equalities, ..of_view.clone() };
        Ok(())
    }

    fn column(&self, outer: &str) -> Result<&Column, Reason> {
        self.columns
            .iter()
            .find(|column| column.outer == outer)
            .ok_or_else(|| Reason::NoColumn(outer.to_owned()))
    }

    /// The table's column that gets a value.
    fn changed(&self, outer: &str) -> Result<String, Reason> {
        self.column(outer)?.below.clone().ok_or_else(|| Reason::Computed(outer.to_owned()))
    }

    /// The view's name of a column of the table.
    pub(crate) fn outer(&self, below: &str) -> Option<&str> {
        let mut columns = self.columns.iter();
        columns.find(|column| column.below.as_deref() == Some(below)).map(|column| &*column.outer)
    }
}

fn refused(view: &View, why: &Reason) -> Reason {
    Reason::View { view: view.name.clone(), why: format!("that is not simple: {why}") }
}

/// Whether the server rewrites the statement to one on the table, and the views run no unknown code.
pub(crate) fn check_views(
    candidate: &Candidate,
    table: &TableFacts,
    judge: &Judge<'_>,
) -> Result<(), Reason> {
    let uses_default = |view: &View| {
        let inserts = candidate.verb == Verb::Insert && leaves_out(candidate, view);
        view.has_defaults && (inserts || !candidate.defaulted.is_empty())
    };
    for view in &table.views {
        let refused = [
            (view.persistence == 't', "that is temporary"),
            (view.has_rules, "that is rewritten by rules"),
            (view.has_triggers, "with triggers of its own"),
            (uses_default(view), "with defaults of its own"),
            (table.has_citus, "in a database with Citus"),
        ];
        if let Some((_, why)) = refused.iter().find(|(refused, _)| *refused) {
            return Err(Reason::View { view: view.name.clone(), why: (*why).to_owned() });
        }
        let suspect = table::suspect(&view.definition, judge);
        // Each read of such a view would advance the sequence.
        let sequence = || {
            table::names_in([&*view.definition].into_iter())
                .into_iter()
                .find(|name| table::is_sequence_function(name))
        };
        if let Some(name) = suspect.or_else(sequence) {
            let why = format!("that calls {name}, which is not known to be harmless");
            return Err(Reason::View { view: view.name.clone(), why });
        }
    }
    Ok(())
}

/// Whether an INSERT leaves a column of the view to its default.
fn leaves_out(candidate: &Candidate, view: &View) -> bool {
    let Some(insert) = &candidate.insert else { return false };
    let given = |row: &Vec<Operand>| row.iter().filter(|value| **value != Operand::Default).count();
    insert.rows.iter().any(|row| given(row) < view.columns.len())
}

/// Whether the rows to be locked follow from the statement's conditions. A view that is a security barrier compares other
/// rows first, and could lock them.
pub(crate) fn can_lock(table: &TableFacts) -> bool {
    table.views.iter().all(|view| !view.security_barrier)
}
