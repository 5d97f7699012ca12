//! One persistent HTTP/1.1 connection. It decides neither the requests nor their times.

use crate::load::Failure;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::fmt::Display;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// A connection that is open from the first request to the last.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

/// A request: a POST if it belongs to a load.
#[derive(Debug)]
pub struct Post {
    pub path: String,
    /// The idempotency key, if the API requires one.
    pub idempotency_key: Option<String>,
    /// JSON, or nothing.
    pub body: Bytes,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Self, Failure> {
        let failed = |error: &dyn Display| Failure(format!("no HTTP connection to {address}: {error}"));
        let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
        stream.set_nodelay(true).map_err(|error| failed(&error))?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
        // If the connection ends, the next request fails.
        tokio::spawn(connection);
        Ok(Self { sender, host: address.to_string() })
    }

    /// Sends a request and waits for the answer.
    pub async fn post(&mut self, post: &Post) -> Result<(StatusCode, Bytes), Failure> {
        self.send(&Method::POST, post).await
    }

    /// The same with any method.
    pub async fn send(&mut self, method: &Method, post: &Post) -> Result<(StatusCode, Bytes), Failure> {
        let Post { path, idempotency_key, body } = post;
        let mut request = Request::builder().method(method).uri(path).header(HOST, self.host.as_str());
        if let Some(key) = idempotency_key {
            request = request.header(HeaderName::from_static("idempotency-key"), key);
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(body.clone()))
            .expect("the path and the headers have digits and letters only");
        let lost = |error| Failure(format!("{method} {path} had no answer: {error}"));
        self.sender.ready().await.map_err(lost)?;
        let (head, body) = self.sender.send_request(request).await.map_err(lost)?.into_parts();
        Ok((head.status, body.collect().await.map_err(lost)?.to_bytes()))
    }
}
