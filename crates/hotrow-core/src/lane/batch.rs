//! One batch: the units a lane commits together, and how far the server has got with them.

use std::ops::Range;

use super::{Failure, Unit};

/// What is known of the transaction that a batch runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xid {
    /// It has not arrived.
    Missing,
    /// The transaction has written nothing: there is nothing to lose.
    NothingWritten,
    /// Its id, which arrives after all answers and before the commit.
    Known(u64),
}

/// A batch under way.
#[derive(Debug)]
pub struct Batch<P> {
    /// Its number in this lane, counted from 1.
    pub number: u64,
    /// Its units in the order in which they run.
    pub units: Vec<Unit<P>>,
    /// How many calls they are: a merged one stands for several units.
    pub call_count: usize,
    /// How many of its calls the server has answered in full.
    pub answered: usize,
    /// Its transaction.
    pub xid: Xid,
    /// The first error the server reported.
    pub failure: Option<Failure>,
    /// Whether all of it, its Sync included, was handed to the operating system.
    pub written: bool,
}

impl<P> Batch<P> {
    pub(super) fn new(number: u64, units: Vec<Unit<P>>) -> Self {
        let mut batch = Batch {
            number,
            units,
            call_count: 0,
            answered: 0,
            xid: Xid::Missing,
            failure: None,
            written: false,
        };
        batch.call_count = batch.calls().count();
        batch
    }

    /// Its calls in order, each as the range of the units it stands for: one unit, or several that are merged.
    pub fn calls(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let first = self.units.get(start)?;
            let merge = first.merge;
            let same = |unit: &&Unit<P>| merge.zip(unit.merge).is_some_and(|(one, other)| one.joins(other));
            let end = start + 1 + self.units[start + 1..].iter().take_while(same).count();
            Some(std::mem::replace(&mut start, end)..end)
        })
    }

    /// The units of the call that failed; none if it was the commit.
    pub(super) fn failed_units(&self) -> Option<Range<usize>> {
        self.calls().nth(self.answered)
    }

    pub(super) fn has_session(&self, session: u64) -> bool {
        self.units.iter().any(|unit| unit.session == session)
    }
}
