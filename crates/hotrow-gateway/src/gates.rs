//! The gates of all databases, and which of them an operator has shut: PAUSE, RESUME, RECONNECT.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use hotrow_core::limits;

use crate::gate::Gate;
use crate::gateway::Shared;
use crate::pool::Pool;

/// All gates.
#[derive(Debug, Default)]
pub struct Gates {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Those of databases that nobody uses yet are shut too.
    all_shut: bool,
    databases: HashMap<String, Weak<Gate>>,
}

/// Nobody uses this database.
#[derive(Debug, PartialEq, Eq)]
pub struct NotInUse;

impl State {
    fn gates(&self, database: Option<&str>) -> impl Iterator<Item = Arc<Gate>> {
        let wanted = move |name: &str| database.is_none_or(|database| database == name);
        self.databases.iter().filter(move |(name, _)| wanted(name)).filter_map(|(_, gate)| gate.upgrade())
    }
}

impl Gates {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the gates")
    }

    /// The gate of a database.
    pub fn of(&self, database: &str) -> Arc<Gate> {
        let mut state = self.lock();
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

    fn set(&self, database: Option<&str>, shut: bool) {
        let mut state = self.lock();
        if database.is_none() {
            state.all_shut = shut;
        }
        for gate in state.gates(database) {
            if shut { gate.shut() } else { gate.open() }
        }
    }

    /// How many have passed those of a database, or all, and are not back.
    fn inside(&self, database: Option<&str>) -> usize {
        self.lock().gates(database).map(|gate| gate.inside()).sum()
    }
}

impl Shared {
    fn pools_of(&self, database: Option<&str>) -> Result<Vec<Arc<Pool>>, NotInUse> {
        let mut pools = self.pools();
        if let Some(database) = database {
            pools.retain(|pool| pool.identity.database() == database);
            if pools.is_empty() {
                return Err(NotInUse);
            }
        }
        Ok(pools)
    }

    /// Lets nothing new through to a database, or to all; done when what is under way is finished and all connections
    /// are closed. Dropped before, it is undone.
    pub async fn pause(&self, database: Option<&str>) -> Result<(), NotInUse> {
        let pools = self.pools_of(database)?;
        tracing::info!(database = database.unwrap_or("(all)"), "pausing: waiting for what is under way");
        self.gates.set(database, true);
        let undo = Undo { shared: self, database, wanted: true };
        let lanes: Vec<_> = pools.iter().flat_map(|pool| pool.pause()).collect();
        for lane in lanes {
            let _ = lane.await; // a lane that is gone has no connection
        }
        // Sessions give back what they hold in their own time; an operator can wait a hundredth of a second longer.
        while self.gates.inside(database) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.pools_of(database)?.iter().for_each(|pool| pool.close_idle());
        self.authentication.close_unused(Duration::ZERO);
        undo.keep();
        tracing::info!(database = database.unwrap_or("(all)"), "paused: no connection to the server is open");
        Ok(())
    }

    /// Goes on.
    pub fn resume(&self, database: Option<&str>) -> Result<(), NotInUse> {
        let pools = self.pools_of(database)?;
        self.gates.set(database, false);
        pools.iter().filter(|pool| !pool.gate().is_shut()).for_each(|pool| pool.resume());
        tracing::info!(database = database.unwrap_or("(all)"), "resumed");
        Ok(())
    }

    /// Makes new connections instead of those that there are: lanes when what they have under way is finished, sessions
    /// when they give theirs back. Done when the lanes' old ones are closed.
    pub async fn reconnect(&self, database: Option<&str>) -> Result<(), NotInUse> {
        let pools = self.pools_of(database)?;
        for pool in &pools {
            pool.gate().renew();
            pool.close_idle();
        }
        for pool in &pools {
            if !pool.gate().is_shut()
                && let Err(error) = pool.ask_again().await
            {
                tracing::warn!(%error, clients = pool.identity.describe(), "the server could not be asked again");
            }
        }
        let lanes: Vec<_> = pools.iter().flat_map(|pool| pool.renew()).collect();
        for lane in lanes {
            let _ = lane.await; // a lane that is gone has no connection
        }
        Ok(())
    }
}

struct Undo<'a> {
    shared: &'a Shared,
    database: Option<&'a str>,
    wanted: bool,
}

impl Undo<'_> {
    fn keep(mut self) {
        self.wanted = false;
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.wanted {
            let _ = self.shared.resume(self.database); // the database was in use a moment ago
        }
    }
}
