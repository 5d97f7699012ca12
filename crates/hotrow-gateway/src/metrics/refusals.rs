//! Refused clients and units by reason. Each kind of refusal is logged, at most once in an interval.

use std::fmt::Display;
use std::time::Instant;

use hotrow_connect::lock::Lock;
use hotrow_core::reports::Repeated;

use super::{Counter, milliseconds_since_start};

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
    /// The server cannot be reached.
    NoServer,
    /// The server, the role or the database has reached its limit of connections.
    ServerFull,
    /// The gateway cannot log in at the server as the client's user.
    NoCredentials,
    /// The server gives no connection for another reason.
    ServerRefuses,
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
    pub const ALL: [RefusalReason; 12] = [
        RefusalReason::TooManyClients,
        RefusalReason::TooManyPools,
        RefusalReason::NoFreeConnection,
        RefusalReason::QueueFull,
        RefusalReason::NoServer,
        RefusalReason::ServerFull,
        RefusalReason::NoCredentials,
        RefusalReason::ServerRefuses,
        RefusalReason::Paused,
        RefusalReason::Cancelled,
        RefusalReason::SlowReader,
        RefusalReason::Other,
    ];

    pub fn label(self) -> &'static str {
        match self {
            RefusalReason::TooManyClients => "too_many_clients",
            RefusalReason::TooManyPools => "too_many_pools",
            RefusalReason::NoFreeConnection => "no_free_connection",
            RefusalReason::QueueFull => "queue_full",
            RefusalReason::NoServer => "no_server",
            RefusalReason::ServerFull => "server_full",
            RefusalReason::NoCredentials => "no_credentials",
            RefusalReason::ServerRefuses => "server_refuses",
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
        if let Some(count) = self.count(reason, count) {
            tracing::warn!(reason = reason.label(), count, "clients or statements were refused");
        }
    }

    /// The same, with the cause of the last one.
    pub fn add_because(&self, reason: RefusalReason, count: u64, error: &dyn Display) {
        if let Some(count) = self.count(reason, count) {
            let error = error.to_string(); // as a text, whose control characters are escaped: it can have a client's names
            tracing::warn!(reason = reason.label(), count, error, "clients or statements were refused");
        }
    }

    /// Counts refusals. Returns the number to log.
    fn count(&self, reason: RefusalReason, count: u64) -> Option<u64> {
        let (counter, log) = &self.0[reason as usize];
        counter.add(count);
        if reason == RefusalReason::Cancelled {
            return None; // the client has asked for it
        }
        log.lock().note(count, milliseconds_since_start(Instant::now()))
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
