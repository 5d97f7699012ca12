//! The states of all databases, and which of them an operator has paused.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use hotrow_core::limits;

use crate::lock::Lock;
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
    databases: HashMap<String, Weak<DatabaseState>>,
}

impl State {
    fn matching(&self, database: Option<&str>) -> impl Iterator<Item = Arc<DatabaseState>> {
        let wanted = move |name: &str| database.is_none_or(|database| database == name);
        self.databases.iter().filter(move |(name, _)| wanted(name)).filter_map(|(_, state)| state.upgrade())
    }
}

impl Databases {
    /// The state of a database.
    pub fn of(&self, database: &str) -> Arc<DatabaseState> {
        let mut state = self.state.lock();
        if let Some(found) = state.databases.get(database).and_then(Weak::upgrade) {
            return found;
        }
        if state.databases.len() >= limits::POOLS_MAX {
            state.databases.retain(|_, state| state.strong_count() > 0);
        }
        let new = Arc::new(DatabaseState::default());
        if state.all_paused {
            new.pause();
        }
        state.databases.insert(database.to_owned(), Arc::downgrade(&new));
        new
    }

    /// Pauses or resumes a database, or all.
    pub fn set_paused(&self, database: Option<&str>, paused: bool) {
        let mut state = self.state.lock();
        if database.is_none() {
            state.all_paused = paused;
        }
        for one in state.matching(database) {
            if paused { one.pause() } else { one.resume() }
        }
    }

    /// Number of connections in use, of a database or of all.
    pub fn users(&self, database: Option<&str>) -> usize {
        self.state.lock().matching(database).map(|state| state.users()).sum()
    }
}
