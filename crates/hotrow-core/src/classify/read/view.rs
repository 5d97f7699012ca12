//! Reads the definition of a view, as the server prints it, and tells which column of the relation below each of its
//! columns is. Whether the code in the definition is harmless is judged elsewhere.

use sqlparser::ast::{Query, SelectItem, Statement};

use crate::classify::read::analyse::parse;
use crate::classify::read::builder::CandidateBuilder;
use crate::classify::read::candidate::Verb;
use crate::classify::read::expression::column_of;
use crate::classify::read::query::plain_query;
use crate::classify::reason::Reason;
use crate::classify::text::{screen, tokens};

/// The columns of a view over one relation, in order: the column below, or none if the view computes the value. A view
/// with a clause that makes several rows one, or chooses among them, is rejected.
pub(crate) fn columns(definition: &str) -> Result<Vec<Option<String>>, Reason> {
    let tokens = tokens::read(definition.trim_end().trim_end_matches(';'))?;
    screen::screen(&tokens)?;
    let Statement::Query(query) = parse(&tokens)? else { return Err(Reason::Unsupported("no query")) };
    let Query { with: None, order_by: None, limit_clause: None, fetch: None, locks, .. } = &*query else {
        return Err(Reason::Unsupported("WITH, ORDER BY, LIMIT or OFFSET"));
    };
    let select = plain_query(&query)?;
    let ([table], true) = (select.from.as_slice(), locks.is_empty()) else {
        return Err(Reason::Unsupported("a join"));
    };
    let mut builder = CandidateBuilder::new(Verb::Select);
    builder.table(table)?;
    if let Some(selection) = &select.selection {
        builder.references.expression(selection)?;
    }
    builder.projection(&select.projection)?;
    let column = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, alias: _ } => Ok(column_of(expr)),
        _ => Err(Reason::Unsupported("an unusual item in the select list")),
    };
    select.projection.iter().map(column).collect()
}
