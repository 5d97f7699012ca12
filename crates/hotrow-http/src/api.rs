//! The router: the routes of all areas, access to them, and how large a body can be. What a call does is in the folder of its
//! area.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Router, http};
use hotrow_core::limits;
use tokio::sync::watch;

use crate::answer::Answer;
use crate::auth::{self, Tokens};
use crate::clients::{Call, Clients, Connector, Key, Value};
use crate::problem::{Kind, Problem};
use crate::routes::Routes;
use crate::{health, page};

/// How calls reach the gateway, and with which user.
pub struct Upstream {
    /// Connects a new client to the gateway.
    pub connect: Connector,
    /// The user of all calls.
    pub user: String,
    /// The database of all calls.
    pub database: String,
    /// A query that answers whether this user can trust the installed schema pack. Its parameters are this user and two texts,
    /// which are empty here.
    pub pack_trusted: &'static str,
    /// The sender is dropped when the server is told to stop: then requests that wait for an order are answered.
    pub stop: watch::Receiver<()>,
}

/// The whole API. Without tokens, every client that reaches the server can call it.
pub fn router(upstream: &Upstream, tokens: Option<Tokens>) -> Router {
    let clients = Arc::new(Clients::new(upstream));
    let tokens = tokens.map(Arc::new);
    let calls = Routes::of_all_areas()
        .router()
        .route_layer(from_fn_with_state(tokens.clone(), auth::check))
        .layer(DefaultBodyLimit::max(limits::HTTP_BODY_BYTES_MAX));
    Router::new()
        .merge(calls)
        .merge(page::routes().route_layer(from_fn_with_state(tokens, auth::check_host)))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/openapi.json", get(health::document))
        .fallback(nothing_there)
        .method_not_allowed_fallback(other_methods)
        .with_state(clients)
}

/// The row of a call that always returns one row.
pub async fn one(
    clients: &Arc<Clients>,
    call: Call,
    key: Key,
    values: Vec<Value>,
) -> Result<Answer, Problem> {
    let row = clients.rows(call, key, values).await?.pop();
    row.map(Answer).ok_or_else(|| Problem::internal(&format_args!("no row came from {}", call.sql)))
}

async fn nothing_there(State(_): State<Arc<Clients>>, uri: http::Uri) -> Problem {
    let detail = format!("there is no {}", uri.path());
    Problem::new(Kind::NotFound, detail, "The paths are listed in /openapi.json.")
}

async fn other_methods(method: http::Method) -> Problem {
    let detail = format!("{method} is not one of this path's methods");
    Problem::new(Kind::MethodNotAllowed, detail, "The header Allow names them.")
}
