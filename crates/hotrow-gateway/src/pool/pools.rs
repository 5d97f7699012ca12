//! The open pools, found by identity and limited for each server and each role there. An unused pool is closed for a new one, or
//! after a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_core::limits;
use tokio::sync::OnceCell;

use crate::config::routes::Routes;
use crate::lock::Lock;
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

/// Number of users of a pool, and since when it has had none.
#[derive(Debug)]
pub struct UseCount(Lock<(usize, Instant)>);

/// A use of a pool, which is not closed before this is dropped.
#[derive(Debug)]
pub struct PoolUse(Arc<Pool>);

impl Default for UseCount {
    fn default() -> Self {
        UseCount(Lock::new((0, Instant::now())))
    }
}

impl PoolUse {
    /// Adds a use of this pool.
    pub fn of(pool: &Arc<Pool>) -> Self {
        pool.uses.0.lock().0 += 1;
        PoolUse(pool.clone())
    }

    /// The pool.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.0
    }
}

impl Drop for PoolUse {
    fn drop(&mut self) {
        let mut uses = self.0.uses.0.lock();
        *uses = (uses.0 - 1, Instant::now());
    }
}

impl Pools {
    /// The open pools.
    pub fn open(&self) -> Vec<Arc<Pool>> {
        self.cells.lock().values().filter_map(|cell| cell.get().cloned()).collect()
    }

    /// The pool of these clients, if it is open.
    pub fn find(&self, identity: &Identity) -> Option<PoolUse> {
        let cells = self.cells.lock();
        cells.get(identity)?.get().map(PoolUse::of) // it is not closed meanwhile
    }

    /// The pool of these clients. The caller opens it if it is not open.
    pub fn get(&self, identity: &Identity) -> Result<Cell, Full> {
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
                evict(&mut cells, is_one).then_some(()).ok_or(Full::Role)?;
            }
        }
        if cells.keys().filter(|other| is_of_role(other)).count() >= limits::POOLS_PER_ROLE_MAX {
            evict(&mut cells, is_of_role).then_some(()).ok_or(Full::Role)?;
        } else if cells.keys().filter(|other| is_there(other)).count() >= limits::POOLS_MAX {
            evict(&mut cells, is_there).then_some(()).ok_or(Full::All)?;
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
        let closes =
            |(identity, cell): &(&Identity, &Cell)| unused(cell).is_some_and(|since| wanted(identity, since));
        let closing: Vec<_> = cells.iter().filter(closes).map(|(identity, _)| identity.clone()).collect();
        closing.iter().for_each(|identity| close(&mut cells, identity));
    }
}

/// Since when an open pool has been unused. None if it is in use or about to be used.
fn unused(cell: &Cell) -> Option<Instant> {
    let (count, since) = *cell.get()?.uses.0.lock();
    (count == 0 && Arc::strong_count(cell) == 1).then_some(since)
}

/// Closes the pool that has been unused for longest among those that match. False if there is none.
#[expect(clippy::mutable_key_type, reason = "a route is compared by its number, which never changes")]
fn evict(cells: &mut HashMap<Identity, Cell>, wanted: impl Fn(&Identity) -> bool) -> bool {
    let candidates = cells.iter().filter(|(identity, _)| wanted(identity));
    let unused = candidates.filter_map(|(identity, cell)| Some((unused(cell)?, identity)));
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
