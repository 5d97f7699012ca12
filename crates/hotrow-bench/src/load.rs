//! What comes back from any load, whoever made it; makes none.

use crate::statistics::Latencies;

/// What the clients were told.
#[derive(Debug)]
pub struct Answers {
    /// How many requests were acknowledged.
    pub acknowledged: u64,
    /// How many that were in a second.
    pub per_second: f64,
    /// How long they took, if that was logged.
    pub latencies: Latencies,
}

/// A run that gives no figure, and why.
#[derive(Debug, Clone)]
pub struct Failure(pub String);
