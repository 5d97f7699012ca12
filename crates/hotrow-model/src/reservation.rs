//! A reservation and its states: held, then confirmed, cancelled or expired for good. The stock is in `sale.rs`.

use crate::{Status, Time};

/// The state of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Held until this time; without a time, until it is confirmed or cancelled.
    Held { expires_at: Option<Time> },
    /// Sold.
    Confirmed,
    /// The buyer has given the pieces back.
    Cancelled,
    /// The hold has expired and the pieces are back in stock.
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
    /// Returns whether the hold has expired. It expires at its time, not after it.
    pub fn is_due(&self, at: Time) -> bool {
        matches!(self.state, State::Held { expires_at: Some(expires_at) } if expires_at <= at)
    }

    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Held { .. })
    }

    /// The answer to a command on a reservation that is no longer held; None while it is held.
    pub fn decided(&self) -> Option<Status> {
        match self.state {
            State::Held { .. } => None,
            State::Confirmed => Some(Status::Confirmed),
            State::Cancelled => Some(Status::Cancelled),
            State::Expired => Some(Status::Expired),
        }
    }
}
