//! Reads a SELECT, UPDATE or DELETE of one row into a candidate. INSERT is read in `insert`, and `decision`
//! judges the candidate.

use sqlparser::ast::{
    Delete, FromTable, GroupByExpr, LimitClause, LockClause, LockType, OrderBy, OrderByExpr, OrderByKind,
    OrderBySort, Query, Select, SelectFlavor, SetExpr, Update,
};

use crate::classify::read::builder::{CandidateBuilder, value_of};
use crate::classify::read::call;
use crate::classify::read::candidate::{Candidate, Common, Output, Verb};
use crate::classify::reason::Reason;

pub(crate) fn update(update: &Update) -> Result<Candidate, Reason> {
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
    if from.is_some() {
        return Err(Reason::Unsupported("UPDATE with FROM"));
    }
    if !order_by.is_empty() {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    }
    let mut builder = CandidateBuilder::new(Verb::Update);
    builder.table(table)?;
    builder.assignments(assignments)?;
    builder.selection(selection.as_ref())?;
    builder.returning(returning.as_deref())?;
    Ok(builder.finish())
}

pub(crate) fn delete(delete: &Delete) -> Result<Candidate, Reason> {
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
    if using.is_some() {
        return Err(Reason::Unsupported("DELETE with USING"));
    }
    let ([table], true, true) = (from.as_slice(), tables.is_empty(), order_by.is_empty()) else {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    };
    let mut builder = CandidateBuilder::new(Verb::Delete);
    builder.table(table)?;
    builder.selection(selection.as_ref())?;
    builder.returning(returning.as_deref())?;
    Ok(builder.finish())
}

/// SELECT of one row, without FROM, or from an earlier statement in WITH.
pub(crate) fn select(query: &Query, earlier: &[Common]) -> Result<Candidate, Reason> {
    let select = plain_query(query)?;
    let mut builder = CandidateBuilder::new(Verb::Select);
    builder.candidate.locks_row = locks_row(&query.locks);
    // A merged call has no other clauses.
    let is_bare = query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    if let Some((call, references)) = call::call(select).filter(|_| is_bare) {
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
    builder.projection(&select.projection)?;
    for by in query.order_by.iter().flat_map(ordered_by) {
        builder.references.expression(&by.expr)?;
    }
    Ok(builder.finish())
}

/// Why a statement with a row lock is not packed.
pub(crate) const ROW_LOCK: &str = "a row lock such as FOR UPDATE, which outlives the statement";

/// Whether a statement waits for its row and locks it against other writers.
fn locks_row(locks: &[LockClause]) -> bool {
    matches!(locks, [LockClause { lock_type: LockType::Update, nonblock: None, .. }])
}

/// Checks that an UPDATE, DELETE, INSERT or VALUES has no clauses of a query around it.
pub(crate) fn check_bare(query: &Query) -> Result<(), Reason> {
    let Query {
        with,
        body: _,
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    };
    if with.is_some() {
        return Err(Reason::Unsupported("WITH within WITH"));
    }
    match locks.is_empty() && pipe_operators.is_empty() {
        true => Ok(()),
        false => Err(Reason::Unsupported("a clause that PostgreSQL does not have")),
    }
}

/// The SELECT of a query without other clauses.
pub(crate) fn plain_query(query: &Query) -> Result<&Select, Reason> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
    };
    let refused = [
        (with.is_some(), "WITH"),
        (
            !order_is_plain(order_by.as_ref()),
            "ORDER BY with USING, or a clause that PostgreSQL does not have",
        ),
        (!locks.is_empty() && !locks_row(locks), ROW_LOCK),
        (!pipe_operators.is_empty(), "a clause that PostgreSQL does not have"),
        (!limit_is_plain(limit_clause.as_ref()), "LIMIT or OFFSET with an expression"),
        (fetch.as_ref().is_some_and(|f| f.with_ties || f.percent), "FETCH with TIES or PERCENT"),
        (
            fetch.as_ref().and_then(|f| f.quantity.as_ref()).is_some_and(|q| value_of(q).is_none()),
            "FETCH with an expression",
        ),
    ];
    refuse(&refused)?;
    match &**body {
        SetExpr::Select(select) => plain_select(select),
        SetExpr::SetOperation { .. } => Err(Reason::Unsupported("UNION, INTERSECT or EXCEPT")),
        _ => Err(Reason::Unsupported("a query other than a plain SELECT")),
    }
}

/// A SELECT without a clause that needs more than one row.
fn plain_select(select: &Select) -> Result<&Select, Reason> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: _,
        projection: _,
        exclude: None,
        into,
        from: _,
        lateral_views,
        prewhere: None,
        selection: _,
        connect_by,
        group_by: GroupByExpr::Expressions(group_by, group_modifiers),
        cluster_by,
        distribute_by,
        sort_by,
        having,
        named_window,
        qualify: None,
        window_before_qualify: _,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    } = select
    else {
        return Err(Reason::Unsupported("DISTINCT, or a clause that PostgreSQL does not have"));
    };
    refuse(&[
        (into.is_some(), "SELECT INTO"),
        (!group_by.is_empty() || !group_modifiers.is_empty(), "GROUP BY"),
        (having.is_some(), "HAVING"),
        (!named_window.is_empty(), "WINDOW"),
        (!lateral_views.is_empty() || !connect_by.is_empty(), "a clause that PostgreSQL does not have"),
        (
            !cluster_by.is_empty() || !distribute_by.is_empty() || !sort_by.is_empty(),
            "a clause that PostgreSQL does not have",
        ),
    ])?;
    Ok(select)
}

fn refuse(conditions: &[(bool, &'static str)]) -> Result<(), Reason> {
    match conditions.iter().find(|(refused, _)| *refused) {
        Some((_, what)) => Err(Reason::Unsupported(what)),
        None => Ok(()),
    }
}

/// The expressions of an ORDER BY. ORDER BY ALL has none.
fn ordered_by(order_by: &OrderBy) -> &[OrderByExpr] {
    match &order_by.kind {
        OrderByKind::Expressions(expressions) => expressions,
        OrderByKind::All(_) => &[],
    }
}

/// The order of each type is PostgreSQL's own.
fn order_is_plain(order_by: Option<&OrderBy>) -> bool {
    let plain =
        |by: &OrderByExpr| by.with_fill.is_none() && !matches!(by.options.sort, Some(OrderBySort::Using(_)));
    order_by.is_none_or(|order_by| {
        let expressions = ordered_by(order_by);
        order_by.interpolate.is_none() && !expressions.is_empty() && expressions.iter().all(plain)
    })
}

fn limit_is_plain(limit: Option<&LimitClause>) -> bool {
    match limit {
        None => true,
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
            limit.iter().chain(offset.iter().map(|o| &o.value)).all(|expr| value_of(expr).is_some())
                && limit_by.is_empty()
        }
        Some(LimitClause::OffsetCommaLimit { .. }) => false,
    }
}
