//! `/queues`: a page for people, which shows the queues with calls of the API. It changes nothing and loads nothing from
//! elsewhere. It keeps a token in its memory only.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::clients::Clients;

const HTML: &str = include_str!("page/queues.html");
const EXACT: &str = include_str!("page/exact.js");
const SCRIPT: &str = include_str!("page/queues.js");
const STYLE: &str = include_str!("page/queues.css");

/// Allows the browser to run and load only these files, whatever texts the orders contain.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// The page's files. They contain nothing about the queues, so they need no token.
pub fn routes() -> Router<Arc<Clients>> {
    Router::new()
        .route("/queues", get(|| async { file("text/html; charset=utf-8", HTML) }))
        .route("/queues/exact.js", get(|| async { file("text/javascript; charset=utf-8", EXACT) }))
        .route("/queues/queues.js", get(|| async { file("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/queues/queues.css", get(|| async { file("text/css; charset=utf-8", STYLE) }))
}

fn file(media_type: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}
