//! Whether so many statements that can be packed are under way at once that batches are worth their cost. No I/O.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::limits;

/// The statements under way that can be packed, in lanes and on their sessions' own connections.
///
/// A batch answers all its clients at once, so their number falls for a moment. That must not send the next ones past a lane, where
/// they would lock the rows that those behind them want there.
#[derive(Debug)]
pub struct Crowd {
    /// The number of statements from which there is a crowd.
    from: usize,
    running: AtomicUsize,
    began: Instant,
    /// Microseconds from `began` to the end of the crowd.
    until: AtomicU64,
}

/// A statement under way.
#[derive(Debug)]
pub struct Entered(Arc<Crowd>);

impl Crowd {
    pub fn new(from: usize) -> Arc<Self> {
        let (running, until) = (AtomicUsize::new(0), AtomicU64::new(0));
        Arc::new(Crowd { from, running, began: Instant::now(), until })
    }

    /// A statement begins. Returns also whether there is a crowd.
    pub fn enter(self: &Arc<Self>, now: Instant) -> (Entered, bool) {
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        let now = now.saturating_duration_since(self.began);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if running >= self.from {
            self.until.store(micros(now + Duration::from_millis(limits::CROWD_MS)), Ordering::Relaxed);
        }
        (Entered(self.clone()), running >= self.from || micros(now) < self.until.load(Ordering::Relaxed))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_lasts_a_moment_longer_than_its_statements() {
        let crowd = Crowd::new(3);
        let now = Instant::now();
        let (first, is_crowd) = crowd.enter(now);
        assert!(!is_crowd);
        let (_second, is_crowd) = crowd.enter(now);
        assert!(!is_crowd);
        drop(first);
        let (third, is_crowd) = crowd.enter(now);
        assert!(!is_crowd, "one has ended");
        let (fourth, is_crowd) = crowd.enter(now);
        assert!(is_crowd);
        drop((third, fourth));
        let moment = Duration::from_millis(limits::CROWD_MS);
        assert!(crowd.enter(now + moment / 2).1);
        assert!(!crowd.enter(now + moment * 2).1);
    }
}
