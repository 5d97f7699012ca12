//! Reads a statement with WITH: each of its parts becomes a candidate of its own. Whether all of them can be packed together
//! is judged elsewhere.

use sqlparser::ast::{Cte, Query, SetExpr, Statement, TableAlias, With};

use crate::classify::read::candidate::{Call, Candidate, Common, Output, Verb};
use crate::classify::read::head::{Finder, Finders, is_limited};
use crate::classify::read::query::ROW_LOCK;
use crate::classify::read::{insert, point, query};
use crate::classify::reason::Reason;
use crate::classify::text::names::folded;
use crate::classify::text::screen::ONLY_READS;
use crate::limits;

/// A statement with WITH. `last` is the part after it. A query with LIMIT in WITH can be a read by key. If it is not, it can be
/// the query that finds the rows of a later UPDATE or DELETE.
pub(crate) fn statement(with: &With, last: &Query) -> Result<Candidate, Reason> {
    let can_find = || with.cte_tables.iter().any(|cte| is_limited(&cte.query));
    read(with, last, false)
        .or_else(|reason| if can_find() { read(with, last, true).map_err(|_| reason) } else { Err(reason) })
}

/// `finds` is whether a query with LIMIT finds the rows of a later statement.
fn read(with: &With, last: &Query, finds: bool) -> Result<Candidate, Reason> {
    let With { with_token: _, recursive, cte_tables } = with;
    if *recursive {
        return Err(Reason::Unsupported("WITH RECURSIVE"));
    }
    if cte_tables.len() >= limits::UNIT_STATEMENTS_MAX {
        return Err(Reason::TooLarge("long"));
    }
    let mut earlier: Vec<Common> = Vec::with_capacity(cte_tables.len());
    let mut finders = Finders::default();
    let mut names: Vec<String> = Vec::with_capacity(cte_tables.len());
    for cte in cte_tables {
        let Cte { alias, query, from: None, materialized: _, closing_paren_token: _ } = cte else {
            return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
        };
        let TableAlias { explicit: _, name, columns, at: None } = alias else {
            return Err(Reason::Unsupported("a clause that PostgreSQL does not have"));
        };
        let name = folded(name);
        let columns: Vec<String> = columns.iter().map(|column| folded(&column.name)).collect();
        if names.contains(&name) {
            return Err(Reason::Unsupported("two statements in WITH of one name")); // the server reports it
        }
        names.push(name.clone());
        if finds && columns.is_empty() && is_limited(query) {
            finders.put(name, Finder::read(query, ROW_LOCK)?);
            continue;
        }
        // A statement sees those before it. Its own name, and those of later ones, mean tables.
        let statement = part(query, &earlier, &mut finders)?;
        earlier.push(Common { name, columns, statement });
    }
    let last = part(last, &earlier, &mut finders)?;
    let whole = Candidate { with: earlier, ..last };
    let is_unclear = |part: &Candidate| {
        // A SELECT from an earlier statement in WITH is known as such, unless that statement finds rows.
        let reads = part.head.is_some() || finds && part.verb == Verb::Select;
        let table = part.table.as_ref().filter(|table| table.schema.is_none() && reads);
        table.is_some_and(|table| names.contains(&table.name))
    };
    if !finders.is_empty() || whole.parts().any(is_unclear) {
        return Err(Reason::Unsupported("a subquery"));
    }
    let writes = whole.parts().any(|part| part.verb.writes());
    if writes { Ok(whole) } else { Err(Reason::Unsupported(ONLY_READS)) }
}

/// One part. UPDATE, DELETE and INSERT change the table of their name, also if a statement in WITH has this name.
fn part(query: &Query, earlier: &[Common], finders: &mut Finders) -> Result<Candidate, Reason> {
    let mut part = match &*query.body {
        SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
            query::check_bare(query)?;
            match statement {
                Statement::Insert(statement) => insert::insert(statement, earlier)?,
                Statement::Update(statement) => point::update(statement, finders)?,
                Statement::Delete(statement) => point::delete(statement, finders)?,
                _ => return Err(Reason::Unsupported("a clause that PostgreSQL does not have")),
            }
        }
        SetExpr::Merge(_) => return Err(Reason::Unsupported("MERGE")),
        _ => point::select(query, earlier)?,
    };
    if part.locks_row {
        return Err(Reason::Unsupported(ROW_LOCK));
    }
    if part.reads.is_some() && part.limited {
        return Err(Reason::Unsupported("LIMIT, OFFSET or FETCH of several rows"));
    }
    // A call is an expression like others here. It is not merged with those of other clients.
    match part.call.take() {
        Some(Call { output: Output::Rows { .. }, .. }) => {
            Err(Reason::Unsupported("FROM with something other than a table"))
        }
        Some(_) | None => Ok(part),
    }
}
