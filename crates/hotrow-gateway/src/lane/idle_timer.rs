//! How long a lane has had nothing to do. One timer for as long as the lane lives, set again only when it goes off: work
//! costs it a store of the time.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

/// A lane's rest.
pub struct IdleTimer {
    since: Instant,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl IdleTimer {
    /// Begins now; long when it takes `limit`.
    pub fn new(limit: Duration) -> Self {
        IdleTimer { since: Instant::now(), limit, timer: Box::pin(tokio::time::sleep(limit)) }
    }

    /// There is work: what rest follows begins after this.
    pub fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// Waits until it is long. Cancel safe.
    pub async fn expired(&mut self) {
        loop {
            self.timer.as_mut().await;
            let end = self.since + self.limit;
            if end <= Instant::now() {
                return;
            }
            self.timer.as_mut().reset(end.into());
        }
    }
}
