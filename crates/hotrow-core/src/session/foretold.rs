//! The rows for which it is foretold that a statement changes one row: its last runs have done so.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::limits::{FORETOLD_ROWS, RUNS_AFTER_WRONG};

/// The low bits of a slot count the runs that have to change one row before it is foretold again. The other bits are the row's.
const RUNS: u64 = 0xff;

/// What one statement's runs have shown. Each row has one slot, which a later row can take over: hot rows come again. Threads may
/// lose each other's changes. A wrong one costs a transaction that has to be run again, never an answer.
#[derive(Debug, Default)]
pub struct Foretold(OnceLock<Box<[AtomicU64]>>);

impl Foretold {
    /// Whether the next run for this row changes one row.
    pub fn tells(&self, row: u64) -> bool {
        self.0.get().is_some_and(|slots| slots[place(row)].load(Relaxed) == row & !RUNS)
    }

    /// A run for this row has changed one row, or another number of rows.
    pub fn ran(&self, row: u64, changed_one: bool) {
        let slots = self.0.get_or_init(|| (0..FORETOLD_ROWS).map(|_| AtomicU64::new(RUNS)).collect());
        let slot = &slots[place(row)];
        let known = slot.load(Relaxed);
        let is_same = known & !RUNS == row & !RUNS && known != RUNS;
        let left = match (changed_one, is_same) {
            (true, true) => (known & RUNS).saturating_sub(1),
            (true, false) => 0,
            (false, true) => (known & RUNS).max(1),
            (false, false) => 1,
        };
        slot.store(row & !RUNS | left, Relaxed);
    }

    /// It was foretold wrongly for this row.
    pub fn was_wrong(&self, row: u64) {
        if let Some(slots) = self.0.get() {
            slots[place(row)].store(row & !RUNS | RUNS_AFTER_WRONG, Relaxed);
        }
    }
}

/// The statement of a unit under way whose outcome is noted.
#[derive(Debug)]
pub(super) enum Learning<S> {
    Nothing,
    /// One, for this row.
    One(Arc<S>, u64),
    /// The unit has several, whose outcomes are not told apart.
    Several,
}

impl<S> Learning<S> {
    /// The unit has one more statement that is foretold by rows.
    pub(super) fn add(&mut self, statement: &Arc<S>, row: u64) {
        *self = match self {
            Learning::Nothing => Learning::One(statement.clone(), row),
            Learning::One(..) | Learning::Several => Learning::Several,
        };
    }
}

fn place(row: u64) -> usize {
    (row >> 32) as usize % FORETOLD_ROWS
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: u64 = 0x1234_5678_9abc_de00;

    #[test]
    fn a_row_is_foretold_after_a_run_that_changed_one_row() {
        let foretold = Foretold::default();
        assert!(!foretold.tells(ROW) && !foretold.tells(0));
        foretold.ran(ROW, true);
        assert!(foretold.tells(ROW) && !foretold.tells(!ROW) && !foretold.tells(0));
        foretold.ran(ROW, false);
        assert!(!foretold.tells(ROW));
        foretold.ran(ROW, true);
        assert!(foretold.tells(ROW));
    }

    #[test]
    fn a_row_that_was_foretold_wrongly_is_not_foretold_for_a_while() {
        let foretold = Foretold::default();
        foretold.ran(ROW, true);
        foretold.was_wrong(ROW);
        for _ in 0..RUNS_AFTER_WRONG {
            assert!(!foretold.tells(ROW));
            foretold.ran(ROW, true);
        }
        assert!(foretold.tells(ROW));
    }

    #[test]
    fn another_row_takes_the_slot() {
        let foretold = Foretold::default();
        let other = ROW ^ 0x1_0000;
        foretold.ran(ROW, true);
        foretold.ran(other, true);
        assert!(foretold.tells(other) && !foretold.tells(ROW));
        foretold.ran(0, true);
        assert!(foretold.tells(0), "a row can have the number 0");
    }
}
