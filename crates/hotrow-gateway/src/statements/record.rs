//! What the runs of statements of one shape have shown: the counts of their outcomes, and the credit to run in lanes. Statements
//! whose texts differ only in values share a record, also if each is prepared by a name of its own at the server. A record
//! holds measurements only. Verdicts and proofs depend on the values that stay in a text, and belong to each statement.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use hotrow_connect::lock::Lock;
use hotrow_core::session::RunOutcome;
use hotrow_core::{limits, normalise};

use super::counts::Counts;

/// A statement that fails in a lane makes its whole batch run again. Each failure takes this much of its credit, and
/// each success returns one. A statement that fails more than one time in five is passed through until it has
/// recovered.
const CREDIT_MAX: i32 = 64;
const CREDIT_OF_FAILURE: i32 = 4;
/// A statement that takes too long in a lane holds up the other units of its batch, and is passed through this often before a lane
/// tries it again: each time four times as often, up to the maximum. Few times at first, because any statement is slow when
/// the machine is overloaded, and the clients of a hot row that is passed through overload it: they would keep it there.
const PASSED_AFTER_SLOW: i32 = 32;
const PASSED_AFTER_SLOW_MAX: i32 = 1_000;
/// After this number of successes in lanes since it was too slow, the next time is the first again.
const SLOW_FORGOTTEN: u32 = 10_000;
/// A credit below this is never earned back.
const CREDIT_OF_EXCLUDED: i32 = i32::MIN / 4;

/// Bytes that a record and its place in the list of records use, besides its key.
const RECORD_BYTES: usize = 256;

/// The record of the statements of one shape with the same declared types.
#[derive(Debug)]
pub struct RunRecord {
    counts: Counts,
    credit: AtomicI32,
    /// How often they are passed through when one is too slow in a lane the next time.
    passed_after_slow: AtomicI32,
    /// The successes in lanes since one was too slow there. Not counted if none was, or if that is forgotten.
    since_slow: AtomicU32,
    /// How often the primary runs them before they may run on a replica again.
    off_replicas: AtomicU32,
}

impl Default for RunRecord {
    fn default() -> Self {
        RunRecord {
            counts: Counts::default(),
            credit: AtomicI32::new(CREDIT_MAX),
            passed_after_slow: AtomicI32::new(PASSED_AFTER_SLOW),
            since_slow: AtomicU32::new(0),
            off_replicas: AtomicU32::new(0),
        }
    }
}

impl RunRecord {
    /// Counts of the runs by outcome.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub fn count(&self, outcome: RunOutcome) {
        self.counts.add(outcome);
    }

    /// Whether the runs succeed often enough for lanes.
    pub(super) fn has_credit(&self) -> bool {
        self.credit.load(Relaxed) > 0
    }

    /// Notes a success.
    pub fn succeeded(&self) {
        if self.credit.load(Relaxed) < CREDIT_MAX {
            self.credit.fetch_add(1, Relaxed);
        }
    }

    /// Notes a success in a lane. Units that were in lanes when the statements lost their credit do not earn it back.
    pub fn succeeded_in_lane(&self) {
        if self.has_credit() {
            self.succeeded();
        }
        if self.passed_after_slow.load(Relaxed) > PASSED_AFTER_SLOW
            && self.since_slow.fetch_add(1, Relaxed) >= SLOW_FORGOTTEN
        {
            self.forget_slow();
        }
    }

    fn forget_slow(&self) {
        self.passed_after_slow.store(PASSED_AFTER_SLOW, Relaxed);
        self.since_slow.store(0, Relaxed);
    }

    /// Notes a failure that made its batch run again.
    pub fn failed(&self) {
        let credit = self.credit.fetch_sub(CREDIT_OF_FAILURE, Relaxed);
        if (0..=CREDIT_OF_FAILURE).contains(&credit) {
            self.credit.store(-CREDIT_MAX / 2, Relaxed);
        }
    }

    /// Notes that a run took too long in a lane. Of those that were in lanes at the same time, one counts.
    pub fn was_too_slow(&self) {
        if !self.has_credit() {
            return;
        }
        let passed = self.passed_after_slow.load(Relaxed);
        self.passed_after_slow.store((passed * 4).min(PASSED_AFTER_SLOW_MAX), Relaxed);
        self.since_slow.store(0, Relaxed);
        self.credit.fetch_min(-passed, Relaxed);
    }

    /// Notes a run in a batch that took too long for its size. Each takes as much credit as a failure, and the last credit goes as
    /// if the run itself had been too slow.
    pub fn was_in_slow_batch(&self) {
        match self.credit.load(Relaxed) {
            ..=CREDIT_OF_FAILURE => self.was_too_slow(),
            _ => drop(self.credit.fetch_sub(CREDIT_OF_FAILURE, Relaxed)),
        }
    }

    /// Keeps the statements out of lanes for long.
    pub fn pass_for_long(&self) {
        self.credit.fetch_min(-PASSED_AFTER_SLOW_MAX, Relaxed);
    }

    /// Excludes the statements from lanes until the catalog gives one of them another meaning.
    pub fn exclude(&self) {
        self.credit.store(i32::MIN / 2, Relaxed);
    }

    /// Whether they are excluded.
    pub(super) fn is_excluded(&self) -> bool {
        self.credit.load(Relaxed) < CREDIT_OF_EXCLUDED
    }

    /// The catalog has changed: earlier failures say nothing about the next runs.
    pub(super) fn renew_credit(&self) {
        self.credit.store(CREDIT_MAX, Relaxed);
        self.forget_slow();
    }

    /// Notes that a run has failed or was slow on a replica, for example because its table is unlogged. The primary runs
    /// the statements the next times.
    pub fn keep_off_replicas(&self) {
        self.off_replicas.store(limits::OFF_REPLICAS, Relaxed);
    }

    /// Whether they may run on a replica now.
    pub fn may_use_replicas(&self) -> bool {
        let left = self.off_replicas.load(Relaxed);
        if left > 0 {
            self.off_replicas.store(left - 1, Relaxed);
        }
        left == 0
    }
}

/// The records of a pool's statements. A record lives as long as a statement has it.
#[derive(Debug, Default)]
pub(super) struct Records(Lock<List>);

#[derive(Debug, Default)]
struct List {
    /// By the text without values, and the declared types.
    by_shape: HashMap<Box<[u8]>, Weak<RunRecord>>,
    bytes: usize,
    /// The records without a statement are dropped when the list has this size.
    full_bytes: usize,
}

impl Records {
    /// The record of a statement.
    pub(super) fn of(&self, text: &[u8], types: &[u8]) -> Arc<RunRecord> {
        if text.len() > limits::STATEMENT_BYTES_MAX {
            return Arc::default(); // such a statement is not packed
        }
        let shown = normalise::without_values(&String::from_utf8_lossy(text), text.len());
        let key = [shown.as_bytes(), b"\0", types].concat();
        let mut list = self.0.lock();
        if let Some(record) = list.by_shape.get(&*key).and_then(Weak::upgrade) {
            return record;
        }
        list.make_room();
        list.bytes += key.len() + RECORD_BYTES;
        let record = Arc::default();
        list.by_shape.insert(key.into(), Arc::downgrade(&record));
        record
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().by_shape.len()
    }
}

impl List {
    /// Drops the records without a statement, if the list has twice the size that it had after the last time.
    fn make_room(&mut self) {
        if self.bytes < self.full_bytes.max(limits::SHAPES_BYTES_MAX / 8) {
            return;
        }
        self.by_shape.retain(|_, record| record.strong_count() > 0);
        self.bytes = self.by_shape.keys().map(|key| key.len() + RECORD_BYTES).sum();
        self.full_bytes = 2 * self.bytes;
    }
}
