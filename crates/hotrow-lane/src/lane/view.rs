//! A read-only view of a lane for the console.

use super::{ConnectionState, Lane, Unit};
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
