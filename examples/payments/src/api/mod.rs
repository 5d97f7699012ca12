//! The service over HTTP: paths, bodies, statuses. Never decides what a payment may do.

mod input;
mod payments;
mod problem;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post, put};
use tokio::sync::Semaphore;

use crate::flow::Payments;

pub use problem::Problem;

/// The largest body that is read.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// The most requests at the same time. Others are told to retry.
pub const REQUESTS_MAX: usize = 4096;

/// The state that requests need.
#[derive(Clone)]
pub struct Api {
    payments: Arc<Payments>,
    room: Arc<Semaphore>,
    key_lease: Duration,
}

/// The state, as a handler gets it.
type Service = axum::extract::State<Api>;

/// All paths.
pub fn router(payments: Arc<Payments>, key_lease: Duration) -> Router {
    let api = Api { payments, room: Arc::new(Semaphore::new(REQUESTS_MAX)), key_lease };
    Router::new()
        .route("/v1/payments", post(payments::create).get(payments::list))
        .route("/v1/payments/{id}", get(payments::read))
        .route("/v1/payments/{id}/confirm", post(payments::confirm))
        .route("/v1/payments/{id}/capture", post(payments::capture))
        .route("/v1/payments/{id}/cancel", post(payments::cancel))
        .route("/v1/payments/{id}/refund", post(payments::refund))
        .route("/v1/merchants/{merchant}/days/{day}", get(payments::day))
        .route("/v1/webhooks/{gateway}", post(webhooks::receive))
        .route("/v1/endpoints/{name}", put(webhooks::set_endpoint))
        .route("/v1/notifications/{event}/{endpoint}/resend", post(webhooks::resend))
        .route("/v1/notifications", get(webhooks::notifications))
        .route("/openapi.json", get(document))
        .route("/health", get(health))
        .method_not_allowed_fallback(async || Problem::METHOD_NOT_ALLOWED)
        .fallback(async || Problem::NO_PATH)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(api)
}

async fn document() -> ([(&'static str, &'static str); 1], &'static str) {
    ([("content-type", "application/json")], include_str!("../../openapi.json"))
}

/// Whether the database answers.
async fn health(api: Service) -> Result<&'static str, Problem> {
    api.payments.database.row("select 1", &[]).await?;
    Ok("well\n")
}

#[cfg(test)]
mod tests;
