//! Refused clients and units by reason. Each kind of refusal is logged, at most once in an interval.

use std::time::Instant;

use hotrow_core::reports::Repeated;

use super::{Counter, milliseconds_since_start};
use crate::lock::Lock;

/// Why a client or a unit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
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

impl RefusalReason {
    /// All reasons.
    pub const ALL: [RefusalReason; 9] = [
        RefusalReason::TooManyClients,
        RefusalReason::TooManyPools,
        RefusalReason::NoFreeConnection,
        RefusalReason::QueueFull,
        RefusalReason::NoServer,
        RefusalReason::Paused,
        RefusalReason::Cancelled,
        RefusalReason::SlowReader,
        RefusalReason::Other,
    ];

    /// The label.
    pub fn label(self) -> &'static str {
        match self {
            RefusalReason::TooManyClients => "too_many_clients",
            RefusalReason::TooManyPools => "too_many_pools",
            RefusalReason::NoFreeConnection => "no_free_connection",
            RefusalReason::QueueFull => "queue_full",
            RefusalReason::NoServer => "no_server",
            RefusalReason::Paused => "paused",
            RefusalReason::Cancelled => "cancelled",
            RefusalReason::SlowReader => "slow_reader",
            RefusalReason::Other => "other",
        }
    }
}

/// The numbers of refusals.
#[derive(Debug)]
pub struct Refusals([(Counter, Lock<Repeated>); RefusalReason::ALL.len()]);

impl Refusals {
    pub(super) const fn new() -> Self {
        Refusals([const { (Counter::new(), Lock::new(Repeated::NEW)) }; RefusalReason::ALL.len()])
    }

    /// Counts refusals, and logs them unless the last line about this reason is recent.
    pub fn add(&self, reason: RefusalReason, count: u64) {
        let (counter, log) = &self.0[reason as usize];
        counter.add(count);
        if reason == RefusalReason::Cancelled {
            return; // the client has asked for it
        }
        let count = log.lock().note(count, milliseconds_since_start(Instant::now()));
        if let Some(count) = count {
            tracing::warn!(reason = reason.label(), count, "clients or statements were refused");
        }
    }

    /// The number of refusals for this reason.
    pub fn of(&self, reason: RefusalReason) -> u64 {
        self.0[reason as usize].0.get()
    }

    /// All refusals.
    pub fn total(&self) -> u64 {
        RefusalReason::ALL.into_iter().map(|reason| self.of(reason)).sum()
    }
}
