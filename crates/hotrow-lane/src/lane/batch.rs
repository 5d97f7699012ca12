//! One batch: the units that a lane commits together, and the server's progress with them.

use std::ops::Range;
use std::time::Duration;

use super::{LaneKind, Unit};
use crate::key::Key;

/// The transaction ID of a batch, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xid {
    /// It has not arrived.
    Missing,
    /// The transaction has written nothing. Nothing can be lost.
    NothingWritten,
    /// Its ID, which arrives after all replies and before the commit.
    Known(u64),
}

/// The cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error of the unit.
    Error,
    /// The commit failed, and the error can be that of a part of the transaction on another server, which may be committed.
    Uncertain,
    /// The unit waited for a lock that an outsider holds.
    Blocked,
    /// The same, and it is not the lock of a row.
    TableBlocked,
    /// No unit failed. The catalog may have changed since the statements were prepared, and they have to be
    /// checked before the batch runs again.
    Stale,
    /// No unit failed. What they rely on has changed, so each runs alone until that is known.
    Changed,
    /// A statement exceeded the time limit for lanes.
    TooSlow,
    /// No unit failed. The server of the lane is a replica that may not show what the units have to see.
    Behind,
}

/// The changes that a reply to a call shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changes {
    /// None, or all changes are certainly on the lane's server, so its transaction has an ID because of them.
    #[default]
    None,
    /// The reply does not show whether the call changed something, and it could have done so on another server.
    Hidden,
    /// Rows were changed, perhaps on another server.
    Rows,
}

/// How long the server has taken for a batch, since it was written or since the end of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Until its transaction's ID arrived, or until its end if it has not arrived.
    pub execution: Duration,
    /// From there to the end of the commit.
    pub commit: Option<Duration>,
}

/// A batch under way.
#[derive(Debug)]
pub struct Batch<P> {
    /// Its number in this lane, counted from 1.
    pub number: u64,
    /// Its units in the order in which they run.
    pub units: Vec<Unit<P>>,
    /// Whether other units had to wait for the next batch.
    pub(super) others_wait: bool,
    /// Whether its statements took too long for a lane.
    pub is_too_slow: bool,
    /// Number of replies that the server owes. A merged call stands for several units, and a unit can have
    /// several statements.
    pub call_count: usize,
    /// The rows that are locked before anything runs, in key order, each with the index of the unit and the
    /// number of its statement.
    pub ahead: Vec<(Key, usize, u16)>,
    /// Number of rows that are locked.
    pub locked: usize,
    /// Number of replies that the server has completed.
    pub answered: usize,
    /// Indexes of units that found nothing and wait.
    pub waits: Vec<usize>,
    /// Indexes of units that have failed by themselves, and why.
    pub(super) leaves: Vec<(usize, Failure)>,
    /// The changes that its replies have shown so far.
    pub changes: Changes,
    /// Its transaction.
    pub xid: Xid,
    /// The first error the server reported.
    pub failure: Option<Failure>,
    /// Whether the operating system has received so much of the batch that the server can commit it.
    pub written: bool,
}

impl<P> Batch<P> {
    /// Whether the server has run all statements, so that only the commit is missing.
    pub fn is_committing(&self) -> bool {
        self.failure.is_none() && self.call_count > 0 && self.answered >= self.call_count
    }

    /// Whether everything has arrived that the server sends before the commit. It sends no ID of a transaction that only reads.
    pub(super) fn is_complete(&self, kind: LaneKind) -> bool {
        let has_id = kind == LaneKind::Read || self.xid != Xid::Missing;
        has_id && self.locked == self.ahead.len() && self.answered == self.call_count
    }

    /// The server says that its transaction has written nothing, and the replies do not confirm it. Rows may have been
    /// changed on another server, about whose commit this one knows nothing.
    pub(super) fn may_have_written_elsewhere(&self) -> bool {
        self.xid == Xid::NothingWritten && self.changes > Changes::None
    }

    /// Its commit failed, and rows may have been changed on another server whose part is committed all the same.
    pub(super) fn may_be_committed_elsewhere(&self) -> bool {
        self.failure == Some(Failure::Uncertain) && self.changes > Changes::None
    }

    /// Rows were changed, and not by the transaction of the lane's server.
    pub(super) fn has_written_elsewhere(&self) -> bool {
        self.xid == Xid::NothingWritten && self.changes == Changes::Rows
    }

    /// A batch that is not sent yet.
    pub fn new(number: u64, units: Vec<Unit<P>>, others_wait: bool) -> Self {
        let mut batch = Batch {
            number,
            units,
            others_wait,
            is_too_slow: false,
            call_count: 0,
            ahead: Vec::new(),
            locked: 0,
            answered: 0,
            waits: Vec::new(),
            leaves: Vec::new(),
            changes: Changes::None,
            xid: Xid::Missing,
            failure: None,
            written: false,
        };
        batch.call_count = batch.calls().map(|units| batch.answers_owed(&units)).sum();
        batch
    }

    /// The batch's units in order, with merged units together. Each range is one call that stands for several
    /// units, or one unit.
    pub fn calls(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let first = self.units.get(start)?;
            let merge = first.merge();
            let same = |unit: &&Unit<P>| merge.zip(unit.merge()).is_some_and(|(one, other)| one.joins(other));
            let end = start + 1 + self.units[start + 1..].iter().take_while(same).count();
            Some(std::mem::replace(&mut start, end)..end)
        })
    }

    /// Whether such a range is sent as one merged call. A call that can wait is one, also if it is alone.
    pub fn is_merged(&self, units: &Range<usize>) -> bool {
        units.len() > 1 || self.units[units.start].claimed.may_wait
    }

    /// Number of replies that the server owes for such a range.
    pub fn answers_owed(&self, units: &Range<usize>) -> usize {
        if units.len() == 1 { usize::from(self.units[units.start].claimed.statements) } else { 1 }
    }

    /// The units of the call that failed, the number of the statement, and the row that could not be locked
    /// ahead of it. `None` if the commit failed.
    pub(super) fn failed_units(&self) -> Option<(Range<usize>, u16, Option<Key>)> {
        if let Some((key, unit, statement)) = self.ahead.get(self.locked) {
            return Some((*unit..*unit + 1, *statement, Some(*key)));
        }
        let mut answered = self.answered;
        for units in self.calls() {
            let owed = self.answers_owed(&units);
            if answered < owed {
                return Some((units, u16::try_from(answered).unwrap_or(u16::MAX), None));
            }
            answered -= owed;
        }
        None
    }

    /// A unit of several rows locks them in its own order, between those of its neighbours. Another gateway's
    /// batch, or a client's own transaction, can hold one of these rows and wait for another one.
    pub(super) fn takes_locks_in_any_order(&self) -> bool {
        self.ahead.is_empty()
            && self.units.len() > 1
            && self.units.iter().any(|unit| unit.claimed.claims.len() > 1)
    }

    /// Locks all rows first, each once, in the order that all gateways use.
    pub(super) fn lock_ahead(&mut self) {
        if !self.takes_locks_in_any_order() {
            return;
        }
        let mut rows = Vec::new();
        for (place, unit) in self.units.iter().enumerate() {
            if unit.claimed.claims.is_empty() {
                rows.extend(unit.claimed.key.filter(|_| unit.claimed.lockable).map(|key| (key, place, 0)));
            }
            let lockable = unit.claimed.claims.iter().filter(|claim| claim.lockable);
            rows.extend(lockable.map(|claim| (claim.key, place, claim.statement)));
        }
        rows.sort();
        rows.dedup_by_key(|(key, ..)| *key);
        self.ahead = rows;
    }

    pub(super) fn has_session(&self, session: u64) -> bool {
        self.units.iter().any(|unit| unit.session == session)
    }
}
