//! Names of tables and functions with their quoting resolved; never looks them up.

use std::fmt;

use sqlparser::ast::{Ident, ObjectName};

use super::Reason;

/// A name as PostgreSQL folds it: unquoted ASCII letters become small, quoted names stay.
pub(super) fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

/// The parts of a dotted name, folded; fails for names with anything but identifiers in them.
pub(super) fn parts(name: &ObjectName) -> Result<Vec<String>, Reason> {
    name.0
        .iter()
        .map(|part| part.as_ident().map(folded).ok_or(Reason::Form("a name that is computed")))
        .collect()
}

/// A table as the statement names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableName {
    /// The schema, when written.
    pub schema: Option<String>,
    /// The table.
    pub name: String,
}

impl TableName {
    pub(super) fn new(name: &ObjectName) -> Result<Self, Reason> {
        match <[String; 1]>::try_from(parts(name)?) {
            Ok([name]) => Ok(Self { schema: None, name }),
            Err(parts) => match <[String; 2]>::try_from(parts) {
                Ok([schema, name]) => Ok(Self { schema: Some(schema), name }),
                Err(_) => Err(Reason::Form("a table name of more than two parts")),
            },
        }
    }

    /// The name quoted, as `to_regclass` and `table_facts.sql` take it.
    pub fn to_regclass(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", quoted(schema), quoted(&self.name)),
            None => quoted(&self.name),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(out, "{schema}.")?;
        }
        out.write_str(&self.name)
    }
}

/// A name in double quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A function as the statement names it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FunctionName {
    /// The schema, when written.
    pub schema: Option<String>,
    /// The function.
    pub name: String,
}

impl FunctionName {
    /// A function of PostgreSQL's own that special syntax stands for, such as EXTRACT or CURRENT_TIMESTAMP.
    pub(super) fn of_syntax(name: &str) -> Self {
        Self { schema: Some("pg_catalog".to_owned()), name: name.to_owned() }
    }

    pub(super) fn new(name: &ObjectName) -> Result<Self, Reason> {
        let mut parts = parts(name)?;
        match (parts.pop(), parts.pop(), parts.is_empty()) {
            (Some(name), schema, true) => Ok(Self { schema, name }),
            _ => Err(Reason::Form("a function name of more than two parts")),
        }
    }

    /// True when only PostgreSQL's own function can be meant.
    pub fn is_builtin_for_sure(&self) -> bool {
        self.schema.as_deref() == Some("pg_catalog")
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.schema.as_deref() {
            Some("pg_catalog") | None => out.write_str(&self.name),
            Some(schema) => write!(out, "{schema}.{}", self.name),
        }
    }
}
