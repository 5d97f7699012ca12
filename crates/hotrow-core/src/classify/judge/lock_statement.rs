//! The statement that locks a row before another statement changes it. It does not decide when locking is
//! worth its cost.

use std::fmt::Write;

use crate::key::{KeySource, KeySpec};

use crate::classify::facts::TableFacts;
use crate::classify::text::names::quoted;

/// The statement that locks a row before another statement changes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockStatement {
    /// The text. It locks the row as UPDATE does. It needs no privilege that the other statement does not
    /// need.
    pub text: String,
    /// The types of its parameters. A type that the client did not declare is 0.
    pub types: Vec<u32>,
    /// The indexes, from zero, of the client's parameters that it uses.
    pub params: Vec<u16>,
}

impl LockStatement {
    pub(crate) fn new(table: &TableFacts, key: &KeySpec, types: &[u32]) -> Self {
        let mut lock = LockStatement { text: String::new(), types: Vec::new(), params: Vec::new() };
        let mut conditions = Vec::new();
        for column in &key.columns {
            let value = match &column.source {
                KeySource::Param(index) => {
                    lock.types.push(types.get(usize::from(*index)).copied().unwrap_or(0));
                    lock.params.push(*index);
                    format!("${}", lock.params.len())
                }
                KeySource::Const(text) => format!("'{}'", text.replace('\'', "''")),
            };
            conditions.push(format!("{} = {value}", quoted(&column.name)));
        }
        let (schema, name) = (quoted(&table.schema), quoted(&table.name));
        let conditions = conditions.join(" and ");
        write!(lock.text, "select from {schema}.{name} where {conditions} for no key update")
            .expect("writing to a string does not fail");
        lock
    }
}
