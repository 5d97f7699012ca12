//! How far the replicas are behind the primary, by address. A replica whose lag is not known has no entry.

use std::collections::BTreeMap;

use hotrow_connect::lock::Lock;
use hotrow_core::limits;

/// How far a replica was behind when it was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// The age of the earliest position of the primary that it had not replayed.
    pub milliseconds: u64,
    /// Bytes of WAL that it had not replayed.
    pub bytes: u64,
}

/// The lags by address. Pools with the same replica share an entry.
#[derive(Debug)]
pub struct ReplicaLags(Lock<BTreeMap<String, Lag>>);

impl ReplicaLags {
    pub(super) const fn new() -> Self {
        ReplicaLags(Lock::new(BTreeMap::new()))
    }

    /// The replica at this address was asked.
    pub fn set(&self, address: String, lag: Lag) {
        let mut all = self.0.lock();
        if all.len() < limits::REPLICA_LAGS_MAX || all.contains_key(&address) {
            all.insert(address, lag);
        }
    }

    /// Its lag is not known any longer.
    pub fn forget(&self, address: &str) {
        self.0.lock().remove(address);
    }

    pub fn all(&self) -> Vec<(String, Lag)> {
        self.0.lock().iter().map(|(address, lag)| (address.clone(), *lag)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_whose_lag_is_not_known_is_not_shown_and_the_number_is_bounded() {
        let lags = ReplicaLags::new();
        let lag = |bytes| Lag { milliseconds: 1, bytes };
        for number in 0..2 * limits::REPLICA_LAGS_MAX {
            lags.set(format!("{number:05}"), lag(1));
        }
        assert_eq!(lags.all().len(), limits::REPLICA_LAGS_MAX);
        lags.set("00000".to_owned(), lag(2));
        assert_eq!(lags.all()[0], ("00000".to_owned(), lag(2)));
        lags.forget("00000");
        assert_eq!(lags.all()[0].0, "00001");
    }
}
