//! The states of all databases, and which of them an operator has paused.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use hotrow_connect::lock::Lock;
use hotrow_core::limits;

use crate::config::routes::Route;
use crate::server::database::DatabaseState;

/// The states of all databases.
#[derive(Debug, Default)]
pub struct Databases {
    state: Lock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Databases that are first used during the pause are paused too.
    all_paused: bool,
    /// The names that are paused by themselves. A pause lasts until it is ended, although all clients may leave and a reload
    /// may give the name another server.
    paused: BTreeSet<String>,
    /// The names that were resumed by themselves while all were paused.
    resumed: BTreeSet<String>,
    /// By the route's number and the name. A name has a second route while clients of a removed one finish.
    databases: HashMap<(u64, String), Weak<DatabaseState>>,
    /// The epochs of the catalogs, by the hosts of the server and the database's name there: several names, and the route
    /// before a reload, can stand for one database.
    catalogs: HashMap<(String, String), Weak<AtomicU64>>,
}

impl State {
    fn is_paused(&self, database: &str) -> bool {
        self.paused.contains(database) || self.all_paused && !self.resumed.contains(database)
    }

    fn matching(&self, database: Option<&str>) -> impl Iterator<Item = Arc<DatabaseState>> {
        let wanted = move |name: &str| database.is_none_or(|database| database == name);
        self.databases
            .iter()
            .filter(move |((_, name), _)| wanted(name))
            .filter_map(|(_, state)| state.upgrade())
    }

    fn catalog(&mut self, hosts: String, database: &str) -> Arc<AtomicU64> {
        let place = (hosts, database.to_owned());
        if let Some(known) = self.catalogs.get(&place).and_then(Weak::upgrade) {
            return known;
        }
        self.catalogs.retain(|_, known| known.strong_count() > 0);
        let new = Arc::default();
        self.catalogs.insert(place, Arc::downgrade(&new));
        new
    }
}

impl Databases {
    pub fn of(&self, route: &Route, database: &str) -> Arc<DatabaseState> {
        let key = (route.id(), database.to_owned());
        let mut state = self.state.lock();
        if let Some(found) = state.databases.get(&key).and_then(Weak::upgrade) {
            return found;
        }
        if state.databases.len() >= limits::POOLS_MAX {
            state.databases.retain(|_, state| state.strong_count() > 0);
        }
        let catalog = state.catalog(route.server.upstream.hosts.to_string(), route.database(database));
        let new = Arc::new(DatabaseState::new(catalog));
        if state.is_paused(database) {
            new.pause();
        }
        state.databases.insert(key, Arc::downgrade(&new));
        new
    }

    /// Pauses or resumes a database, or all.
    pub fn set_paused(&self, database: Option<&str>, paused: bool) {
        let mut state = self.state.lock();
        match database {
            None => {
                state.all_paused = paused;
                state.paused.clear();
                state.resumed.clear();
            }
            Some(name) => {
                state.paused.remove(name);
                state.resumed.remove(name);
                if paused {
                    state.paused.insert(name.to_owned());
                } else if state.all_paused {
                    state.resumed.insert(name.to_owned());
                }
            }
        }
        for one in state.matching(database) {
            if paused { one.pause() } else { one.resume() }
        }
    }

    /// Whether an operator has paused this database by its name.
    pub fn is_paused(&self, database: &str) -> bool {
        self.state.lock().paused.contains(database)
    }

    /// Number of connections in use, of a database or of all.
    pub fn users(&self, database: Option<&str>) -> usize {
        self.state.lock().matching(database).map(|state| state.users()).sum()
    }
}
