//! Liveness, readiness, and the OpenAPI document. None of them needs a token.

use axum::response::Response;
use hotrow_sql::{Function, Place, functions};

use crate::answer::json;
use crate::clients::{Call, Effect, Key, Sessions, values};
use crate::problem::{Kind, Problem};
use crate::{openapi, sqlstate};

const MISSING: Call = Call { sql: include_str!("../sql/missing.sql"), effect: Effect::Reads };

/// `GET /health/live`
pub async fn live() -> Response {
    json("{\"status\":\"live\"}")
}

/// `GET /health/ready`: the server answers, and the user can execute every function that the API calls.
pub async fn ready(clients: Sessions) -> Result<Response, Problem> {
    let rows = clients.rows(MISSING, Key::of("health"), values![called_functions()]).await?;
    if rows.is_empty() {
        return Ok(json("{\"status\":\"ready\"}"));
    }
    let missing: Vec<&str> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
    let detail = format!("not there, or not to be called by this user: {}", missing.join("; "));
    Err(Problem::new(Kind::PackMissing, detail, sqlstate::hint(Kind::PackMissing)))
}

/// The functions that have a route, and the batch twin that gives back orders of a client that has gone.
fn called_functions() -> Vec<String> {
    let routed = functions().iter().filter(|function| matches!(function.http, Place::At(_)));
    let release = functions().iter().find(|function| function.name == "release");
    let release_batch = release.and_then(Function::batch_signature);
    routed.map(Function::signature).chain(release_batch).collect()
}

/// `GET /openapi.json`
pub async fn document() -> Response {
    json(openapi::document())
}
