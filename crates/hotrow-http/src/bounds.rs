//! How long clients of the HTTP server can take, and how many there can be.

use std::time::Duration;

use hotrow_core::limits;

/// How long clients may take, and how many they may be.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at once.
    pub connections: usize,
    /// For the headers of a request, and from one request to the next.
    pub headers: Duration,
    /// Between two bytes, in either direction, and for a request that does not go on.
    pub idle: Duration,
    /// For what is under way when the server is told to stop.
    pub stop: Duration,
}

impl Bounds {
    /// Those of [`limits`], and so long for the end.
    pub fn new(stop: Duration) -> Self {
        Bounds {
            connections: limits::HTTP_CONNECTIONS_MAX,
            headers: Duration::from_millis(limits::HTTP_REQUEST_TIMEOUT_MS),
            idle: Duration::from_millis(limits::HTTP_IDLE_MS),
            stop,
        }
    }
}
