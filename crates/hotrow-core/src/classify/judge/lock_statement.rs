//! The statement that locks a row before another statement changes it. It does not decide when locking is
//! worth its cost.

use std::fmt::Write;

use crate::key::{KeySource, KeySpec};

use crate::classify::facts::TableFacts;
use crate::classify::judge::view::{SeenThrough, can_lock};
use crate::classify::known::builtin_types;
use crate::untrusted::identifier as quoted;

/// The statement that locks a row before another statement changes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockStatement {
    /// The text. It locks the row as UPDATE does. It needs no privilege that the other statement does not
    /// need.
    pub text: String,
    /// The types of its parameters, which are the values of the key's columns. A type that the client did not
    /// declare is 0.
    pub types: Vec<u32>,
}

impl LockStatement {
    /// `None` if values of one column can have different types, or types that are not known.
    /// A row of a view is locked through the view, because the role may lack privileges on the table.
    pub(crate) fn new(
        table: &TableFacts,
        through: Option<&SeenThrough>,
        key: &KeySpec,
        types: &[u32],
    ) -> Option<Self> {
        if !can_lock(table) {
            return None;
        }
        let mut lock = LockStatement { text: String::new(), types: Vec::new() };
        let mut conditions = Vec::new();
        for column in &key.columns {
            lock.types.push(type_of(&column.source, types)?);
            let name = match through {
                Some(through) => through.outer(&column.name)?,
                None => &column.name,
            };
            conditions.push(format!("{} = ${}", quoted(name), lock.types.len()));
        }
        let (schema, name) = match table.views.first() {
            Some(view) => (quoted(&view.schema), quoted(&view.name)),
            None => (quoted(&table.schema), quoted(&table.name)),
        };
        let conditions = conditions.join(" and ");
        write!(lock.text, "select from {schema}.{name} where {conditions} for no key update")
            .expect("writing to a string does not fail");
        Some(lock)
    }
}

/// The type of the values, of which the client has declared some.
fn type_of(source: &KeySource, declared: &[u32]) -> Option<u32> {
    let declared_as = |index: &u16| declared.get(usize::from(*index)).copied().unwrap_or(0);
    match source {
        KeySource::Param(index) => Some(declared_as(index)),
        KeySource::Const(_) => Some(0),
        KeySource::OneOf(sources) => common_type(sources.iter(), declared),
        KeySource::Each(sources) => common_type(sources.iter().flatten(), declared),
        KeySource::Element(index) | KeySource::Unnested(index) => match declared_as(index) {
            oid if builtin_types::OPEN.contains(&oid) => Some(0),
            oid => builtin_types::element_of(oid),
        },
    }
}

/// The type that all of these values have.
fn common_type<'s>(sources: impl Iterator<Item = &'s KeySource>, declared: &[u32]) -> Option<u32> {
    let mut types = sources.map(|source| type_of(source, declared));
    let first = types.next().unwrap_or(Some(0));
    if types.all(|other| other == first) { first } else { None }
}
