//! Refused clients and units by reason. Each kind of refusal is logged, at most once in an interval.

use std::time::Instant;

use hotrow_core::reports::Repeated;

use super::{Counter, milliseconds_since_start};
use crate::lock::Lock;

/// Why a client or a unit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `clients_max` clients are connected, of the gateway or of a `[[pool]]` table.
    TooManyClients,
    /// All combinations of user, database and settings are in use.
    TooManyPools,
    /// No connection to the server became free.
    NoFreeConnection,
    /// A lane's queue is full or too slow.
    QueueFull,
    /// The server cannot be reached, or gives no connection.
    NoServer,
    /// An operator has paused the database.
    Paused,
    /// The client has cancelled the unit.
    Cancelled,
    /// The client reads too slowly.
    SlowReader,
    /// The client may not log in, or the gateway lacks something else.
    Other,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Refusal; 9] = [
        Refusal::TooManyClients,
        Refusal::TooManyPools,
        Refusal::NoFreeConnection,
        Refusal::QueueFull,
        Refusal::NoServer,
        Refusal::Paused,
        Refusal::Cancelled,
        Refusal::SlowReader,
        Refusal::Other,
    ];

    /// The label.
    pub fn label(self) -> &'static str {
        match self {
            Refusal::TooManyClients => "too_many_clients",
            Refusal::TooManyPools => "too_many_pools",
            Refusal::NoFreeConnection => "no_free_connection",
            Refusal::QueueFull => "queue_full",
            Refusal::NoServer => "no_server",
            Refusal::Paused => "paused",
            Refusal::Cancelled => "cancelled",
            Refusal::SlowReader => "slow_reader",
            Refusal::Other => "other",
        }
    }
}

/// The numbers of refusals.
#[derive(Debug)]
pub struct Refusals([(Counter, Lock<Repeated>); Refusal::ALL.len()]);

impl Refusals {
    pub(super) const fn new() -> Self {
        Refusals([const { (Counter::new(), Lock::new(Repeated::NEW)) }; Refusal::ALL.len()])
    }

    /// Counts refusals, and logs them unless the last line about this reason is recent.
    pub fn add(&self, reason: Refusal, count: u64) {
        let (counter, log) = &self.0[reason as usize];
        counter.add(count);
        if reason == Refusal::Cancelled {
            return; // the client has asked for it
        }
        let count = log.lock().note(count, milliseconds_since_start(Instant::now()));
        if let Some(count) = count {
            tracing::warn!(reason = reason.label(), count, "clients or statements were refused");
        }
    }

    /// The number of refusals for this reason.
    pub fn of(&self, reason: Refusal) -> u64 {
        self.0[reason as usize].0.get()
    }

    /// All refusals.
    pub fn total(&self) -> u64 {
        Refusal::ALL.into_iter().map(|reason| self.of(reason)).sum()
    }
}
