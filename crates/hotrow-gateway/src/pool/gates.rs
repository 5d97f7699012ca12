//! The gates of all databases, and which of them an operator has shut.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use hotrow_core::limits;

use crate::lock::Lock;
use crate::server::gate::Gate;

/// All gates.
#[derive(Debug, Default)]
pub struct Gates {
    state: Lock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Those of databases that nobody uses yet are shut too.
    all_shut: bool,
    databases: HashMap<String, Weak<Gate>>,
}

impl State {
    fn gates(&self, database: Option<&str>) -> impl Iterator<Item = Arc<Gate>> {
        let wanted = move |name: &str| database.is_none_or(|database| database == name);
        self.databases.iter().filter(move |(name, _)| wanted(name)).filter_map(|(_, gate)| gate.upgrade())
    }
}

impl Gates {
    /// The gate of a database.
    pub fn of(&self, database: &str) -> Arc<Gate> {
        let mut state = self.state.lock();
        if let Some(gate) = state.databases.get(database).and_then(Weak::upgrade) {
            return gate;
        }
        if state.databases.len() >= limits::POOLS_MAX {
            state.databases.retain(|_, gate| gate.strong_count() > 0);
        }
        let gate = Arc::new(Gate::default());
        if state.all_shut {
            gate.shut();
        }
        state.databases.insert(database.to_owned(), Arc::downgrade(&gate));
        gate
    }

    /// Shuts or opens the gate of a database, or all.
    pub fn set(&self, database: Option<&str>, shut: bool) {
        let mut state = self.state.lock();
        if database.is_none() {
            state.all_shut = shut;
        }
        for gate in state.gates(database) {
            if shut { gate.shut() } else { gate.open() }
        }
    }

    /// How many have passed those of a database, or all, and are not back.
    pub fn inside(&self, database: Option<&str>) -> usize {
        self.state.lock().gates(database).map(|gate| gate.inside()).sum()
    }
}
