//! The spans of batches on their way from lanes to a collector of traces: a queue with a bound. The program sends them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hotrow_core::limits;
use hotrow_core::traceparent::SpanContext;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::metrics::METRICS;

/// The span of one batch.
#[derive(Debug)]
pub struct BatchSpan {
    pub lane: Arc<TracedLane>,
    pub began: SystemTime,
    pub took: Duration,
    pub units: usize,
    pub statements: usize,
    pub outcome: BatchOutcome,
    /// The spans of clients that its units are part of.
    pub links: Vec<SpanContext>,
    /// Number of such spans for which `links` has no room.
    pub dropped_links: usize,
}

/// A lane as its spans name it.
#[derive(Debug)]
pub struct TracedLane {
    /// User and database at the server.
    pub pool: String,
    /// `write` or `read`.
    pub kind: &'static str,
    /// Its index among the lanes of its kind to the same server.
    pub index: usize,
    /// The node of a distributed database, if it is not the pool's server.
    pub node: Option<i32>,
    /// The replica, if it is not the primary.
    pub replica: Option<String>,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    Committed,
    /// Its units ran again, or left the lane.
    RolledBack,
    Unknown,
}

/// Where lanes put spans.
#[derive(Clone, Debug)]
pub struct Traces(Sender<BatchSpan>);

impl Traces {
    /// A new queue, and its end from which spans are taken.
    pub fn new() -> (Self, Receiver<BatchSpan>) {
        let (sender, receiver) = channel(limits::SPANS_WAITING_MAX);
        (Traces(sender), receiver)
    }

    /// Adds a span. If there is no room, the span is dropped: no statement waits for a collector.
    pub fn put(&self, span: BatchSpan) {
        if self.0.try_send(span).is_err() {
            METRICS.spans_dropped.inc();
        }
    }
}
