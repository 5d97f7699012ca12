//! An answer of the console: a table of text, or only a command tag.

use std::collections::VecDeque;

use bytes::BytesMut;
use hotrow_wire::backend::{self, tag};
use hotrow_wire::{put_cstr, put_frame};

/// One row; none stands for NULL.
pub type Row = Vec<Option<String>>;

/// A column of a table whose rows show values of one type: its name and its text.
pub type Column<T> = (&'static str, fn(&T) -> Option<String>);

/// An answer, of which some rows may be sent already.
#[derive(Debug)]
pub struct Answer {
    columns: Option<Vec<&'static str>>,
    rows: VecDeque<Row>,
    tag_text: &'static str,
}

impl Answer {
    /// A table.
    pub fn table(columns: Vec<&'static str>, rows: Vec<Row>) -> Self {
        Answer { columns: Some(columns), rows: rows.into(), tag_text: "SHOW" }
    }

    /// A command tag.
    pub fn done(tag_text: &'static str) -> Self {
        Answer { columns: None, rows: VecDeque::new(), tag_text }
    }

    /// The description that a simple query gets before its rows.
    pub fn put_description(&self, binary: bool, out: &mut BytesMut) {
        if let Some(columns) = &self.columns {
            put_columns(columns, binary, out);
        }
    }

    /// Appends at most this many rows, and the message that ends them.
    pub fn put_rows(&mut self, most: usize, out: &mut BytesMut) {
        for _ in 0..most {
            let Some(row) = self.rows.pop_front() else { break };
            put_row(&row, out);
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

/// RowDescription: all columns are text, whose binary form is the same.
pub fn put_columns(columns: &[&str], binary: bool, out: &mut BytesMut) {
    const TEXT: u32 = 25;
    put_frame(out, tag::ROW_DESCRIPTION, |out| {
        out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        for name in columns {
            put_cstr(out, name.as_bytes());
            out.extend_from_slice(&[0; 6]); // no table and no column number
            out.extend_from_slice(&TEXT.to_be_bytes());
            out.extend_from_slice(&[0xff; 6]); // any length, no modifier
            out.extend_from_slice(&u16::from(binary).to_be_bytes());
        }
    });
}

fn put_row(row: &Row, out: &mut BytesMut) {
    put_frame(out, tag::DATA_ROW, |out| {
        out.extend_from_slice(&(row.len() as u16).to_be_bytes());
        for value in row {
            match value {
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

/// The names of columns.
pub fn names<T>(columns: &[Column<T>]) -> Vec<&'static str> {
    columns.iter().map(|(name, _)| *name).collect()
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
