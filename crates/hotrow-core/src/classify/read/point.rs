//! Reads a SELECT, UPDATE or DELETE of one row into a candidate. INSERT is read in `insert`, and `decision`
//! judges the candidate.

use sqlparser::ast::{
    Delete, Expr, FromTable, Query, SelectItem, TableWithJoins, Update, UpdateTableFromKind,
};

use crate::classify::known::functions::COUNT;
use crate::classify::read::builder::CandidateBuilder;
use crate::classify::read::call;
use crate::classify::read::candidate::{Candidate, Common, Output, ResultColumn, Verb};
use crate::classify::read::head::{Finders, Taker};
use crate::classify::read::query::{is_bare, locks_row, ordered_by, plain_query};
use crate::classify::reason::Reason;

pub(crate) fn update(update: &Update, finders: &mut Finders) -> Result<Candidate, Reason> {
    let Update {
        update_token: _,
        optimizer_hints: _,
        table,
        assignments,
        from,
        selection,
        returning,
        output: None,
        or: None,
        order_by,
        limit: None,
    } = update
    else {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    };
    let others: &[TableWithJoins] = match from {
        None => &[],
        Some(UpdateTableFromKind::AfterSet(tables)) => tables,
        Some(UpdateTableFromKind::BeforeSet(_)) => {
            return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
        }
    };
    if !order_by.is_empty() {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    }
    let mut builder = CandidateBuilder::new(Verb::Update);
    builder.table(table)?;
    let taker = Taker::new(&mut builder, others, finders, "UPDATE with FROM")?;
    builder.assignments(assignments)?;
    taker.selection(&mut builder, selection.as_ref())?;
    builder.returning(returning.as_deref())?;
    Ok(builder.finish())
}

pub(crate) fn delete(delete: &Delete, finders: &mut Finders) -> Result<Candidate, Reason> {
    let Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from: FromTable::WithFromKeyword(from),
        using,
        selection,
        returning,
        output: None,
        order_by,
        limit: None,
    } = delete
    else {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    };
    let ([table], true, true) = (from.as_slice(), tables.is_empty(), order_by.is_empty()) else {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    };
    let mut builder = CandidateBuilder::new(Verb::Delete);
    builder.table(table)?;
    let others = using.as_deref().unwrap_or_default();
    let taker = Taker::new(&mut builder, others, finders, "DELETE with USING")?;
    taker.selection(&mut builder, selection.as_ref())?;
    builder.returning(returning.as_deref())?;
    Ok(builder.finish())
}

/// SELECT of one row, without FROM, or from an earlier statement in WITH.
pub(crate) fn select(query: &Query, earlier: &[Common]) -> Result<Candidate, Reason> {
    let select = plain_query(query)?;
    let mut builder = CandidateBuilder::new(Verb::Select);
    builder.candidate.locks_row = locks_row(&query.locks);
    // A merged call has no other clauses.
    if let Some((call, references)) = call::call(select).filter(|_| is_bare(query)) {
        if let Output::Rows { .. } = call.output {
            builder.call(call, references);
            return Ok(builder.finish());
        }
        builder.candidate.call = Some(call);
    }
    match select.from.as_slice() {
        [] => {
            if let Some(selection) = &select.selection {
                builder.references.expression(selection)?;
            }
        }
        [table] => {
            builder.table_or_common(table, earlier)?;
            builder.candidate.limited = query.limit_clause.is_some() || query.fetch.is_some();
            match &select.selection {
                selection if builder.candidate.reads.is_none() => builder.selection(selection.as_ref())?,
                Some(selection) => builder.references.expression(selection)?,
                None => {}
            }
        }
        _ => return Err(Reason::Unsupported("a join")),
    }
    match builder.candidate.reads.is_some() && is_count(&select.projection) {
        true => {
            builder.references.of_rows.insert(COUNT);
            builder.candidate.results.push(ResultColumn::Unnamed);
        }
        false => builder.projection(&select.projection)?,
    }
    for by in query.order_by.iter().flat_map(ordered_by) {
        builder.references.expression(&by.expr)?;
    }
    Ok(builder.finish())
}

/// Whether a list consists of `count(*)`.
fn is_count(projection: &[SelectItem]) -> bool {
    let [SelectItem::UnnamedExpr(Expr::Function(function))] = projection else { return false };
    let text = function.to_string().to_ascii_lowercase();
    text == "count(*)" || text == "pg_catalog.count(*)"
}
