//! A key in words for people: the table, the columns and their values.

use super::{Format, KeySpec, ParamValue, Row, ValueForm, boolean, integer, uuid};

/// A row in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyName {
    /// The table, or the function with a merge rule.
    pub table: String,
    /// The columns that identify the row, or the function's argument. Empty if the row is not known.
    pub columns: Vec<String>,
    pub values: Vec<String>,
}

/// Characters of a value that are shown.
const VALUE_CHARS_MAX: usize = 100;

impl KeyName {
    /// The row that a statement names.
    pub fn new(table: &str, spec: &KeySpec, row: &Row<'_>) -> Self {
        let values = spec.columns.iter().zip(&row.values).map(|(column, value)| shown(column.form, *value));
        KeyName {
            table: table.to_owned(),
            columns: spec.columns.iter().map(|column| column.name.clone()).collect(),
            values: values.collect(),
        }
    }

    /// A row of this table that is not known.
    pub fn of_table(table: &str) -> Self {
        KeyName { table: table.to_owned(), columns: Vec::new(), values: Vec::new() }
    }
}

/// A value as text. Bytes that are no text are shown in hexadecimal.
fn shown(form: ValueForm, value: ParamValue<'_>) -> String {
    let text = |bytes: &[u8]| {
        let text = str::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control));
        text.map_or_else(|| format!("\\x{}", hexadecimal(bytes)), str::to_owned)
    };
    let whole = match (value.format, form) {
        (Format::Binary, ValueForm::Integer) => integer(value).map(|number| number.to_string()),
        (Format::Binary, ValueForm::Bool) => {
            boolean(value).map(|truth| if truth { "t" } else { "f" }.to_owned())
        }
        (_, ValueForm::Uuid) => uuid(value).map(|bytes| {
            let digits = hexadecimal(&bytes);
            let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
            parts.join("-")
        }),
        _ => None,
    };
    let whole = whole.unwrap_or_else(|| text(value.bytes));
    if whole.chars().count() <= VALUE_CHARS_MAX {
        return whole;
    }
    whole.chars().take(VALUE_CHARS_MAX - 1).chain(['…']).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().take(VALUE_CHARS_MAX).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_both_formats_are_shown_as_text() {
        let uuid = *b"\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0";
        let long = "x".repeat(200);
        for (form, format, bytes, expected) in [
            (ValueForm::Integer, Format::Text, &b"7"[..], "7"),
            (ValueForm::Integer, Format::Binary, &[0, 0, 0, 7], "7"),
            (ValueForm::Integer, Format::Binary, &[7], "\\x07"),
            (ValueForm::Bool, Format::Binary, &[1], "t"),
            (ValueForm::Uuid, Format::Binary, &uuid, "12345678-9abc-def0-1234-56789abcdef0"),
            (
                ValueForm::Uuid,
                Format::Text,
                b"{123456789ABCDEF0123456789ABCDEF0}",
                "12345678-9abc-def0-1234-56789abcdef0",
            ),
            (ValueForm::Bytes, Format::Text, "Käse".as_bytes(), "Käse"),
            (ValueForm::Bytes, Format::Binary, &[0xff, 0], "\\xff00"),
            (ValueForm::Bytes, Format::Text, long.as_bytes(), &format!("{}…", "x".repeat(99))),
        ] {
            assert_eq!(shown(form, ParamValue { format, bytes }), expected);
        }
    }
}
