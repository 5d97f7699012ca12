//! Whether the earliest batch takes long. Then the lane gets no new units, and its waiting units move to other lanes.
//! One timer lives as long as the lane and is set again only when it fires, so a quick batch costs only a store of the
//! time.

use std::pin::Pin;
use std::time::{Duration, Instant};

use hotrow_core::limits;
use tokio::time::Sleep;

use super::Task;
use super::backend::Backend;

const LIMIT: Duration = Duration::from_millis(limits::LANE_SLOW_MS);

/// The timer of the earliest batch.
pub struct SlowTimer {
    since: Instant,
    is_slow: bool,
    /// Another lane can run the waiting units.
    reroutes_units: bool,
    timer: Pin<Box<Sleep>>,
}

impl Default for SlowTimer {
    fn default() -> Self {
        SlowTimer {
            since: Instant::now(),
            is_slow: false,
            reroutes_units: false,
            timer: Box::pin(tokio::time::sleep(LIMIT)),
        }
    }
}

impl SlowTimer {
    /// The server begins with a batch: the time starts again.
    pub fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// Whether the batch was found to take long.
    pub fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// Whether waiting and new units move to other lanes.
    pub fn reroutes_units(&self) -> bool {
        self.is_slow && self.reroutes_units
    }

    /// Waits until the timer expires. Cancel safe.
    pub async fn expired(&mut self) {
        loop {
            self.timer.as_mut().await;
            let end = self.since + LIMIT;
            if end <= Instant::now() {
                return;
            }
            self.timer.as_mut().reset(end.into());
        }
    }
}

impl<B: Backend> Task<B> {
    /// The earliest batch takes long.
    pub(super) fn batch_is_slow(&mut self) {
        self.slow_timer.is_slow = true;
        tracing::debug!(lane = self.index, kind = ?self.kind, "a batch takes long: waiting units move to other lanes");
        self.slow_timer.reroutes_units = self.backend.shared().set_slow(self.kind, self.index, true);
    }

    /// The slow batch is over.
    pub(super) fn slow_batch_over(&mut self) {
        if std::mem::take(&mut self.slow_timer.is_slow) {
            self.backend.shared().set_slow(self.kind, self.index, false);
        }
    }
}
