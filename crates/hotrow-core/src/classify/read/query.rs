//! The clauses around the SELECT of a query: checks that a query has only those that are known to be harmless. Its expressions are
//! read in `point` and `head`.

use sqlparser::ast::{
    GroupByExpr, LimitClause, LockClause, LockType, OrderBy, OrderByExpr, OrderByKind, OrderBySort, Query,
    Select, SelectFlavor, SetExpr,
};

use crate::classify::read::builder::value_of;
use crate::classify::reason::Reason;

/// Why a statement with a row lock is not packed.
pub(crate) const ROW_LOCK: &str = "a row lock such as FOR UPDATE, which outlives the statement";

/// Whether a statement waits for its row and locks it against other writers.
pub(crate) fn locks_row(locks: &[LockClause]) -> bool {
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

/// Whether nothing stands around the SELECT of a query.
pub(crate) fn is_bare(query: &Query) -> bool {
    query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
}

/// The SELECT of a query without other clauses, or with FOR UPDATE.
pub(crate) fn plain_query(query: &Query) -> Result<&Select, Reason> {
    if query.with.is_none() && !query.locks.is_empty() && !locks_row(&query.locks) {
        return Err(Reason::Unsupported(ROW_LOCK));
    }
    plain_query_with_locks(query)
}

/// The SELECT of a query without other clauses, or with row locks of any kind.
pub(crate) fn plain_query_with_locks(query: &Query) -> Result<&Select, Reason> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks: _,
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
pub(crate) fn ordered_by(order_by: &OrderBy) -> &[OrderByExpr] {
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
