//! The routes: which path and method is which call, who may, and how large a body may be. What a call does stands in
//! the file of its subject.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post, put};
use axum::{Router, http};
use hotrow_core::limits;
use tokio::sync::watch;

use crate::answer::Answer;
use crate::auth::{self, Tokens};
use crate::clients::{Call, Clients, Connector, Key, Value};
use crate::problem::{Kind, Problem};
use crate::{counters, feeds, health, input, orders, page, queues, receipts, reservations, sales, takes};

/// How to reach the lanes, and as whom.
pub struct Upstream {
    /// Makes a client of the gateway.
    pub connect: Connector,
    /// The user of all calls.
    pub user: String,
    /// Its database.
    pub database: String,
    /// A query that answers whether this user may trust the schema pack that is there. Its parameters are this user, and two
    /// texts that are empty here.
    pub pack_trusted: &'static str,
    /// Its sender is gone when the server is told to stop: requests that wait for an order are answered then.
    pub stop: watch::Receiver<()>,
}

/// The whole API. Without tokens everybody may call it who can reach it.
pub fn router(upstream: &Upstream, tokens: Option<Tokens>) -> Router {
    let clients = Arc::new(Clients::new(upstream));
    let many_orders = post(orders::enqueue_all).layer(DefaultBodyLimit::max(limits::HTTP_BATCH_BYTES_MAX));
    let with_key = Router::new()
        .route("/v1/counters/{counter}/increment", post(counters::increment))
        .route("/v1/counters/{counter}/drain", post(counters::drain))
        .route("/v1/sales/{item}/reservations", post(sales::reserve))
        .route("/v1/sales/{item}/restock", post(sales::restock))
        .route("/v1/reservations", post(reservations::reserve_all))
        .route("/v1/users/{user}/posts", post(feeds::post))
        .route("/v1/users/{user}/inbox", post(feeds::push).get(feeds::past));
    let without_key = Router::new()
        .route("/v1/counters/{counter}", put(counters::create).get(counters::read))
        .route("/v1/sales/{item}", put(sales::create).get(sales::read))
        .route("/v1/reservations/{id}/confirm", post(reservations::confirm))
        .route("/v1/reservations/{id}/cancel", post(reservations::cancel))
        .route("/v1/reservations/{id}/extend", post(reservations::extend))
        .route("/v1/users/{user}/follow", post(feeds::follow))
        .route("/v1/users/{user}/unfollow", post(feeds::unfollow))
        .route("/v1/users/{user}/mute", post(feeds::mute))
        .route("/v1/users/{user}/inbox/consume", post(feeds::consume))
        .route("/v1/users/{user}/inbox/next", get(feeds::peek))
        .route("/v1/users/{user}/inbox/read", post(feeds::mark_read))
        .route("/v1/users/{user}/inbox/unread", get(feeds::unread))
        .route("/v1/queues", get(queues::list))
        .route("/v1/queues/{queue}", put(queues::create).get(queues::stats).delete(queues::drop))
        .route("/v1/queues/{queue}/pause", post(queues::pause))
        .route("/v1/queues/{queue}/resume", post(queues::resume))
        .route("/v1/queues/{queue}/redrive", post(queues::redrive))
        .route("/v1/queues/{queue}/orders", post(orders::enqueue).get(orders::list))
        .route("/v1/queues/{queue}/orders/batch", many_orders)
        .route("/v1/queues/{queue}/orders/{order_id}", get(orders::find))
        .route("/v1/queues/{queue}/take", post(takes::take))
        .route("/v1/queues/{queue}/complete", post(receipts::complete_all))
        .route("/v1/queues/{queue}/receipts/{receipt}/complete", post(receipts::complete))
        .route("/v1/queues/{queue}/receipts/{receipt}/fail", post(receipts::fail))
        .route("/v1/queues/{queue}/receipts/{receipt}/release", post(receipts::release))
        .route("/v1/queues/{queue}/receipts/{receipt}/extend", post(receipts::extend))
        .route_layer(from_fn(input::refuse_key));
    let tokens = tokens.map(Arc::new);
    let calls = with_key
        .merge(without_key)
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

/// The one row of a call that always answers one.
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
