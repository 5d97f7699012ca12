//! Turns SQL text into a shape: the text with its literals replaced by parameters. It does not parse and does
//! not decide.
//!
//! The shape is the key under which a statement's classification is cached, and the text that is prepared on
//! the server instead of the original. A literal is taken out only if a parameter declared with the literal's
//! own type (`int4`, `int8`, `numeric`, or unspecified for a plain string) resolves to the same types as the
//! literal would. `date '...'` becomes `$1::date`. The text is read as PostgreSQL reads it under
//! `standard_conforming_strings = on`.

mod comments;
mod lexeme;
mod lexicon;
mod literals;
mod position;
mod scanner;
mod settings;
mod shown;
#[cfg(test)]
mod tests;

use std::ops::Range;

use scanner::Scanner;

use crate::key::{Format, ParamValue};
pub use comments::without_comments;
pub use shown::without_values;

/// The type of a plain string, which PostgreSQL leaves unspecified.
pub const UNSPECIFIED: u32 = 0;
/// `int8`.
pub const INT8: u32 = 20;
/// `int4`.
pub const INT4: u32 = 23;
/// `numeric`.
pub const NUMERIC: u32 = 1700;
/// `text`.
pub const TEXT: u32 = 25;

/// Maximum number of literals that are taken out of one statement. A text with more of them is left
/// unchanged.
pub const MAX_LITERALS: usize = 1000;

/// A literal that was taken out of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Literal<'a> {
    /// The value in text format, without quotes.
    pub value: &'a [u8],
    /// The OID to declare for its parameter.
    pub type_oid: u32,
}

/// The position of a literal's value in the buffer of values.
#[derive(Clone, Debug)]
struct Slot {
    value: Range<usize>,
    type_oid: u32,
}

/// Reusable buffers for normalising one text after another.
#[derive(Debug, Default)]
pub struct Normaliser {
    /// The shape, a zero byte, and one byte for each literal's type.
    signature: String,
    /// The length of the shape in it.
    shape_bytes: usize,
    /// The last text was left unchanged.
    verbatim: bool,
    values: Vec<u8>,
    slots: Vec<Slot>,
    nesting: Vec<scanner::Nesting>,
}

/// A statement after its literals were taken out.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// The text with `$1`..`$n` in place of the literals.
    pub shape: &'a str,
    /// Whether the text was left unchanged.
    pub verbatim: bool,
    /// The key for caches: the shape and the types of its literals. The key of an unchanged text is the text
    /// itself.
    pub signature: &'a [u8],
    values: &'a [u8],
    slots: &'a [Slot],
}

impl<'a> Shape<'a> {
    /// The literals in the order of their parameters.
    pub fn literals(&self) -> impl ExactSizeIterator<Item = Literal<'a>> + use<'a> {
        let (values, slots) = (self.values, self.slots);
        slots.iter().map(move |slot| Literal { value: &values[slot.value.clone()], type_oid: slot.type_oid })
    }

    /// The literal for parameter `index`, counted from zero.
    pub fn literal(&self, index: usize) -> Option<Literal<'a>> {
        let slot = self.slots.get(index)?;
        Some(Literal { value: &self.values[slot.value.clone()], type_oid: slot.type_oid })
    }

    /// The same as a parameter's value.
    pub fn param(&self, index: usize) -> Option<ParamValue<'a>> {
        self.literal(index).map(|literal| ParamValue { format: Format::Text, bytes: literal.value })
    }
}

impl Normaliser {
    /// Empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Normalises one text. The result borrows from the buffers until the next call.
    pub fn run(&mut self, sql: &str) -> Shape<'_> {
        self.signature.clear();
        self.values.clear();
        self.slots.clear();
        self.nesting.clear();
        let taken = Scanner::new(sql, self).scan();
        if taken.is_some() {
            self.signature.truncate(self.signature.trim_end_matches(' ').len());
        } else {
            self.signature.clear();
            self.signature.push_str(sql);
            self.slots.clear();
        }
        self.verbatim = taken.is_none();
        self.shape_bytes = self.signature.len();
        self.signature.push('\0');
        self.signature.extend(self.slots.iter().map(|slot| type_code(slot.type_oid)));
        self.last()
    }

    /// The shape of the last text.
    pub fn last(&self) -> Shape<'_> {
        Shape {
            shape: &self.signature[..self.shape_bytes],
            verbatim: self.verbatim,
            signature: self.signature.as_bytes(),
            values: &self.values,
            slots: &self.slots,
        }
    }
}

/// One character per literal type. `1` and `'1'` in the same place therefore have different cache keys.
fn type_code(type_oid: u32) -> char {
    match type_oid {
        INT4 => 'i',
        INT8 => 'l',
        NUMERIC => 'n',
        TEXT => 't',
        _ => 's',
    }
}
