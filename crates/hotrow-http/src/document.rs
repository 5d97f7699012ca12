//! JSON that clients store in the database, passed on unchanged. Documents that PostgreSQL would reject are rejected here,
//! because they would fail the other calls of their batch.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use tokio_postgres::types::Json;

/// The deepest nesting of objects and arrays. It is more than clients need and less than the server's stack allows.
const DEPTH_MAX: usize = 100;

/// Any JSON value that PostgreSQL can store as jsonb.
#[derive(Serialize)]
pub struct Document(pub Json<Box<RawValue>>);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        match fault(json.get().as_bytes()) {
            None => Ok(Document(Json(json))),
            Some(fault) => Err(D::Error::custom(fault)),
        }
    }
}

/// Returns why PostgreSQL cannot store a valid JSON text.
fn fault(json: &[u8]) -> Option<&'static str> {
    let (mut at, mut depth, mut in_string) = (0, 0_usize, false);
    while at < json.len() {
        match json[at] {
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Some("objects and arrays are nested more than 100 levels deep");
                }
            }
            b']' | b'}' if !in_string => depth -= 1,
            b'\\' if json[at + 1] == b'u' => match unit(json, at) {
                Some(0) => return Some("a text contains the character U+0000"),
                Some(0xd800..=0xdbff) if matches!(unit(json, at + 6), Some(0xdc00..=0xdfff)) => at += 11,
                Some(0xd800..=0xdfff) => return Some("a text contains half of a surrogate pair"),
                _ => at += 5,
            },
            b'\\' => at += 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The number in `\uXXXX`, if it is at this place.
fn unit(json: &[u8], at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_the_server_can_store_stay_unchanged() {
        let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for json in [
            r#"{"a": [1, 2.50, 12345678901234567890123456789, 1e400], "b": null}"#,
            r#""\\u0000 \u00e9 \ud83d\ude00 \"[[[ é""#,
            "1",
            &nested,
        ] {
            assert_eq!(serde_json::from_str::<Document>(json).unwrap().0.0.get(), json);
        }
    }

    #[test]
    fn documents_that_the_server_cannot_store_are_rejected() {
        let nested = format!("{}{}", "[".repeat(101), "]".repeat(101));
        for json in [r#"{"a": "\u0000"}"#, r#"{"\u0000": 1}"#, r#""\\\u0000""#, &nested, "{", "\"\u{1}\""] {
            assert!(serde_json::from_str::<Document>(json).is_err(), "{json}");
        }
        for json in
            [r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\u0041""#, r#""\ud83dx""#, r#""\ud83d\ud83d\ude00""#]
        {
            assert!(serde_json::from_str::<Document>(json).is_err(), "{json}");
        }
    }
}
