//! Values of the database as JSON. Every value of a known type has a form, so a call never loses a value on the way to the
//! client. A call with a column of another type is not executed.

use std::borrow::Cow;
use std::error::Error;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;
use tokio_postgres::types::{FromSql, Type, accepts};
use tokio_postgres::{Column, Row};
use uuid::Uuid;

use crate::seconds::Hold;
use crate::time::Time;

/// Declares the types that a column of an answer can have, each with the Rust type that is written as JSON.
macro_rules! known {
    ($($type:ident: $value:ty,)*) => {
        const KNOWN: &[Type] = &[$(Type::$type),*];

        impl Serialize for Fields<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(self.0.len()))?;
                for (index, column) in self.0.columns().iter().enumerate() {
                    let name = column.name();
                    match *column.type_() {
                        $(Type::$type => map.serialize_entry(name, &get::<$value, S::Error>(self.0, index)?)?,)*
                        ref other => {
                            return Err(ser::Error::custom(format!("no JSON for {name} of type {other}")));
                        }
                    }
                }
                map.end()
            }
        }
    };
}

known! {
    INT8: i64,
    INT4: i32,
    FLOAT8: f64,
    BOOL: bool,
    TEXT: Text<'_>,
    JSONB: Document,
    TIMESTAMPTZ: Time,
    INTERVAL: Hold,
    UUID: Uuid,
    UUID_ARRAY: Vec<Option<Uuid>>,
}

/// The first column whose type has no JSON.
pub fn unknown(columns: &[Column]) -> Option<&Column> {
    columns.iter().find(|column| !KNOWN.contains(column.type_()))
}

/// A row as an object.
pub struct Fields<'a>(pub &'a Row);

fn get<'a, T: FromSql<'a>, E: ser::Error>(row: &'a Row, index: usize) -> Result<Option<T>, E> {
    row.try_get(index).map_err(E::custom)
}

/// A text. A database with the encoding SQL_ASCII can hold bytes that are not UTF-8. They become U+FFFD.
#[derive(Serialize)]
#[serde(transparent)]
struct Text<'a>(Cow<'a, str>);

impl<'a> FromSql<'a> for Text<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Text(String::from_utf8_lossy(raw)))
    }

    accepts!(TEXT);
}

/// JSON as the server wrote it. Numbers keep all their digits.
#[derive(Serialize)]
#[serde(transparent)]
struct Document(Box<RawValue>);

impl<'a> FromSql<'a> for Document {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let (version, json) = raw.split_first().ok_or("a jsonb without its version")?;
        if *version != 1 {
            return Err("a jsonb of another version than 1".into());
        }
        Ok(Document(RawValue::from_string(String::from_utf8_lossy(json).into_owned())?))
    }

    accepts!(JSONB);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json<'a, T: FromSql<'a> + Serialize>(of: &Type, raw: &'a [u8]) -> String {
        serde_json::to_string(&T::from_sql(of, raw).unwrap()).unwrap()
    }

    #[test]
    fn every_text_can_be_written() {
        assert_eq!(json::<Text<'_>>(&Type::TEXT, "é\"\0".as_bytes()), "\"é\\\"\\u0000\"");
        assert_eq!(json::<Text<'_>>(&Type::TEXT, b"a\xffb"), "\"a\u{fffd}b\"");
        assert_eq!(json::<Document>(&Type::JSONB, b"\x01{\"a\": \"\xff\"}"), "{\"a\": \"\u{fffd}\"}");
    }

    #[test]
    fn every_document_is_written_with_all_its_digits() {
        let deep = format!("\u{1}{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let long = format!("\u{1}[1{}, 0.{}1]", "0".repeat(131_071), "0".repeat(16_000));
        for raw in [&deep, &long] {
            assert_eq!(json::<Document>(&Type::JSONB, raw.as_bytes()), raw[1..]);
        }
    }
}
