//! Whether a lane holds its next batch back until the clients that it has just answered are back.
//!
//! While the server flushes a commit, the other clients' units gather. If they were sent as soon as the commit is done,
//! the clients would stay in two groups, and each group would pay for a flush of its own. If commits take long and the
//! answered clients come back at once, one flush for all of them is about twice as fast.

use std::time::Duration;

use crate::limits;

/// A past commit counts for a third after this number of commits.
const MEMORY_COMMITS: u32 = 6;

/// Among this number of commits, the longest one does not decide how long a batch is held back. A disk that has stopped
/// for a moment is fast again afterwards.
const LAST_COMMITS: usize = 4;

/// The state of a lane's holds.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// How long commits take on average.
    commit: Duration,
    /// How long the last ones took. The first one counts for those before it.
    last: Option<[Duration; LAST_COMMITS]>,
    /// Number of waiting units with which the next batch is sent, if it is held back.
    enough: Option<usize>,
    /// Number of commits after which no batch is held back, because the last hold was in vain.
    skip: u32,
    /// The next value of `skip`. It doubles with each hold in vain.
    next_skip: u32,
}

impl Hold {
    /// The server has taken this long for a commit.
    pub(super) fn commit_took(&mut self, took: Duration) {
        self.commit = (self.commit * (MEMORY_COMMITS - 1) + took) / MEMORY_COMMITS;
        let last = self.last.get_or_insert([took; LAST_COMMITS]);
        last.rotate_right(1);
        last[0] = took;
    }

    /// How long a commit usually takes: the average, unless a single long commit has raised it.
    fn usual(&self) -> Duration {
        let mut last = self.last.unwrap_or_default();
        last.sort_unstable();
        self.commit.min(last[LAST_COMMITS - 2])
    }

    /// Whether all clients should share one commit. There is then no second batch before the lane is full.
    pub(super) fn is_worth_it(&self) -> bool {
        self.skip == 0 && self.usual() >= Duration::from_millis(limits::HOLD_COMMIT_MS)
    }

    /// `answered` units are committed and `waiting` units wait. Returns how long the next batch is held back at most.
    pub(super) fn begin(&mut self, answered: usize, waiting: usize) -> Option<Duration> {
        if !self.is_worth_it() {
            self.skip = self.skip.saturating_sub(1);
            return None;
        }
        // The last ones to come back would delay all others. They share the commit after the next.
        let enough = waiting + answered - answered / 8;
        if enough > limits::BATCH_UNITS_MAX {
            return None;
        }
        self.enough = Some(enough);
        Some(self.usual() * 3 / 4)
    }

    /// Number of waiting units with which the lane sends a batch.
    pub(super) fn enough(&self) -> Option<usize> {
        self.enough
    }

    /// The time is over.
    pub(super) fn over(&mut self) {
        if self.enough.take().is_some() {
            self.was_in_vain();
        }
    }

    /// A batch with this number of units is sent. If units wait that had no place in it, the hold was in vain.
    pub(super) fn sent(&mut self, units: usize) {
        match self.enough.take() {
            Some(enough) if units < enough => self.was_in_vain(),
            Some(_) => self.next_skip = 0,
            None => {}
        }
    }

    /// The connection is lost, or the lane is paused.
    pub(super) fn cancel(&mut self) {
        self.enough = None;
    }

    fn was_in_vain(&mut self) {
        self.next_skip = (self.next_skip * 2).clamp(1, limits::HOLD_SKIPS_MAX);
        self.skip = self.next_skip;
    }
}
