//! An answer of the console: a table of text, or only a command tag.

use std::collections::VecDeque;

use bytes::BytesMut;
use hotrow_wire::backend::{self, tag};
use hotrow_wire::{put_cstr, put_frame};

/// One row; none stands for NULL.
pub type Row = Vec<Option<String>>;

/// A column of a table whose rows show values of one type: its name and its text.
pub type Column<T> = (&'static str, fn(&T) -> Option<String>);

/// A column of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    name: &'static str,
    /// Whether its type is int8, as programs that read PgBouncer's tables expect. Otherwise it is text.
    is_number: bool,
}

impl Field {
    /// A column of text.
    pub fn text(name: &'static str) -> Self {
        Field { name, is_number: false }
    }
}

/// An answer, of which some rows may be sent already.
#[derive(Debug)]
pub struct Answer {
    fields: Option<Vec<Field>>,
    rows: VecDeque<Row>,
    tag_text: &'static str,
}

impl Answer {
    pub fn table(fields: Vec<Field>, rows: Vec<Row>) -> Self {
        Answer { fields: Some(fields), rows: rows.into(), tag_text: "SHOW" }
    }

    /// A command tag.
    pub fn done(tag_text: &'static str) -> Self {
        Answer { fields: None, rows: VecDeque::new(), tag_text }
    }

    /// The description that a simple query gets before its rows.
    pub fn put_description(&self, binary: bool, out: &mut BytesMut) {
        if let Some(fields) = &self.fields {
            put_fields(fields, binary, out);
        }
    }

    /// Appends at most this many rows, and the message that ends them.
    pub fn put_rows(&mut self, most: usize, binary: bool, out: &mut BytesMut) {
        let fields = self.fields.as_deref().unwrap_or_default();
        for _ in 0..most {
            let Some(row) = self.rows.pop_front() else { break };
            put_row(fields, &row, binary, out);
        }
        if self.tag_text.is_empty() {
            out.extend_from_slice(backend::EMPTY_QUERY);
        } else if self.rows.is_empty() {
            backend::put_command_complete(out, self.tag_text);
        } else {
            put_frame(out, tag::PORTAL_SUSPENDED, |_| {});
        }
    }
}

/// RowDescription.
pub fn put_fields(fields: &[Field], binary: bool, out: &mut BytesMut) {
    const TEXT: u32 = 25;
    const INT8: u32 = 20;
    put_frame(out, tag::ROW_DESCRIPTION, |out| {
        out.extend_from_slice(&(fields.len() as u16).to_be_bytes());
        for Field { name, is_number } in fields {
            put_cstr(out, name.as_bytes());
            out.extend_from_slice(&[0; 6]); // no table and no column number
            let (type_oid, length) = if *is_number { (INT8, 8_i16) } else { (TEXT, -1) };
            out.extend_from_slice(&type_oid.to_be_bytes());
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&[0xff; 4]); // no modifier
            out.extend_from_slice(&u16::from(binary).to_be_bytes());
        }
    });
}

fn put_row(fields: &[Field], row: &Row, binary: bool, out: &mut BytesMut) {
    put_frame(out, tag::DATA_ROW, |out| {
        out.extend_from_slice(&(row.len() as u16).to_be_bytes());
        for (field, value) in fields.iter().zip(row) {
            match value {
                Some(number) if binary && field.is_number => {
                    out.extend_from_slice(&8_u32.to_be_bytes());
                    out.extend_from_slice(&number.parse().unwrap_or(i64::MAX).to_be_bytes());
                }
                Some(text) => {
                    let text: Vec<u8> =
                        text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }).collect();
                    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
                    out.extend_from_slice(&text);
                }
                None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            }
        }
    });
}

/// The fields of columns that are all text.
pub fn texts<T>(columns: &[Column<T>]) -> Vec<Field> {
    columns.iter().map(|(name, _)| Field::text(name)).collect()
}

/// The fields of columns that are all numbers, except those with these names.
pub fn numbers<T>(columns: &[Column<T>], texts: &[&str]) -> Vec<Field> {
    columns.iter().map(|(name, _)| Field { name, is_number: !texts.contains(name) }).collect()
}

/// The row that shows this value.
pub fn row_of<T>(columns: &[Column<T>], shown: &T) -> Row {
    columns.iter().map(|(_, text)| text(shown)).collect()
}

/// A value that is not NULL.
pub fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// Makes a row of values that implement Display.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$(Some($value.to_string())),*] };
}
pub(super) use row;
