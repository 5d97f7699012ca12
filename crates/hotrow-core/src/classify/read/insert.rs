//! Reads an INSERT, with VALUES, with rows of arrays or with the rows of a statement in WITH, into the parts that the decision needs. Other
//! statements are read in `point`.

use sqlparser::ast::{
    ConflictTarget, Expr, Insert, OnConflictAction, OnInsert, Query, Select, SelectItem, SetExpr,
    TableAliasWithoutColumns, TableObject,
};

use crate::classify::read::builder::{CandidateBuilder, is_default, is_null, value_of};
use crate::classify::read::candidate::{Candidate, Common, Conflict, InsertParts, Operand, Verb};
use crate::classify::read::expression::column_name;
use crate::classify::read::{point, query, unnest};
use crate::classify::reason::Reason;
use crate::classify::text::names::{TableName, folded, parts};

/// INSERT ... VALUES, or INSERT ... SELECT from arrays or from an earlier statement in WITH.
pub(crate) fn insert(insert: &Insert, earlier: &[Common]) -> Result<Candidate, Reason> {
    let Insert {
        insert_token: _,
        optimizer_hints: _,
        or: None,
        ignore: false,
        into: true,
        table: TableObject::TableName(table),
        table_alias,
        columns,
        overwrite: false,
        source,
        assignments,
        partitioned: None,
        after_columns,
        has_table_keyword: false,
        on,
        returning,
        output: None,
        replace_into: false,
        priority: None,
        insert_alias: None,
        settings: None,
        format_clause: None,
        multi_table_insert_type: None,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause: None,
    } = insert
    else {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    };
    if !assignments.is_empty()
        || !after_columns.is_empty()
        || !multi_table_into_clauses.is_empty()
        || !multi_table_when_clauses.is_empty()
    {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    }
    let mut builder = CandidateBuilder::new(Verb::Insert);
    builder.name_table(TableName::new(table)?);
    if let Some(TableAliasWithoutColumns { explicit: _, alias }) = table_alias {
        builder.rename_table(folded(alias));
    }
    let mut insert = InsertParts::default();
    for column in columns {
        let [part] = column.0.as_slice() else {
            return Err(Reason::Unsupported("INSERT into a part of a column"));
        };
        let ident = part.as_ident().ok_or(Reason::Unsupported("INSERT into a part of a column"))?;
        insert.columns.push(column_name(ident)?);
    }
    builder.references.columns.extend(insert.columns.iter().cloned());
    insert.rows = match source {
        Some(source) => match &*source.body {
            SetExpr::Select(body) if unnest::makes_rows(body) => {
                vec![unnested(source, body, &mut insert, &mut builder)?]
            }
            SetExpr::Select(body) => vec![selected(source, body, earlier, &mut builder)?],
            _ => rows(source, &mut builder)?,
        },
        None => vec![Vec::new()],
    };
    insert.conflict = conflict(on.as_ref(), &mut builder)?;
    builder.candidate.insert = Some(insert);
    builder.returning(returning.as_deref())?;
    Ok(builder.finish())
}

/// The rows of VALUES.
fn rows(source: &Query, builder: &mut CandidateBuilder) -> Result<Vec<Vec<Operand>>, Reason> {
    let refused = Reason::Unsupported("INSERT from a query");
    let SetExpr::Values(values) = &*source.body else { return Err(refused) };
    query::check_bare(source).map_err(|_| refused)?;
    if values.explicit_row || values.value_keyword {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    }
    values.rows.iter().map(|row| row.content.iter().map(|value| operand(value, builder)).collect()).collect()
}

/// The values of the rows that come from arrays.
fn unnested(
    source: &Query,
    body: &Select,
    insert: &mut InsertParts,
    builder: &mut CandidateBuilder,
) -> Result<Vec<Operand>, Reason> {
    let of_arrays = unnest::rows(source, body)?;
    builder.references.add(of_arrays.references);
    insert.arrays = Some(of_arrays.params);
    Ok(of_arrays.row)
}

/// One row of what is selected from an earlier statement in WITH. There can be any number of such rows.
fn selected(
    source: &Query,
    body: &Select,
    earlier: &[Common],
    builder: &mut CandidateBuilder,
) -> Result<Vec<Operand>, Reason> {
    let select = point::select(source, earlier)?;
    if select.reads.is_none() || select.call.is_some() || select.limited || select.locks_row {
        return Err(Reason::Unsupported("INSERT from a query"));
    }
    let items = body.projection.iter().map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, alias: _ } => {
            value_of(expr).unwrap_or(Operand::Expression)
        }
        _ => Operand::All,
    });
    builder.select_from_common(select);
    Ok(items.collect())
}

fn operand(value: &Expr, builder: &mut CandidateBuilder) -> Result<Operand, Reason> {
    if is_default(value) {
        return Ok(Operand::Default);
    }
    builder.references.expression(value)?;
    if is_null(value) {
        return Ok(Operand::Null);
    }
    Ok(value_of(value).unwrap_or(Operand::Expression))
}

/// ON CONFLICT.
fn conflict(on: Option<&OnInsert>, builder: &mut CandidateBuilder) -> Result<Option<Conflict>, Reason> {
    let on = match on {
        None => return Ok(None),
        Some(OnInsert::OnConflict(on)) => on,
        Some(_) => return Err(Reason::Unsupported("a clause that PostgreSQL does not have")),
    };
    let mut conflict = Conflict { columns: Vec::new(), constraint: None, updates: false };
    match &on.conflict_target {
        None => {}
        Some(ConflictTarget::Columns(columns)) => {
            conflict.columns = columns.iter().map(column_name).collect::<Result<_, _>>()?;
            builder.references.columns.extend(conflict.columns.iter().cloned());
        }
        Some(ConflictTarget::OnConstraint(name)) => conflict.constraint = parts(name)?.pop(),
    }
    if let OnConflictAction::DoUpdate(update) = &on.action {
        conflict.updates = true;
        builder.references.qualifiers.push("excluded".to_owned());
        builder.assignments(&update.assignments)?;
        if let Some(selection) = &update.selection {
            builder.references.expression(selection)?;
        }
    }
    Ok(Some(conflict))
}
