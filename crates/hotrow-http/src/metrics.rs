//! The page that Prometheus reads, on an address of its own, and the health of a gateway without the API. The caller passes a
//! function that writes the text, and one that looks whether the server answers.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;

use crate::auth::{self, Tokens};
use crate::health;

/// Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Looks whether the server answers. An error says what is wrong.
pub type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Serves `/metrics` until the process ends. With tokens, each request must have one of them. `/health/live` and `/health/ready` are
/// there, too, and need no token.
pub async fn serve_metrics(
    listener: TcpListener,
    tokens: Option<Tokens>,
    check: Check,
    render: fn() -> String,
) -> io::Result<()> {
    let metrics = get(move || async move { ([(CONTENT_TYPE, TEXT_FORMAT)], render()) });
    let router = Router::new().route("/metrics", metrics);
    let router = match tokens {
        Some(tokens) => router.route_layer(from_fn_with_state(Some(Arc::new(tokens)), auth::check)),
        None => router,
    };
    let router = router
        .route("/health/live", get(health::live))
        .route("/health/ready", get(move || async move { health::ready_if(check().await) }));
    axum::serve(listener, router).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    /// The first line of the answer to a request with this header. The server is away.
    async fn status(path: &str, tokens: Option<Tokens>, header: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let away: Check = Arc::new(|| Box::pin(async { Err("the server is away".to_owned()) }));
        let serving = tokio::spawn(serve_metrics(listener, tokens, away, || "hotrow_clients 0\n".to_owned()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: gateway\r\n{header}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        serving.abort();
        let has_metrics = path == "/metrics" && answer.starts_with("HTTP/1.1 200");
        assert_eq!(answer.contains("hotrow_clients"), has_metrics, "{answer}");
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn with_tokens_each_request_needs_one_and_a_token_for_reading_is_enough() {
        let folder = std::env::temp_dir().join(format!("hotrow-metrics-{}", std::process::id()));
        std::fs::write(&folder, "read-only reader-token-0123456789\n").unwrap();
        let tokens = Tokens::read(Path::new(&folder)).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let bearer = "Authorization: Bearer reader-token-0123456789\r\n";
        let metrics = async |tokens, header: &str| status("/metrics", tokens, header).await;
        assert!(metrics(None, "").await.contains("200"));
        assert!(metrics(Some(tokens.clone()), "").await.contains("401"));
        assert!(metrics(Some(tokens.clone()), &bearer.replace("reader", "writer")).await.contains("401"));
        assert!(metrics(Some(tokens.clone()), bearer).await.contains("200"));
        for (path, code) in [("/health/live", "200"), ("/health/ready", "503")] {
            assert!(
                status(path, Some(tokens.clone()), "").await.contains(code),
                "a probe has no token: {path}"
            );
        }
    }
}
