//! `/queues`: a page for people, which shows what is in the queues by calls of the API. It changes nothing and loads nothing
//! from elsewhere; a token that it is given stays in its memory.

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

/// Whatever a text of somebody's order might contain: nothing is run or loaded but these files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// The page's files. They say nothing about the queues, so that nobody needs a token for them.
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
