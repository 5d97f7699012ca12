//! What a client's session does, for people and for those who sort clients by it.

use std::fmt;

use hotrow_lane::cancel::WaitsFor;
use serde::{Serialize, Serializer};

use crate::metrics::Pins;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// Its session works, or waits for the server, on the connection that it holds.
    Active,
    /// It has begun a transaction.
    InTransaction,
    /// Its transaction has failed, and it has not ended it.
    InFailedTransaction,
    /// Its session keeps the connection for these reasons.
    Pinned(Pins),
    /// Its session waits.
    Waits(WaitsFor),
    /// Its unit waits behind another one that waits for an outsider's lock.
    Parked,
    /// Its unit is in a lane.
    InLane,
    /// It listens, without a connection of its own.
    Listens,
    /// It does nothing.
    Idle,
}

/// Clients whose states concern an operator in the same way, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientClass {
    /// It waits for what another client has.
    Waiting,
    /// It keeps a server connection for itself.
    Pinned,
    /// It is in a transaction and sends nothing.
    InTransaction,
    /// It gets an answer as soon as the server has one.
    Active,
    /// It needs nothing.
    Idle,
}

impl ClientState {
    pub fn class(self) -> ClientClass {
        match self {
            ClientState::Waits(WaitsFor::Answer) | ClientState::Active | ClientState::InLane => {
                ClientClass::Active
            }
            ClientState::Waits(_) | ClientState::Parked => ClientClass::Waiting,
            ClientState::Pinned(_) => ClientClass::Pinned,
            ClientState::InTransaction | ClientState::InFailedTransaction => ClientClass::InTransaction,
            ClientState::Listens | ClientState::Idle => ClientClass::Idle,
        }
    }
}

impl fmt::Display for ClientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientState::Pinned(pins) => {
                let reasons: Vec<&str> = pins.reasons().collect();
                return write!(f, "pinned: {}", reasons.join(", "));
            }
            ClientState::Active => "active",
            ClientState::InTransaction => "idle in transaction",
            ClientState::InFailedTransaction => "idle in transaction (aborted)",
            ClientState::Waits(WaitsFor::Connection) => "waits for a connection",
            ClientState::Waits(WaitsFor::Row) => "waits for a row",
            ClientState::Waits(WaitsFor::Answer) => "waits for something to answer",
            ClientState::Waits(WaitsFor::Catalog) => "waits for the catalog",
            ClientState::Waits(WaitsFor::Replica) => "waits for a replica",
            ClientState::Waits(WaitsFor::Notifications) => "waits for notifications",
            ClientState::Parked => "parked behind a locked row",
            ClientState::InLane => "in a lane",
            ClientState::Listens => "idle, listens",
            ClientState::Idle => "idle",
        })
    }
}

impl Serialize for ClientState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_with_a_problem_come_first() {
        let states = [
            ClientState::Parked,
            ClientState::Waits(WaitsFor::Row),
            ClientState::Pinned(Pins::NONE),
            ClientState::InFailedTransaction,
            ClientState::InLane,
            ClientState::Waits(WaitsFor::Answer),
            ClientState::Listens,
        ];
        assert!(states.is_sorted_by_key(|state| state.class()));
    }
}
