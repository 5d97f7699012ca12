//! Answers with status 200: rows as objects with the function's columns, in their order. The schema pack decides the columns,
//! and `columns` converts the values.

use std::collections::BTreeMap;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use tokio_postgres::Row;

use crate::columns::Fields;
use crate::problem::Problem;

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

/// A body of JSON that must not be cached.
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
