//! Bounds for clients of the HTTP server: durations and numbers.

use std::time::Duration;

use crate::limits;

/// The bounds of durations, and of the number of connections.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most connections at once.
    pub connections: usize,
    /// The time for the headers of a request, and from one request to the next.
    pub headers: Duration,
    /// The time between two bytes in either direction, and without progress of any request.
    pub idle: Duration,
    /// The time that requests under way have after the server is told to stop.
    pub stop: Duration,
}

impl Bounds {
    /// The bounds of [`limits`], with this time to stop.
    pub fn new(stop: Duration) -> Self {
        Bounds {
            connections: limits::HTTP_CONNECTIONS_MAX,
            headers: Duration::from_millis(limits::HTTP_REQUEST_TIMEOUT_MS),
            idle: Duration::from_millis(limits::HTTP_IDLE_MS),
            stop,
        }
    }
}
