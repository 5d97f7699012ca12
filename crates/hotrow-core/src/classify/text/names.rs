//! Names of tables and functions with their quoting resolved. They are not looked up here.

use std::fmt;

use sqlparser::ast::{Ident, ObjectName};

use crate::classify::reason::Reason;
use crate::untrusted::identifier;

/// A name as PostgreSQL folds it: unquoted ASCII letters become lower case, quoted names stay unchanged.
pub(crate) fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

/// The parts of a dotted name, folded. A name with anything but identifiers is rejected.
pub(crate) fn parts(name: &ObjectName) -> Result<Vec<String>, Reason> {
    name.0
        .iter()
        .map(|part| part.as_ident().map(folded).ok_or(Reason::Unsupported("a computed name")))
        .collect()
}

/// The words of a constant that can name an object, as `regclass` and similar types read it: in lower case,
/// or as written in double quotes. A long text is a value and not a name.
pub(crate) fn words_of_constant(text: &str) -> Vec<String> {
    const NAME_BYTES_MAX: usize = 1000;
    if text.len() > NAME_BYTES_MAX {
        return Vec::new();
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
    let mut words: Vec<String> = text
        .split(|c| !is_part(c))
        .filter(|word| !word.is_empty())
        .flat_map(|word| [word.to_ascii_lowercase(), word.to_owned()])
        .collect();
    words.extend(quoted_names(text));
    words.sort();
    words.dedup();
    words
}

/// Names in double quotes, which can contain any characters: `"a b"`, `"a""b"`.
fn quoted_names(text: &str) -> Vec<String> {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some((_, quoted)) = rest.split_once('"') {
        let (mut name, mut chars) = (String::new(), quoted.chars().peekable());
        while let Some(c) = chars.next() {
            if c != '"' {
                name.push(c);
            } else if chars.next_if_eq(&'"').is_some() {
                name.push('"');
            } else {
                break;
            }
        }
        let left: usize = chars.map(char::len_utf8).sum();
        rest = &quoted[quoted.len() - left..];
        names.extend(Some(name).filter(|name| !name.is_empty()));
    }
    names
}

/// A table as the statement names it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TableName {
    /// The schema, if written.
    pub schema: Option<String>,
    pub name: String,
}

impl TableName {
    pub(crate) fn new(name: &ObjectName) -> Result<Self, Reason> {
        match <[String; 1]>::try_from(parts(name)?) {
            Ok([name]) => Ok(Self { schema: None, name }),
            Err(parts) => match <[String; 2]>::try_from(parts) {
                Ok([schema, name]) => Ok(Self { schema: Some(schema), name }),
                Err(_) => Err(Reason::Unsupported("a table name of more than two parts")),
            },
        }
    }

    /// The name quoted, as `to_regclass` and `table_facts.sql` take it.
    pub fn to_regclass(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", identifier(schema), identifier(&self.name)),
            None => identifier(&self.name),
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

/// A type as the statement names it.
pub type TypeName = TableName;

/// A function as the statement names it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FunctionName {
    /// The schema, if written.
    pub schema: Option<String>,
    pub name: String,
}

impl FunctionName {
    /// One of PostgreSQL's own functions behind special syntax, such as EXTRACT or CURRENT_TIMESTAMP.
    pub(crate) fn of_syntax(name: &str) -> Self {
        Self { schema: Some("pg_catalog".to_owned()), name: name.to_owned() }
    }

    pub(crate) fn new(name: &ObjectName) -> Result<Self, Reason> {
        let mut parts = parts(name)?;
        match (parts.pop(), parts.pop(), parts.is_empty()) {
            (Some(name), schema, true) => Ok(Self { schema, name }),
            _ => Err(Reason::Unsupported("a function name of more than two parts")),
        }
    }

    /// Whether the name can only mean PostgreSQL's own function.
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
