//! The work of the clients of one database and user since the gateway's start. It outlives their pools, so its numbers
//! only grow. The number of databases and users is bounded: all further ones share their numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotrow_connect::lock::Lock;
use hotrow_core::limits;

use super::Counter;
use super::shadow::ShadowTraffic;

/// The numbers of one database and user.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Writing units committed in a batch. Merged calls are among them.
    pub packed: Counter,
    /// Calls that became part of a merged call.
    pub merged: Counter,
    /// Point reads answered from a batch.
    pub packed_reads: Counter,
    /// Batches committed.
    pub batches: Counter,
    /// Units passed through.
    pub passed: Counter,
    /// Transactions that ended on connections of sessions.
    pub transactions: Counter,
    /// The time of units in lanes.
    pub lane_microseconds: Counter,
    /// The time of units that were passed through.
    pub passed_microseconds: Counter,
    /// The time that sessions waited for connections.
    pub wait_microseconds: Counter,
    /// Bytes received from clients that have left.
    pub received_bytes: Counter,
    /// Bytes sent to clients that have left.
    pub sent_bytes: Counter,
    /// What was found in shadow mode.
    pub shadow: ShadowTraffic,
}

/// A database and a user.
pub type Clients = (String, String);

/// The name of all databases and users that have no numbers of their own.
const OTHERS: &str = "(others)";

/// The numbers by database and user.
#[derive(Debug)]
pub struct TrafficByClients(Lock<BTreeMap<Clients, Arc<Traffic>>>);

impl TrafficByClients {
    pub(super) const fn new() -> Self {
        TrafficByClients(Lock::new(BTreeMap::new()))
    }

    /// The numbers of this database and user.
    pub fn of(&self, database: &str, user: &str) -> Arc<Traffic> {
        let mut all = self.0.lock();
        let clients = (database.to_owned(), user.to_owned());
        let is_full = all.len() >= limits::TRAFFIC_CLIENTS_MAX && !all.contains_key(&clients);
        let clients = if is_full { (OTHERS.to_owned(), OTHERS.to_owned()) } else { clients };
        all.entry(clients).or_default().clone()
    }

    /// All numbers.
    pub fn all(&self) -> Vec<(Clients, Arc<Traffic>)> {
        self.0.lock().iter().map(|(clients, traffic)| (clients.clone(), traffic.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_clients_than_allowed_share_their_numbers() {
        let all = TrafficByClients::new();
        for user in 0..2 * limits::TRAFFIC_CLIENTS_MAX {
            all.of("shop", &user.to_string()).packed.inc();
        }
        let numbers = all.all();
        assert_eq!(numbers.len(), limits::TRAFFIC_CLIENTS_MAX + 1);
        let sum: u64 = numbers.iter().map(|(_, traffic)| traffic.packed.get()).sum();
        assert_eq!(sum, 2 * limits::TRAFFIC_CLIENTS_MAX as u64);
        assert!(Arc::ptr_eq(&all.of("shop", "0"), &all.of("shop", "0")));
    }
}
