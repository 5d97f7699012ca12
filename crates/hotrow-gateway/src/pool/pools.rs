//! The open pools, found by identity and limited for each server and each role there. An unused pool is closed for a new one, or
//! after a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_connect::lock::Lock;
use hotrow_core::limits;
use tokio::sync::OnceCell;

use crate::config::routes::Routes;
use crate::pool::Pool;
use crate::pool::identity::Identity;

/// A pool that is open or being opened. A task that opens it or is about to use it has a clone.
pub type Cell = Arc<OnceCell<Arc<Pool>>>;

/// All pools.
#[derive(Default)]
pub struct Pools {
    cells: Lock<HashMap<Identity, Cell>>,
}

/// Why no pool can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// All pools of the server are in use.
    All,
    /// All pools that the role may have at the server are in use.
    Role,
}

/// How a pool is used.
#[derive(Debug)]
pub struct Usage(Lock<Used>);

#[derive(Debug)]
struct Used {
    /// Number of users.
    count: usize,
    /// Since when it has had none.
    unused_since: Instant,
    /// A session has run a statement in it before it left for other settings. Drivers set several settings one by one, and come
    /// through a pool for each combination on their way.
    has_served: bool,
}

/// A use of a pool, which is not closed before this is dropped.
#[derive(Debug)]
pub struct PoolUse(Arc<Pool>);

impl Default for Usage {
    fn default() -> Self {
        Usage(Lock::new(Used { count: 0, unused_since: Instant::now(), has_served: false }))
    }
}

impl Usage {
    /// A session has run a statement in the pool.
    pub fn has_served(&self) {
        self.0.lock().has_served = true;
    }
}

impl PoolUse {
    /// Adds a use of this pool.
    pub fn of(pool: &Arc<Pool>) -> Self {
        pool.usage.0.lock().count += 1;
        PoolUse(pool.clone())
    }

    pub fn pool(&self) -> &Arc<Pool> {
        &self.0
    }
}

impl Drop for PoolUse {
    fn drop(&mut self) {
        let mut used = self.0.usage.0.lock();
        used.count -= 1;
        used.unused_since = Instant::now();
    }
}

impl Pools {
    pub fn open(&self) -> Vec<Arc<Pool>> {
        self.cells.lock().values().filter_map(|cell| cell.get().cloned()).collect()
    }

    /// The pool of these clients, if it is open.
    pub fn find(&self, identity: &Identity) -> Option<PoolUse> {
        let cells = self.cells.lock();
        cells.get(identity)?.get().map(PoolUse::of) // it is not closed meanwhile
    }

    /// The pool of these clients. The caller opens it if it is not open. `moves` is how often the session has changed its pool.
    pub fn get(&self, identity: &Identity, moves: usize) -> Result<Cell, Full> {
        let mut cells = self.cells.lock();
        if let Some(cell) = cells.get(identity) {
            return Ok(cell.clone());
        }
        // Clients of a server that does not answer must not take the room of those of another.
        let is_there = |other: &Identity| other.route().server.id == identity.route().server.id;
        let is_of_role = |other: &Identity| other.user() == identity.user() && is_there(other);
        // Clients that change settings leave room for those that log in.
        if !identity.settings().is_empty() {
            let is_one = |other: &Identity| is_of_role(other) && !other.settings().is_empty();
            if cells.keys().filter(|other| is_one(other)).count() >= limits::POOLS_WITH_SETTINGS_PER_ROLE_MAX
            {
                // A session that has just logged in is likely to stay with its settings.
                let is_free = |used: &Used| moves <= limits::MOVES_AT_LOGIN_MAX || used.is_done_with();
                evict(&mut cells, is_one, is_free).then_some(()).ok_or(Full::Role)?;
            }
        }
        if cells.keys().filter(|other| is_of_role(other)).count() >= limits::POOLS_PER_ROLE_MAX {
            evict(&mut cells, is_of_role, |_| true).then_some(()).ok_or(Full::Role)?;
        } else if cells.keys().filter(|other| is_there(other)).count() >= limits::POOLS_MAX {
            evict(&mut cells, is_there, |_| true).then_some(()).ok_or(Full::All)?;
        }
        Ok(cells.entry(identity.clone()).or_default().clone())
    }

    /// Forgets a pool that could not be opened.
    pub fn forget_unopened(&self, identity: &Identity) {
        let mut cells = self.cells.lock();
        if cells.get(identity).is_some_and(|cell| !cell.initialized()) {
            cells.remove(identity);
        }
    }

    /// Closes pools that have been unused for this long.
    pub fn close_unused(&self, age: Duration) {
        self.close_where(|_, since| since.elapsed() >= age);
    }

    /// Closes unused pools of routes that a reload has removed or changed.
    pub fn close_removed(&self, routes: &Routes) {
        self.close_where(|identity, _| !routes.has(identity.route()));
    }

    fn close_where(&self, wanted: impl Fn(&Identity, Instant) -> bool) {
        let mut cells = self.cells.lock();
        let closes = |(identity, cell): &(&Identity, &Cell)| {
            unused(cell, |_| true).is_some_and(|since| wanted(identity, since))
        };
        let closing: Vec<_> = cells.iter().filter(closes).map(|(identity, _)| identity.clone()).collect();
        closing.iter().for_each(|identity| close(&mut cells, identity));
    }
}

/// Since when an open pool has been unused. None if it is in use or about to be used, or does not match.
fn unused(cell: &Cell, wanted: impl Fn(&Used) -> bool) -> Option<Instant> {
    let used = cell.get()?.usage.0.lock();
    (used.count == 0 && wanted(&used) && Arc::strong_count(cell) == 1).then_some(used.unused_since)
}

impl Used {
    /// Whether no session is likely to come back to the unused pool soon. Sessions that set their settings for each request use
    /// the same pools in turns.
    fn is_done_with(&self) -> bool {
        !self.has_served || self.unused_since.elapsed() >= Duration::from_millis(limits::POOL_TURN_MS)
    }
}

/// Closes the pool that has been unused for longest among those that match. False if there is none.
#[expect(clippy::mutable_key_type, reason = "a route is compared by its number, which never changes")]
fn evict(
    cells: &mut HashMap<Identity, Cell>,
    wanted: impl Fn(&Identity) -> bool,
    is_free: impl Fn(&Used) -> bool,
) -> bool {
    let candidates = cells.iter().filter(|(identity, _)| wanted(identity));
    let unused = candidates.filter_map(|(identity, cell)| Some((unused(cell, &is_free)?, identity)));
    let Some(identity) = unused.min_by_key(|(since, _)| *since).map(|(_, identity)| identity.clone()) else {
        return false;
    };
    close(cells, &identity);
    true
}

#[expect(clippy::mutable_key_type, reason = "a route is compared by its number, which never changes")]
fn close(cells: &mut HashMap<Identity, Cell>, identity: &Identity) {
    if let Some(pool) = cells.remove(identity).and_then(|cell| cell.get().cloned()) {
        tracing::info!(pool = pool.id, clients = pool.identity.describe(), "pool closed: it is unused");
        tokio::spawn(end(pool));
    }
}

/// Ends a removed pool after its units under way are done.
async fn end(pool: Arc<Pool>) {
    let at_rest = async {
        for lane in pool.pause() {
            let _ = lane.await;
        }
    };
    let patience = pool.config().drain_timeout;
    let _ = tokio::time::timeout(patience, at_rest).await;
    pool.end();
}
