//! A timer that is restarted far more often than it expires: how long a lane has been idle, and how long its earliest batch
//! takes. It lives as long as the lane and is set again only when it fires, so a restart costs only a store of the time.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

/// Expires when it has not been restarted for this time.
pub struct LazyTimer {
    since: Instant,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl LazyTimer {
    /// Starts now and expires after `limit`.
    pub fn new(limit: Duration) -> Self {
        LazyTimer { since: Instant::now(), limit, timer: Box::pin(tokio::time::sleep(limit)) }
    }

    /// The time starts again, with a limit that may be another one since a reload.
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
