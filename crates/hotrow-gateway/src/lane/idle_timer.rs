//! How long a lane has been idle. One timer lives as long as the lane and is set again only when it fires, so work
//! costs only a store of the time.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

/// A lane's idle timer.
pub struct IdleTimer {
    since: Instant,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl IdleTimer {
    /// Starts now and expires after `limit`.
    pub fn new(limit: Duration) -> Self {
        IdleTimer { since: Instant::now(), limit, timer: Box::pin(tokio::time::sleep(limit)) }
    }

    /// Notes work: the idle time starts again, with a limit that may be another one since a reload.
    pub fn restart(&mut self, now: Instant, limit: Duration) {
        self.since = now;
        if self.limit != limit {
            self.limit = limit;
            self.timer.as_mut().reset((now + limit).into());
        }
    }

    /// Waits until the timer expires. Cancel safe.
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
