//! A reservation and its life: held, then confirmed, cancelled or expired, and that for good. Never touches stock.

use crate::{Status, Time};

/// Where a reservation is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Until a moment, or until somebody decides.
    Held { expires_at: Option<Time> },
    /// Sold.
    Confirmed,
    /// Given back by the buyer.
    Cancelled,
    /// Given back by time.
    Expired,
}

/// Some pieces of an item for a buyer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reservation {
    pub item: String,
    pub buyer: String,
    pub quantity: i64,
    pub state: State,
}

impl Reservation {
    /// A hold ends at its moment, not behind it.
    pub fn is_due(&self, at: Time) -> bool {
        matches!(self.state, State::Held { expires_at: Some(expires_at) } if expires_at <= at)
    }

    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Held { .. })
    }

    /// The answer to a command that found the reservation decided; None while it is held.
    pub fn decided(&self) -> Option<Status> {
        match self.state {
            State::Held { .. } => None,
            State::Confirmed => Some(Status::Confirmed),
            State::Cancelled => Some(Status::Cancelled),
            State::Expired => Some(Status::Expired),
        }
    }
}
