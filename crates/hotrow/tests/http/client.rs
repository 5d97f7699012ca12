//! A small HTTP client over hyper: sends the tests' requests and returns the replies. Expects nothing itself.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;

/// One header.
pub type Header<'a> = (&'a str, &'a str);

/// A reply to a request.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: hyper::HeaderMap,
    pub text: String,
}

impl Reply {
    /// The body, which must be JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A header, empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The name of the problem, after a check of all fields that a problem has.
    pub fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        for field in ["title", "detail", "hint"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {self:?}");
        }
        problem["type"].as_str().unwrap().rsplit_once('#').unwrap().1.to_owned()
    }

    async fn read(response: Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Reply { status: parts.status.as_u16(), headers: parts.headers, text }
    }
}

fn request(port: u16, method: &str, path: &str, headers: &[Header<'_>], body: &str) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(format!("http://127.0.0.1:{port}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap()
}

async fn stream(port: u16) -> TokioIo<TcpStream> {
    TokioIo::new(TcpStream::connect(("127.0.0.1", port)).await.expect("HTTP is served"))
}

/// One request on its own connection.
pub async fn send(port: u16, method: &str, path: &str, headers: &[Header<'_>], body: &str) -> Reply {
    let (mut sender, connection) = http1::handshake(stream(port).await).await.unwrap();
    tokio::spawn(connection);
    let mut request = request(port, method, path, headers, body);
    let host = format!("127.0.0.1:{port}").parse().unwrap();
    request.headers_mut().entry("host").or_insert(host);
    Reply::read(sender.send_request(request).await.unwrap()).await
}

/// One request with a JSON body, or without a body if the text is empty.
pub async fn json(port: u16, method: &str, path: &str, body: &str) -> Reply {
    let headers: &[Header<'_>] = if body.is_empty() { &[] } else { &[("content-type", "application/json")] };
    send(port, method, path, headers, body).await
}

/// An HTTP/2 connection for any number of concurrent requests.
pub struct Http2 {
    port: u16,
    sender: http2::SendRequest<Full<Bytes>>,
}

impl Http2 {
    /// Connects with prior knowledge, as clients without TLS do.
    pub async fn connect(port: u16) -> Self {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream(port).await).await.unwrap();
        tokio::spawn(connection);
        Http2 { port, sender }
    }

    /// Connects as a client that reads no bodies.
    pub async fn connect_without_reading(port: u16) -> Self {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        let (sender, connection) =
            builder.initial_stream_window_size(0).handshake(stream(port).await).await.unwrap();
        tokio::spawn(connection);
        Http2 { port, sender }
    }

    /// The head of the reply to a GET request. The server drops the body if this is dropped.
    pub async fn head(&self, path: &str) -> Response<Incoming> {
        let request = request(self.port, "GET", path, &[], "");
        self.sender.clone().send_request(request).await.unwrap()
    }

    /// One POST request on the connection.
    pub async fn post(&self, path: &str, body: &str) -> Reply {
        let headers = [("content-type", "application/json")];
        let request = request(self.port, "POST", path, &headers, body);
        Reply::read(self.sender.clone().send_request(request).await.unwrap()).await
    }
}

/// A stream of server-sent events.
pub struct Events {
    headers: hyper::HeaderMap,
    body: Incoming,
    text: String,
}

impl Events {
    /// Opens a stream that must not be refused.
    pub async fn open(port: u16, path: &str, headers: &[Header<'_>]) -> Self {
        Self::try_open(port, path, headers).await.expect("the stream is not refused")
    }

    /// The same, or the status of a refusal.
    pub async fn try_open(port: u16, path: &str, headers: &[Header<'_>]) -> Result<Self, u16> {
        let (mut sender, connection) = http1::handshake(stream(port).await).await.unwrap();
        tokio::spawn(connection);
        let mut request = request(port, "GET", path, headers, "");
        let host = format!("127.0.0.1:{port}").parse().unwrap();
        request.headers_mut().entry("host").or_insert(host);
        let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
        match parts.status.as_u16() {
            200 => Ok(Events { headers: parts.headers, body, text: String::new() }),
            status => Err(status),
        }
    }

    /// A header, empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The name and the data of the next event. `None` if the stream has ended.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (name, data) = event.split_once('\n').unwrap();
                let name = name.strip_prefix("event: ").unwrap().to_owned();
                let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                self.text = rest.to_owned();
                return Some((name, data));
            }
            let frame = tokio::time::timeout(hotrow_testkit::PATIENCE, self.body.frame()).await;
            let frame = frame.expect("an event within the time limit")?.ok()?;
            self.text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    }
}
