//! A read-only view of a lane for the console.

use std::collections::VecDeque;

use super::{Batch, ConnectionState, Lane, Unit};
use crate::key::Key;

/// The state of a unit in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// The server has it, in the batch with this number.
    UnderWay(u64),
    /// In the queue.
    Queued,
    /// Parked behind a unit of this key that waits for an outsider's lock.
    Parked(Key),
}

impl<P> Lane<P> {
    /// The state of its connection.
    pub fn connection(&self) -> &'static str {
        match self.connection {
            ConnectionState::Down if self.paused => "closed: paused",
            ConnectionState::Down => "closed",
            ConnectionState::Connecting if self.in_doubt() => "connecting, a commit is in doubt",
            ConnectionState::Connecting => "connecting",
            ConnectionState::Up if self.paused => "open, closing",
            ConnectionState::Up => "open",
            ConnectionState::Resolving => "checking the outcome of a commit",
        }
    }

    /// Number of waiting units, including parked ones.
    pub fn waiting(&self) -> usize {
        self.queue.len() + self.blocked.len()
    }

    /// Number of waiting units, without parked ones.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Batches that were sent and are not answered, earliest first.
    pub fn under_way(&self) -> &VecDeque<Batch<P>> {
        &self.under_way
    }

    /// Whether a lost connection left a commit in doubt that is not resolved.
    pub fn in_doubt(&self) -> bool {
        self.connection != ConnectionState::Up && !self.under_way.is_empty()
    }

    /// Whether nothing waits and nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.under_way.is_empty()
    }

    /// The batch with this number, while it is under way.
    pub fn batch(&self, number: u64) -> Option<&Batch<P>> {
        self.under_way.iter().find(|batch| batch.number == number)
    }

    /// Number of units that are parked behind a unit that waits for an outsider's lock.
    pub fn parked(&self) -> usize {
        self.blocked.len()
    }

    /// Whether the session has got a unit back, and has not finished it.
    pub fn remembers(&self, session: u64) -> bool {
        self.returned.contains(&session)
    }

    /// All units of the lane, earliest first and parked ones last.
    pub fn units(&self) -> impl Iterator<Item = (UnitState, &Unit<P>)> {
        let under_way = self
            .under_way
            .iter()
            .flat_map(|batch| batch.units.iter().map(|unit| (UnitState::UnderWay(batch.number), unit)));
        let again = self.again.iter().map(|unit| (UnitState::Queued, unit));
        let queued = self.queue.iter().map(|unit| (UnitState::Queued, unit));
        let parked = self.blocked.iter().map(|(key, unit)| (UnitState::Parked(key), unit));
        under_way.chain(again).chain(queued).chain(parked)
    }
}
