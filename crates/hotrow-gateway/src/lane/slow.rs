//! Whether the earliest batch takes long. Then the lane gets no new units, and its waiting units move to other lanes.

use std::time::{Duration, Instant};

use hotrow_core::limits;

use super::Task;
use super::backend::Backend;
use super::lazy_timer::LazyTimer;

const LIMIT: Duration = Duration::from_millis(limits::LANE_SLOW_MS);

/// The timer of the earliest batch.
pub struct SlowTimer {
    is_slow: bool,
    /// Another lane can run the waiting units.
    reroutes_units: bool,
    timer: LazyTimer,
}

impl Default for SlowTimer {
    fn default() -> Self {
        SlowTimer { is_slow: false, reroutes_units: false, timer: LazyTimer::new(LIMIT) }
    }
}

impl SlowTimer {
    /// The server begins with a batch: the time starts again.
    pub fn restart(&mut self, now: Instant) {
        self.timer.restart(now, LIMIT);
    }

    /// Whether the batch was found to take long.
    pub fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// Whether waiting and new units move to other lanes.
    pub fn reroutes_units(&self) -> bool {
        self.is_slow && self.reroutes_units
    }

    /// Waits until the batch takes long. Cancel safe.
    pub async fn expired(&mut self) {
        self.timer.expired().await;
    }
}

impl<B: Backend> Task<B> {
    /// The earliest batch takes long.
    pub(super) fn batch_is_slow(&mut self) {
        self.slow_timer.is_slow = true;
        tracing::debug!(lane = self.index, kind = ?self.kind, "a batch takes long: waiting units move to other lanes");
        self.slow_timer.reroutes_units = self.backend.shared().set_slow(self.kind, self.index, true);
    }

    pub(super) fn slow_batch_over(&mut self) {
        if std::mem::take(&mut self.slow_timer.is_slow) {
            self.backend.shared().set_slow(self.kind, self.index, false);
        }
    }
}
