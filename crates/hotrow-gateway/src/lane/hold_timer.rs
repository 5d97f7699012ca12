//! How long a lane still holds its next batch back.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

/// The timer of a held batch. It lives as long as the lane, so a hold allocates nothing.
pub struct HoldTimer {
    end: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Default for HoldTimer {
    fn default() -> Self {
        HoldTimer { end: None, timer: Box::pin(tokio::time::sleep(Duration::ZERO)) }
    }
}

impl HoldTimer {
    /// The next batch is held back for this time.
    pub fn start(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.end = Some(end);
        self.timer.as_mut().reset(end.into());
    }

    /// A batch is sent, or the lane waits for nothing.
    pub fn stop(&mut self) {
        self.end = None;
    }

    /// Whether a batch is held back.
    pub fn runs(&self) -> bool {
        self.end.is_some()
    }

    /// Whether the time is over. The timer may fire a millisecond later.
    pub fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end <= Instant::now())
    }

    /// Waits until the time is over. Cancel safe.
    pub async fn expired(&mut self) {
        self.timer.as_mut().await;
    }
}
