//! The page that Prometheus reads, on an address of its own. The caller passes a function that writes the text.

use std::io;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;

/// Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves `/metrics` until the process ends.
pub async fn serve_metrics(listener: TcpListener, render: fn() -> String) -> io::Result<()> {
    let metrics = get(move || async move { ([(CONTENT_TYPE, TEXT_FORMAT)], render()) });
    axum::serve(listener, Router::new().route("/metrics", metrics)).await
}
