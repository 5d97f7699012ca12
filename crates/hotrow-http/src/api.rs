//! The router: the routes of all areas, access to them, and the size of bodies. `plain` and the folders of the areas make the calls.

use std::sync::Arc;

use crate::limits;
use axum::extract::{DefaultBodyLimit, State};
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Router, http};

use crate::auth::{self, Tokens};
use crate::clients::{Clients, GatewayAccess};
use crate::live::{self, Live, Source};
use crate::problem::{Kind, Problem};
use crate::routes::Routes;
use crate::{feeds, health, page, plain, queues, sales};

/// The whole API, and the page if there is a source for it. Without tokens, every client that reaches the server can call it.
pub fn router(upstream: &GatewayAccess, tokens: Option<Tokens>, source: Option<Arc<dyn Source>>) -> Router {
    let clients = Arc::new(Clients::new(upstream));
    tokio::spawn(health::report_missing_pack(clients.clone()));
    let tokens = tokens.map(Arc::new);
    let live = source.map(|source| live::routes(Live::start(source, &clients))).unwrap_or_default();
    let calls = plain::routes(with_handlers())
        .router()
        .merge(live)
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

async fn nothing_there(State(_): State<Arc<Clients>>, uri: http::Uri) -> Problem {
    let detail = format!("there is no {}", uri.path());
    Problem::new(Kind::NotFound, detail, "The paths are listed in /openapi.json.")
}

async fn other_methods(method: http::Method) -> Problem {
    let detail = format!("{method} is not one of this path's methods");
    Problem::new(Kind::MethodNotAllowed, detail, "The header Allow names them.")
}

/// The routes of the functions that need a handler.
pub fn with_handlers() -> Routes {
    [sales::routes, queues::routes, feeds::routes]
        .into_iter()
        .fold(Routes::default(), |routes, area| area(routes))
}
