//! How a statement's key ([`Key`]) is computed from its parameters. This module looks up no tables and reads no SQL.
//!
//! Two keys for one row cost speed but never correctness. Values of types without a canonical form are therefore hashed as
//! they arrive. For the same reason, a row can have two keys if it is found through two unique indexes.

mod array;
mod named;
mod rows;

use std::hash::Hasher as _;

use hotrow_lane::key::{Key, RowHasher, hash_of};

pub(crate) use array::{count, elements, elements_and_nulls};
pub use named::KeyName;
pub use rows::Row;

/// How a statement's key is computed from its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySpec {
    /// The table's oid.
    pub table: u32,
    /// The columns of the unique index, in the index's order.
    pub columns: Vec<KeyColumn>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyColumn {
    /// The column's name, for people.
    pub name: String,
    /// The column's number in its table.
    pub attnum: i16,
    /// The canonical form of its values.
    pub form: ValueForm,
    /// The source of its value.
    pub source: KeySource,
}

/// The source of a key column's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeySource {
    /// A parameter, counted from zero: `$1` is 0.
    Param(u16),
    /// A constant in the statement's text, in the type's text format.
    Const(String),
    /// One of these parameters and constants.
    OneOf(Vec<KeySource>),
    /// An element of a parameter that is an array.
    Element(u16),
    /// Row after row of VALUES: a parameter or a constant, or NULL.
    Each(Vec<Option<KeySource>>),
    /// Row after row: the element of a parameter that is an array.
    Unnested(u16),
}

/// Types whose values have more than one representation on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueForm {
    /// `int2`, `int4`, `int8`.
    Integer,
    Uuid,
    Bool,
    /// All other types. `text` and `varchar` have the same bytes in both formats.
    Bytes,
}

/// A parameter's value from a Bind message.
#[derive(Clone, Copy, Debug)]
pub struct ParamValue<'a> {
    /// The format it is written in.
    pub format: Format,
    pub bytes: &'a [u8],
}

/// The two formats of the wire protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Format code 0.
    Text,
    /// Format code 1.
    Binary,
}

impl ParamValue<'_> {
    /// A number of an integer type.
    pub(crate) fn integer(self) -> Option<i64> {
        integer(self)
    }

    /// The bytes of a UUID.
    pub(crate) fn uuid(self) -> Option<[u8; 16]> {
        uuid(self)
    }
}

impl ValueForm {
    /// The form for a column's type.
    pub fn of_type(type_oid: u32) -> Self {
        match type_oid {
            20 | 21 | 23 => Self::Integer,
            2950 => Self::Uuid,
            16 => Self::Bool,
            _ => Self::Bytes,
        }
    }

    /// Adds a value to the hash. Each form has its own tag. A value that does not fit its form is added as
    /// bytes.
    fn feed(self, value: ParamValue<'_>, hasher: &mut RowHasher) {
        match self {
            Self::Integer => {
                if let Some(number) = integer(value) {
                    return hasher.part(1, &number.to_be_bytes());
                }
            }
            Self::Uuid => {
                if let Some(uuid) = uuid(value) {
                    return hasher.part(2, &uuid);
                }
            }
            Self::Bool => {
                if let Some(truth) = boolean(value) {
                    return hasher.part(3, &[u8::from(truth)]);
                }
            }
            Self::Bytes => {}
        }
        hasher.part(0, value.bytes);
    }
}

/// The number of a merge rule's key space. It differs from the tables' OIDs, which are small in all databases
/// except the oldest.
pub fn key_space(name: &str) -> u32 {
    (hash_of(name.as_bytes()) as u32) | 0x8000_0000
}

/// The key space that a notification about waiting calls names, `space key`, and the key in each form.
pub fn notified(payload: &str) -> Option<(u32, impl Fn(ValueForm) -> Option<Key>)> {
    let (space, key) = payload.split_once(' ')?;
    let (space, source) = (key_space(space), KeySource::Const(key.to_owned()));
    Some((space, move |form| KeySpec::in_space(space, "", form, source.clone()).key(|_| None)))
}

impl KeySpec {
    /// The key of a call in a key space: the value of one argument.
    pub fn in_space(space: u32, argument: &str, form: ValueForm, source: KeySource) -> Self {
        let column = KeyColumn { name: argument.to_owned(), attnum: 0, form, source };
        KeySpec { table: space, columns: vec![column] }
    }

    /// Whether it identifies one row at most.
    pub fn is_single(&self) -> bool {
        let single = |column: &KeyColumn| matches!(column.source, KeySource::Param(_) | KeySource::Const(_));
        self.columns.iter().all(single)
    }

    /// The only row's key for one set of parameters. `None` if a value is NULL or missing, because no row
    /// equals NULL, or if there can be several rows.
    ///
    /// `param` takes an index from zero and returns `None` for NULL.
    pub fn key<'p>(&'p self, param: impl Fn(u16) -> Option<ParamValue<'p>>) -> Option<Key> {
        let mut hasher = RowHasher::default();
        for column in &self.columns {
            column.feed(column.source.value(&param)?, &mut hasher);
        }
        Some(Key { table: self.table, hash: hasher.finish() })
    }
}

impl KeyColumn {
    fn feed(&self, value: ParamValue<'_>, hasher: &mut RowHasher) {
        hasher.write(&self.attnum.to_be_bytes());
        self.form.feed(value, hasher);
    }
}

impl KeySource {
    /// The only value. `None` for NULL, or if there can be several values.
    pub(crate) fn value<'p>(
        &'p self,
        param: impl Fn(u16) -> Option<ParamValue<'p>>,
    ) -> Option<ParamValue<'p>> {
        match self {
            KeySource::Param(index) => param(*index),
            KeySource::Const(text) => Some(ParamValue { format: Format::Text, bytes: text.as_bytes() }),
            KeySource::OneOf(_) | KeySource::Element(_) | KeySource::Each(_) | KeySource::Unnested(_) => None,
        }
    }
}

fn integer(value: ParamValue<'_>) -> Option<i64> {
    match value.format {
        Format::Text => {
            let text = std::str::from_utf8(value.bytes).ok()?;
            text.trim_matches(|c: char| c.is_ascii_whitespace()).parse().ok()
        }
        Format::Binary => match *value.bytes {
            [a, b] => Some(i16::from_be_bytes([a, b]).into()),
            [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
            _ => value.bytes.try_into().ok().map(i64::from_be_bytes),
        },
    }
}

/// The sixteen bytes, read as PostgreSQL reads them: any letter case, optional braces, hyphens after every
/// two bytes.
fn uuid(value: ParamValue<'_>) -> Option<[u8; 16]> {
    if value.format == Format::Binary {
        return value.bytes.try_into().ok();
    }
    let text = value.bytes.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or(value.bytes);
    let mut bytes = [0; 16];
    let mut digits = text.iter().filter(|&&b| b != b'-');
    for byte in &mut bytes {
        let (high, low) = (hex(*digits.next()?)?, hex(*digits.next()?)?);
        *byte = high << 4 | low;
    }
    digits.next().is_none().then_some(bytes)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Read as PostgreSQL reads them: any unique prefix of true, false, yes, no, on, off, and 1 or 0.
fn boolean(value: ParamValue<'_>) -> Option<bool> {
    if value.format == Format::Binary {
        return Some(value.bytes != [0]);
    }
    let text = value.bytes.trim_ascii().to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.as_bytes().starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || text == b"1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || text == b"0" {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
