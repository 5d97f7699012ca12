//! An HTTP client with limits for time and size, whose errors say whether the request was sent.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as Pooled, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The time limit for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Connections without a request are kept for this time, and at most this number for each host.
const IDLE: Duration = Duration::from_secs(30);
const IDLE_MOST: usize = 256;

/// The reason why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unanswered {
    /// The server has certainly not received the request.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The server may have received the request.
    #[error("no answer: {0}")]
    Lost(String),
}

/// Connections to all hosts. Clones share them.
#[derive(Clone)]
pub struct Client(Pooled<HttpConnector, Full<Bytes>>);

impl Default for Client {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_LIMIT));
        let client = Pooled::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_MOST)
            .build(connector);
        Self(client)
    }
}

type Response = Result<(u16, Bytes), Unanswered>;

impl Client {
    /// Sends a POST request with JSON.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
        limit: Duration,
    ) -> Response {
        self.send("POST", url, headers, body.into(), limit).await
    }

    /// Sends a GET request.
    pub async fn get(&self, url: &str, limit: Duration) -> Response {
        self.send("GET", url, &[], Bytes::new(), limit).await
    }

    /// Sends a request of any method and reads the answer.
    pub async fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
        limit: Duration,
    ) -> Response {
        let mut request =
            axum::http::Request::builder().method(method).uri(url).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request =
            request.body(Full::new(body)).map_err(|error| Unanswered::NotSent(error.to_string()))?;
        let answer = async {
            let response = self.0.request(request).await.map_err(|error| unanswered(&error))?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| Unanswered::Lost(error.to_string()))?;
            Ok((status, body.to_bytes()))
        };
        let late = |_| Unanswered::Lost(format!("nothing for {} s", limit.as_secs_f32()));
        tokio::time::timeout(limit, answer).await.map_err(late)?
    }
}

fn unanswered(error: &Error) -> Unanswered {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    if error.is_connect() { Unanswered::NotSent(text) } else { Unanswered::Lost(text) }
}
