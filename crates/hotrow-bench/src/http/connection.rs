//! One HTTP/1.1 connection to a gateway and the two requests that are made on it; decides no time to make them.

use crate::load::Failure;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::fmt::Display;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// A connection that is kept from the first request to the last.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    increment: String,
    drain: String,
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was carried out and committed.
    CarriedOut { value: i64, version: i64 },
    /// The gateway was too busy, and nothing was executed.
    Refused,
}

/// The API's answer to both requests.
#[derive(Deserialize)]
struct Answer {
    value: i64,
    version: i64,
    status: String,
}

impl Connection {
    /// Connects, for commands on this counter.
    pub(super) async fn open(address: SocketAddr, counter: &str) -> Result<Self, Failure> {
        let failed = |error: &dyn Display| Failure(format!("no HTTP connection to {address}: {error}"));
        let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
        stream.set_nodelay(true).map_err(|error| failed(&error))?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
        // Its end shows up as an error of the next request.
        tokio::spawn(connection);
        Ok(Self {
            sender,
            host: address.to_string(),
            increment: format!("/v1/counters/{counter}/increment"),
            drain: format!("/v1/counters/{counter}/drain"),
        })
    }

    /// Increments by one, or drains. An answer that leaves open what happened is a failure.
    pub(super) async fn post(&mut self, drain: bool) -> Result<Outcome, Failure> {
        const INCREMENT: &[u8] = br#"{"amount":1}"#;
        let path = if drain { &self.drain } else { &self.increment };
        let mut request = Request::post(path.as_str()).header(HOST, self.host.as_str());
        if !drain {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from_static(if drain { b"" } else { INCREMENT }));
        let request = request.body(body).expect("the path and the headers are made of digits and letters");
        let lost = |error| Failure(format!("POST {path} had no answer: {error}"));
        self.sender.ready().await.map_err(lost)?;
        let (head, body) = self.sender.send_request(request).await.map_err(lost)?.into_parts();
        let body = body.collect().await.map_err(lost)?.to_bytes();
        outcome(head.status, &body).map_err(|said| Failure(format!("POST {path} was answered with {said}")))
    }
}

/// What an answer means; if it is none to go on with, what it said.
fn outcome(status: StatusCode, body: &[u8]) -> Result<Outcome, String> {
    if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
        return Ok(Outcome::Refused);
    }
    match serde_json::from_slice::<Answer>(body) {
        Ok(Answer { value, version, status: word }) if status == StatusCode::OK && word == "ok" => {
            Ok(Outcome::CarriedOut { value, version })
        }
        _ => Err(format!("{status}: {}", String::from_utf8_lossy(body))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, outcome};
    use hyper::StatusCode;

    #[test]
    fn only_a_success_counts_and_only_what_was_not_executed_is_a_refusal() {
        let ok = br#"{"value":5,"version":1,"status":"ok"}"#;
        assert!(matches!(outcome(StatusCode::OK, ok), Ok(Outcome::CarriedOut { value: 5, version: 1 })));
        assert!(matches!(outcome(StatusCode::TOO_MANY_REQUESTS, b"{}"), Ok(Outcome::Refused)));
        assert!(matches!(outcome(StatusCode::SERVICE_UNAVAILABLE, b""), Ok(Outcome::Refused)));
        let unknown = outcome(StatusCode::GATEWAY_TIMEOUT, b"who knows").unwrap_err();
        assert!(unknown.starts_with("504") && unknown.ends_with("who knows"), "{unknown}");
        let refused = br#"{"value":5,"version":1,"status":"out_of_bounds"}"#;
        assert!(outcome(StatusCode::OK, refused).unwrap_err().contains("out_of_bounds"));
    }
}
