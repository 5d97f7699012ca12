//! What comes back from any load, whoever made it; makes none.

use crate::statistics::Latencies;
use serde::Serialize;

/// What the clients were told.
#[derive(Debug)]
pub struct Answers {
    /// How many requests were acknowledged.
    pub acknowledged: u64,
    /// How many requests of the load beside it were.
    pub beside: u64,
    /// How many of its own that were in a second.
    pub per_second: f64,
    /// How long they took, if that was logged.
    pub latencies: Latencies,
    /// How well the load itself did, if it is one that says so.
    pub pace: Option<Pace>,
}

/// What an open loop says about itself, so that its own shortcomings are not taken for those of what it measures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// Requests that were made in a second, answered or not.
    pub arrived_per_second: f64,
    /// How late 99 in 100 of them were made, at most.
    pub late_p99_us: u64,
    /// Requests that were refused because too many were under way; nothing was executed, and no latency counts them.
    pub refused: u64,
}

/// A run that gives no figure, and why.
#[derive(Debug, Clone)]
pub struct Failure(pub String);
