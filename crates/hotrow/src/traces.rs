//! Sends the spans of batches to a collector, on a thread of its own. What it sends is written by `request`.

mod request;

use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hotrow_core::limits;
use hotrow_gateway::metrics::METRICS;
use hotrow_gateway::traces::{BatchSpan, Traces};
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::settings::Collector;

/// The thread that sends spans.
pub struct Exporter {
    /// Where lanes put spans.
    pub queue: Traces,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Exporter {
    /// Begins to wait for spans. The collector may be away: nothing but the spans is lost then.
    pub fn start(collector: Collector) -> io::Result<Self> {
        let (queue, waiting) = Traces::new();
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let sending = Sending { collector, waiting, spans: Vec::new(), is_failing: false };
        let thread = thread::Builder::new().name("traces".to_owned()).spawn(move || {
            runtime.block_on(sending.run(stopped));
            // A name that is still being resolved must not hold up the end.
            runtime.shutdown_background();
        })?;
        Ok(Exporter { queue, stop, thread })
    }

    /// Sends the spans that still wait, within a bounded time.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join(); // it has reported its panic
    }
}

/// Why spans did not reach the collector.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}")]
    Connect(#[from] io::Error),
    #[error("no answer in time")]
    Silent,
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("the answer has status {0}")]
    Status(hyper::StatusCode),
    #[error("the collector rejected {0} spans: {1}")]
    Rejected(u64, String),
    #[error("the system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

struct Sending {
    collector: Collector,
    waiting: Receiver<BatchSpan>,
    /// The spans that are sent next, or being sent.
    spans: Vec<BatchSpan>,
    /// Whether the last request has failed.
    is_failing: bool,
}

impl Sending {
    async fn run(mut self, stopped: oneshot::Receiver<()>) {
        tokio::select! {
            () = self.send_as_they_come() => {}
            _ = stopped => {}
        }
        // Those that were being sent are sent again.
        let longest = Duration::from_millis(limits::SPANS_STOP_TIMEOUT_MS);
        if timeout(longest, self.send_all()).await.is_err() {
            tracing::warn!("the last spans did not reach the collector of traces before the gateway stopped");
        }
    }

    /// Lanes wake this thread for the first span only, not for those that follow soon.
    async fn send_as_they_come(&mut self) {
        while self.waiting.recv_many(&mut self.spans, 1).await > 0 {
            sleep(Duration::from_millis(limits::SPANS_GATHER_MS)).await;
            self.send_all().await;
        }
    }

    async fn send_all(&mut self) {
        loop {
            while self.spans.len() < limits::SPANS_SENT_MAX
                && let Ok(span) = self.waiting.try_recv()
            {
                self.spans.push(span);
            }
            if self.spans.is_empty() {
                return;
            }
            let longest = Duration::from_millis(limits::SPANS_SEND_TIMEOUT_MS);
            let sent = timeout(longest, self.send()).await.unwrap_or(Err(Error::Silent));
            self.report(sent);
            self.spans.clear();
        }
    }

    /// Sends a request on a connection of its own: a kept one could be closed by the collector at the same moment.
    async fn send(&self) -> Result<(), Error> {
        let mut ids = vec![[0; request::ID_BYTES]; self.spans.len()];
        getrandom::fill(ids.as_flattened_mut())?;
        let body = Full::new(Bytes::from(request::body(&self.spans, &ids)));
        let stream = TcpStream::connect(&self.collector.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // An error of the connection is also one of the request.
        tokio::spawn(connection);
        let request = Request::post(&self.collector.path)
            .header(HOST, &self.collector.host)
            .header(CONTENT_TYPE, "application/json")
            .header(CONNECTION, "close")
            .body(body);
        let response = sender.send_request(request.expect("the URL was checked")).await?;
        if !response.status().is_success() {
            return Err(Error::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), limits::COLLECTOR_ANSWER_BYTES_MAX).collect().await;
        let answer = body.map(|body| body.to_bytes()).unwrap_or_default();
        match request::rejected(&answer) {
            Some((count, message)) => Err(Error::Rejected(count, message)),
            None => Ok(()),
        }
    }

    /// Counts the spans of a request. Only the first failure in a row is logged, and its end.
    fn report(&mut self, sent: Result<(), Error>) {
        let all = self.spans.len() as u64;
        let dropped = match &sent {
            Ok(()) => 0,
            Err(Error::Rejected(count, _)) => all.min(*count),
            Err(_) => all,
        };
        METRICS.spans_exported.add(all - dropped);
        METRICS.spans_dropped.add(dropped);
        match &sent {
            Err(error) if !self.is_failing => {
                let collector = &self.collector.address;
                tracing::warn!(%collector, %error, "traces do not reach the collector: spans are dropped");
            }
            Ok(()) if self.is_failing => tracing::info!("traces reach the collector again"),
            _ => {}
        }
        self.is_failing = sent.is_err();
    }
}
