//! Whether the process lives, whether it can serve, and the document that says what. Nobody needs a token for these.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use crate::answer::json;
use crate::clients::{Call, Clients, Effect, Key};
use crate::problem::{Kind, Problem};
use crate::sqlstate;

const MISSING: Call = Call { sql: include_str!("../sql/missing.sql"), effect: Effect::Reads };
const DOCUMENT: &str = include_str!("openapi.json");

/// `GET /health/live`
pub async fn live() -> Response {
    json("{\"status\":\"live\"}")
}

/// `GET /health/ready`: the server answers, and every function that the API calls may be called.
pub async fn ready(State(clients): State<Arc<Clients>>) -> Result<Response, Problem> {
    let rows = clients.rows(MISSING, Key::of("health"), Vec::new()).await?;
    if rows.is_empty() {
        return Ok(json("{\"status\":\"ready\"}"));
    }
    let missing: Vec<&str> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
    let detail = format!("not there, or not to be called by this user: {}", missing.join("; "));
    Err(Problem::new(Kind::PackMissing, detail, sqlstate::hint(Kind::PackMissing)))
}

/// `GET /openapi.json`
pub async fn document() -> Response {
    json(DOCUMENT)
}
