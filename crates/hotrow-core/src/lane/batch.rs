//! One batch: the units a lane commits together, and how far the server has got with them.

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
    /// How many of them the server has answered in full.
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
        Batch { number, units, answered: 0, xid: Xid::Missing, failure: None, written: false }
    }

    pub(super) fn has_session(&self, session: u64) -> bool {
        self.units.iter().any(|unit| unit.session == session)
    }
}
