//! The statement that locks the row which another is about to change; never decides when that is worth it.

use std::fmt::Write;

use crate::key::{KeySource, KeySpec};

use crate::classify::facts::TableFacts;
use crate::classify::text::names::quoted;

/// How to lock the row of a statement before it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockStatement {
    /// The statement that locks it as UPDATE does. Who may run the one may run the other.
    pub text: String,
    /// The types of its parameters, as far as the client has declared them.
    pub types: Vec<u32>,
    /// Which of the client's parameters they are, counted from zero.
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
