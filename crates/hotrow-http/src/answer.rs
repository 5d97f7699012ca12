//! Answers with status 200: rows as objects with the function's columns, in their order. The hotrow schema decides the columns,
//! and `columns` converts the values.

use std::collections::BTreeMap;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use tokio_postgres::Row;

use crate::columns::Fields;
use crate::problem::Problem;
use crate::room::Held;

/// The answer to a call.
pub type Answered = Result<Answer, Problem>;

/// An answer of 200, with the room that it takes.
pub enum Answer {
    /// A row, as an object.
    Row(Row, Held),
    /// Rows, as an array under a name.
    Rows(&'static str, Vec<Row>, Held),
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let (body, held) = match self {
            Answer::Row(row, held) => (serde_json::to_vec(&Fields(&row)), held),
            Answer::Rows(name, rows, held) => {
                let rows: Vec<_> = rows.iter().map(Fields).collect();
                (serde_json::to_vec(&BTreeMap::from([(name, rows)])), held)
            }
        };
        match body {
            Ok(body) => json(held.into_bytes(body)),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

/// A body of JSON that must not be cached.
pub fn json<B: IntoResponse>(body: B) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, body).into_response()
}
