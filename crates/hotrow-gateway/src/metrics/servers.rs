//! Whether each server answered when the maintenance last connected to it, by its hosts. The maintenance connects every few seconds, so the
//! state is known without clients too.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use hotrow_connect::lock::Lock;

/// What keeps an entry.
type Owner = Weak<dyn Any + Send + Sync>;

/// The states by hosts. A server that a reload has removed has no entry.
#[derive(Debug)]
pub struct ServerStates(Lock<BTreeMap<String, (Owner, bool)>>);

impl ServerStates {
    pub(super) const fn new() -> Self {
        ServerStates(Lock::new(BTreeMap::new()))
    }

    /// An attempt to connect has ended. The entry lasts as long as `owner`.
    pub fn set<T: Any + Send + Sync>(&self, hosts: String, owner: &Arc<T>, is_up: bool) {
        let owner = Arc::downgrade(owner);
        self.0.lock().insert(hosts, (owner, is_up));
    }

    pub fn all(&self) -> Vec<(String, bool)> {
        let mut all = self.0.lock();
        all.retain(|_, (owner, _)| owner.strong_count() > 0);
        all.iter().map(|(hosts, (_, is_up))| (hosts.clone(), *is_up)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_shown_as_long_as_it_is_configured() {
        let states = ServerStates::new();
        let [first, second] = [Arc::new(1), Arc::new(2)];
        states.set("a:1".to_owned(), &first, true);
        states.set("b:1".to_owned(), &second, true);
        states.set("a:1".to_owned(), &first, false);
        assert_eq!(states.all(), [("a:1".to_owned(), false), ("b:1".to_owned(), true)]);
        drop(first);
        assert_eq!(states.all(), [("b:1".to_owned(), true)]);
    }
}
