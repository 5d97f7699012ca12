//! What a lane is about, for people who look at it; changes nothing.

use super::{ConnectionState, Lane, Unit};
use crate::key::Key;

/// Where a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// With the server, in the batch of this number.
    UnderWay(u64),
    /// In the queue.
    Queued,
    /// Behind a unit of this key that waits for an outsider's lock.
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
            ConnectionState::Up if self.paused => "open, to be closed",
            ConnectionState::Up => "open",
            ConnectionState::Resolving => "asking what became of a commit",
        }
    }

    /// Units that wait behind one which waits for an outsider's lock.
    pub fn parked(&self) -> usize {
        self.blocked.len()
    }

    /// All units that it has, earliest first, the parked ones last.
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
