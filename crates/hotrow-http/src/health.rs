//! Liveness, readiness, and the OpenAPI document. None of them needs a token.

use std::sync::Arc;
use std::time::Duration;

use crate::limits;
use axum::response::Response;
use hotrow_sql::{Function, functions};

use crate::answer::json;
use crate::calls::{Call, Effect};
use crate::clients::{Clients, Key, Sessions, values};
use crate::problem::{Kind, Problem};
use crate::{openapi, sqlstate};

const READY: &str = "{\"status\":\"ready\"}";

/// `GET /health/live`
pub async fn live() -> Response {
    json("{\"status\":\"live\"}")
}

/// Warns in the log if the API is served without the hotrow schema. Checks once, as soon as the server answers.
pub async fn report_missing_pack(clients: Arc<Clients>) {
    let pause = Duration::from_millis(limits::MISSING_PACK_MS);
    loop {
        match missing(&clients).await {
            Ok(None) => return,
            Ok(Some(problem)) | Err(problem) if problem.is_missing_pack() => {
                tracing::warn!(
                    reason = problem.detail(),
                    "serving HTTP without the hotrow schema: run hotrow migrate"
                );
                return;
            }
            Ok(Some(_)) | Err(_) => tokio::time::sleep(pause).await,
        }
    }
}

/// `GET /health/ready`: the server answers, and the user can execute every function that the API calls.
pub async fn ready(clients: Sessions) -> Result<Response, Problem> {
    match missing(&clients).await? {
        None => Ok(json(READY)),
        Some(problem) => Err(problem),
    }
}

/// `GET /health/ready` of a gateway without the API: the server answers.
pub fn ready_if(checked: Result<(), String>) -> Result<Response, Problem> {
    let unavailable = |detail| Problem::new(Kind::ServerAway, detail, "Check the server and upstream.");
    checked.map(|()| json(READY)).map_err(unavailable)
}

/// The functions that are missing, as a problem.
async fn missing(clients: &Arc<Clients>) -> Result<Option<Problem>, Problem> {
    let check = Call { sql: clients.missing_functions, effect: Effect::Reads };
    let rows = clients.rows(check, Key::of("health"), values![called_functions()]).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let missing: Vec<&str> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
    let detail = format!("not there, or not to be called by this user: {}", missing.join("; "));
    Ok(Some(Problem::new(Kind::PackMissing, detail, sqlstate::hint(Kind::PackMissing))))
}

/// The functions that have a route, and the batch function that gives back orders of a client that has gone.
fn called_functions() -> Vec<String> {
    let routed = functions().iter().filter(|function| function.http.at().is_some());
    let release = functions().iter().find(|function| function.name == "release");
    let release_batch = release.and_then(Function::batch_signature);
    routed.map(Function::signature).chain(release_batch).collect()
}

/// `GET /openapi.json`
pub async fn document() -> Response {
    json(openapi::document())
}
