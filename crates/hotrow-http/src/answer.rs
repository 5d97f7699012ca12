//! Rows as JSON: an object with the function's columns, in their order. Which columns there are is the schema pack's
//! business.

use std::collections::BTreeMap;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Json, Type};
use uuid::Uuid;

use crate::problem::Problem;
use crate::seconds::Hold;

/// An answer of 200 with a row.
pub struct Answer(pub Row);

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&Fields(&self.0)) {
            Ok(body) => json(body),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

/// A body of JSON that no cache may keep.
pub fn json<B: IntoResponse>(body: B) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, body).into_response()
}

/// An answer of 200 with rows, as an array under a name.
pub struct Answers {
    pub name: &'static str,
    pub rows: Vec<Row>,
}

impl IntoResponse for Answers {
    fn into_response(self) -> Response {
        let rows: Vec<_> = self.rows.iter().map(Fields).collect();
        match serde_json::to_vec(&BTreeMap::from([(self.name, rows)])) {
            Ok(body) => json(body),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

struct Fields<'a>(&'a Row);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (index, column) in self.0.columns().iter().enumerate() {
            let name = column.name();
            match *column.type_() {
                Type::INT8 => map.serialize_entry(name, &get::<i64, S::Error>(self.0, index)?)?,
                Type::INT4 => map.serialize_entry(name, &get::<i32, S::Error>(self.0, index)?)?,
                Type::FLOAT8 => map.serialize_entry(name, &get::<f64, S::Error>(self.0, index)?)?,
                Type::BOOL => map.serialize_entry(name, &get::<bool, S::Error>(self.0, index)?)?,
                Type::TEXT => map.serialize_entry(name, &get::<&str, S::Error>(self.0, index)?)?,
                // As the server wrote it: numbers keep all their digits.
                Type::JSONB => {
                    let json = get::<Json<&RawValue>, S::Error>(self.0, index)?;
                    map.serialize_entry(name, &json.map(|Json(json)| json))?;
                }
                Type::TIMESTAMPTZ => {
                    map.serialize_entry(name, &get::<Timestamp, S::Error>(self.0, index)?)?
                }
                Type::INTERVAL => map.serialize_entry(name, &get::<Hold, S::Error>(self.0, index)?)?,
                Type::UUID => {
                    let id = get::<Uuid, S::Error>(self.0, index)?;
                    map.serialize_entry(name, &id.map(|id| id.to_string()))?;
                }
                Type::UUID_ARRAY => {
                    let ids = get::<Vec<Uuid>, S::Error>(self.0, index)?;
                    let ids = ids.map(|ids| ids.iter().map(Uuid::to_string).collect::<Vec<_>>());
                    map.serialize_entry(name, &ids)?;
                }
                ref other => return Err(S::Error::custom(format!("no JSON for {name} of type {other}"))),
            }
        }
        map.end()
    }
}

fn get<'a, T: FromSql<'a>, E: Error>(row: &'a Row, index: usize) -> Result<Option<T>, E> {
    row.try_get(index).map_err(E::custom)
}
