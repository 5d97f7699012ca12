//! Reads the query that finds the rows of an UPDATE or DELETE: the first rows of the same table in some order that no other
//! transaction has locked. It stands in WHERE, in FROM or USING, or in WITH. Which key the statement gets is decided in `row`.

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, LimitClause, LockClause, Query, SelectItem, TableAlias,
    TableFactor, TableWithJoins,
};

use crate::classify::known::functions::{Behaviour, behaviour};
use crate::classify::read::builder::{CandidateBuilder, value_of};
use crate::classify::read::candidate::{Head, Operand, ResultColumn, Verb};
use crate::classify::read::expression::{Found, References};
use crate::classify::read::query::{ROW_LOCK, is_bare, ordered_by, plain_query_with_locks};
use crate::classify::read::unnest::called;
use crate::classify::reason::Reason;
use crate::classify::text::names::{TableName, folded, parts};

/// The address of a row. A query and the statement around it see the same version of a row, so it identifies the row there.
pub(crate) const ADDRESS: &str = "ctid";

/// Why such a query is not packed: others would wait behind it, also those that would find other rows.
pub(crate) const WAITS: &str = "a query for its rows that waits for locked ones";

/// A query that finds the first rows of a table that nobody has locked.
#[derive(Debug)]
pub(crate) struct Finder {
    table: TableName,
    /// The columns that it returns.
    results: Vec<ResultColumn>,
    head: Head,
    references: References,
}

/// The queries in WITH that find rows, each until a statement uses it.
#[derive(Debug, Default)]
pub(crate) struct Finders(Vec<(String, Finder)>);

impl Finders {
    pub(crate) fn put(&mut self, name: String, finder: Finder) {
        self.0.push((name, finder));
    }

    fn take(&mut self, name: &str) -> Option<Finder> {
        let place = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.remove(place).1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a query has LIMIT or FETCH.
pub(crate) fn is_limited(query: &Query) -> bool {
    limit_of(query).is_some()
}

/// The number of rows that it returns at most.
fn limit_of(query: &Query) -> Option<Operand> {
    match (&query.limit_clause, &query.fetch) {
        (Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by: _ }), None) => {
            value_of(limit)
        }
        (None, Some(fetch)) => match &fetch.quantity {
            Some(quantity) => value_of(quantity),
            None => Some(Operand::Const("1".to_owned())),
        },
        _ => None,
    }
}

impl Finder {
    /// `refused` is the reason if the query is not of this kind.
    pub(crate) fn read(query: &Query, refused: &'static str) -> Result<Self, Reason> {
        let limit = limit_of(query).ok_or(Reason::Unsupported(refused))?;
        let select = plain_query_with_locks(query)?;
        let [table] = select.from.as_slice() else { return Err(Reason::Unsupported(refused)) };
        let mut builder = CandidateBuilder::new(Verb::Select);
        builder.table(table)?;
        if let Some(selection) = &select.selection {
            builder.condition(selection)?;
        }
        for item in &select.projection {
            match address(item, &builder.references)? {
                true => builder.candidate.results.push(ResultColumn::Named(ADDRESS.to_owned())),
                false => builder.projection(std::slice::from_ref(item))?,
            }
        }
        for by in query.order_by.iter().flat_map(ordered_by) {
            builder.references.expression(&by.expr)?;
        }
        let tries = |name| behaviour(name) == Behaviour::TriesLock;
        let waits = !skips_locked(&query.locks, &builder.references)?
            && !builder.references.functions.iter().any(|function| tries(&*function.name));
        if waits {
            return Err(Reason::Unsupported(WAITS));
        }
        let CandidateBuilder { candidate, references } = builder;
        let table = candidate.table.ok_or(Reason::Unsupported(refused))?;
        let head = Head { ties: Vec::new(), equalities: candidate.equalities, limit };
        Ok(Finder { table, results: candidate.results, head, references })
    }

    /// The columns that it returns. None if all of the table's are among them.
    fn columns(&self) -> Option<Vec<String>> {
        let has_all = self.results.contains(&ResultColumn::All);
        let named = self.results.iter().filter_map(|result| match result {
            ResultColumn::Named(name) => Some(name.clone()),
            ResultColumn::Unnamed | ResultColumn::All => None,
        });
        (!has_all).then(|| named.collect())
    }
}

/// The rows that an UPDATE or DELETE takes: those of its WHERE, which a query can find.
pub(crate) struct Taker<'f> {
    finders: &'f mut Finders,
    /// The reason if no condition of the statement names a row.
    refused: Reason,
}

impl<'f> Taker<'f> {
    /// `others` are the tables in FROM or USING, and `refused` is the reason if they are not one query that finds rows.
    pub(crate) fn new(
        builder: &mut CandidateBuilder,
        others: &[TableWithJoins],
        finders: &'f mut Finders,
        refused: &'static str,
    ) -> Result<Self, Reason> {
        let other = match others {
            [] => return Ok(Taker { finders, refused: Reason::NoEquality }),
            [other] if other.joins.is_empty() => &other.relation,
            _ => return Err(Reason::Unsupported(refused)),
        };
        let (finder, name) = match other {
            TableFactor::Table { name, alias, args: None, sample: None, .. } => {
                let name = TableName::new(name)?;
                let found =
                    Some(&name).filter(|name| name.schema.is_none()).and_then(|it| finders.take(&it.name));
                (
                    found.ok_or(Reason::Unsupported(refused))?,
                    alias_of(alias.as_ref(), refused)?.unwrap_or(name.name),
                )
            }
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                let name = alias_of(alias.as_ref(), refused)?.ok_or(Reason::Unsupported(refused))?;
                (Finder::read(subquery, refused)?, name)
            }
            _ => return Err(Reason::Unsupported(refused)),
        };
        builder.references.found = Some(Found { name, columns: finder.columns() });
        find(builder, finder)?;
        Ok(Taker { finders, refused: Reason::Unsupported(refused) })
    }

    /// WHERE.
    pub(crate) fn selection(
        mut self,
        builder: &mut CandidateBuilder,
        selection: Option<&Expr>,
    ) -> Result<(), Reason> {
        if let Some(selection) = selection {
            self.condition(builder, selection)?;
        }
        let is_bound = match &builder.candidate.head {
            Some(head) => !head.ties.is_empty(),
            None => !builder.candidate.equalities.is_empty(),
        };
        if is_bound { Ok(()) } else { Err(self.refused) }
    }

    fn condition(&mut self, builder: &mut CandidateBuilder, expr: &Expr) -> Result<(), Reason> {
        match expr {
            Expr::Nested(inner) => self.condition(builder, inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.condition(builder, left)?;
                self.condition(builder, right)
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => match (query_of(left), query_of(right))
            {
                (None, Some(query)) => self.found_in(builder, left, query),
                (Some(query), None) => self.found_in(builder, right, query),
                _ if tie(builder, left, right)? || tie(builder, right, left)? => Ok(()),
                _ => builder.condition(expr),
            },
            Expr::InSubquery { expr, subquery, negated: false } => self.found_in(builder, expr, subquery),
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, is_some: _ } => {
                match query_of(right) {
                    Some(query) => self.found_in(builder, left, query),
                    None => builder.condition(expr),
                }
            }
            _ => builder.condition(expr),
        }
    }

    /// A column that is compared with what a query returns: with the rows that it finds, or with the elements of an array.
    fn found_in(
        &mut self,
        builder: &mut CandidateBuilder,
        column: &Expr,
        query: &Query,
    ) -> Result<(), Reason> {
        const REFUSED: &str = "a subquery";
        let column = builder.references.own_column(column)?.ok_or(Reason::Unsupported(REFUSED))?;
        builder.references.operator("=");
        if let Some(array) = unnested(query) {
            builder.references.columns.insert(column.clone());
            return builder.unnested(column, array);
        }
        let finder = match self.named_in(query) {
            Some(finder) => finder,
            None => Finder::read(query, REFUSED)?,
        };
        let returns_one = matches!(finder.results.as_slice(), [ResultColumn::Named(_)]);
        find(builder, finder)?;
        if !returns_one {
            return Err(Reason::Unsupported(REFUSED));
        }
        bind(builder, column);
        Ok(())
    }

    /// The query in WITH of which this one returns a column.
    fn named_in(&mut self, query: &Query) -> Option<Finder> {
        let select = plain_query_with_locks(query).ok()?;
        let ([table], [SelectItem::UnnamedExpr(item)]) =
            (select.from.as_slice(), select.projection.as_slice())
        else {
            return None;
        };
        let is_bare = select.selection.is_none() && query.order_by.is_none() && query.locks.is_empty();
        let mut reader = CandidateBuilder::new(Verb::Select);
        reader.table(table).ok()?;
        let name =
            reader.candidate.table.filter(|name| name.schema.is_none() && is_bare && !is_limited(query))?;
        let column = reader.references.own_column(item).ok()??;
        let mut finder = self.finders.take(&name.name)?;
        match finder.columns() {
            Some(columns) if !columns.contains(&column) => finder.results.clear(),
            columns => {
                finder.references.columns.extend(columns.is_none().then(|| column.clone()));
                finder.results = vec![ResultColumn::Named(column)];
            }
        }
        Some(finder)
    }
}

/// The query that an operand consists of.
fn query_of(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Nested(inner) => query_of(inner),
        Expr::Subquery(query) => Some(query),
        Expr::Function(function) => match &function.args {
            FunctionArguments::Subquery(query) if function.name.to_string().eq_ignore_ascii_case("array") => {
                Some(query)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The array whose elements a query returns: `SELECT unnest(array)`.
fn unnested(query: &Query) -> Option<&Expr> {
    let select = plain_query_with_locks(query).ok()?;
    let is_alone = is_bare(query) && select.from.is_empty() && select.selection.is_none();
    let [SelectItem::UnnamedExpr(call @ Expr::Function(_))] = select.projection.as_slice() else {
        return None;
    };
    called(call).map(|(_, array)| array).filter(|_| is_alone)
}

fn alias_of(alias: Option<&TableAlias>, refused: &'static str) -> Result<Option<String>, Reason> {
    match alias {
        None => Ok(None),
        Some(TableAlias { explicit: _, name, columns, at: None }) if columns.is_empty() => {
            Ok(Some(folded(name)))
        }
        Some(_) => Err(Reason::Unsupported(refused)),
    }
}

/// The statement takes the rows that this query finds.
fn find(builder: &mut CandidateBuilder, finder: Finder) -> Result<(), Reason> {
    if builder.candidate.head.is_some() || builder.candidate.table.as_ref() != Some(&finder.table) {
        return Err(Reason::Unsupported("a subquery on another table, or a second one"));
    }
    builder.candidate.head = Some(finder.head);
    builder.references.extend(finder.references);
    Ok(())
}

/// Whether this is a comparison of a column with one of the query in FROM.
fn tie(builder: &mut CandidateBuilder, own: &Expr, other: &Expr) -> Result<bool, Reason> {
    let Expr::CompoundIdentifier(names) = other else { return Ok(false) };
    let ([qualifier, column], Some(found)) = (names.as_slice(), &builder.references.found) else {
        return Ok(false);
    };
    if folded(qualifier) != found.name {
        return Ok(false);
    }
    let of_table = found.column(&folded(column))?;
    let Ok(Some(own)) = builder.references.own_column(own) else { return Ok(false) };
    builder.references.operator("=");
    builder.references.columns.extend(of_table);
    bind(builder, own);
    Ok(true)
}

/// Only rows whose column has a value that the query returns are changed.
fn bind(builder: &mut CandidateBuilder, column: String) {
    if column != ADDRESS {
        builder.references.columns.insert(column.clone());
    }
    if let Some(head) = &mut builder.candidate.head {
        head.ties.push(column);
    }
}

/// Whether an item of a list is the address of the row.
fn address(item: &SelectItem, references: &References) -> Result<bool, Reason> {
    let SelectItem::UnnamedExpr(expr) = item else { return Ok(false) };
    Ok(references.own_column(expr)?.is_some_and(|name| name == ADDRESS))
}

/// Whether a row lock never waits: it skips locked rows, or reports an error for one.
fn skips_locked(locks: &[LockClause], references: &References) -> Result<bool, Reason> {
    let lock = match locks {
        [] => return Ok(false),
        [lock] => lock,
        _ => return Err(Reason::Unsupported(ROW_LOCK)),
    };
    if let Some(name) = &lock.of {
        references.qualifier(&parts(name)?)?;
    }
    Ok(lock.nonblock.is_some())
}
