//! `/`: the operations page, for people. Its files are in this program, and it loads nothing from elsewhere. Its data are the
//! stream of `live` and calls of the API. It keeps a token in its memory only.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use crate::clients::Clients;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// The files below `/page/`, with their types.
macro_rules! files {
    ($($type:ident $name:literal,)*) => {
        &[$((concat!("/page/", $name), $type, include_str!(concat!("page/", $name)))),*]
    };
}

const INDEX: &str = include_str!("page/index.html");
const FILES: &[(&str, &str, &str)] = files! {
    ICON "icon.svg",
    STYLE "base.css",
    STYLE "layout.css",
    STYLE "parts.css",
    SCRIPT "app.js",
    SCRIPT "api.js",
    SCRIPT "chart.js",
    SCRIPT "dom.js",
    SCRIPT "exact.js",
    SCRIPT "format.js",
    SCRIPT "live.js",
    SCRIPT "table.js",
    SCRIPT "clients.js",
    SCRIPT "counters.js",
    SCRIPT "feeds.js",
    SCRIPT "keys.js",
    SCRIPT "lookup.js",
    SCRIPT "now.js",
    SCRIPT "orders.js",
    SCRIPT "queues.js",
    SCRIPT "sales.js",
    SCRIPT "server.js",
    SCRIPT "statements.js",
};

/// Allows the browser to run and load only these files, whatever texts the data contain.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page's files. They contain no data, so they need no token.
pub fn routes() -> Router<Arc<Clients>> {
    let page = Router::new()
        .route("/", get(|| async { file(HTML, INDEX) }))
        .route("/queues", get(|| async { Redirect::permanent("/#queues") }));
    FILES.iter().fold(page, |page, (path, media_type, text)| {
        page.route(path, get(move || async { file(media_type, text) }))
    })
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
