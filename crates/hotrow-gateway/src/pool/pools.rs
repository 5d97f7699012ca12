//! Which pools are open: found by what makes clients the same, bounded in all and for each role. A pool that nobody uses
//! gives way to a new one, and is closed after a while in any case.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_core::limits;
use tokio::sync::OnceCell;

use crate::lock::Lock;
use crate::pool::Pool;
use crate::pool::identity::Identity;

/// A pool that is open or being opened. Whoever opens it, or is about to use it, has a clone.
pub type Cell = Arc<OnceCell<Arc<Pool>>>;

/// All pools.
#[derive(Default)]
pub struct Pools {
    cells: Lock<HashMap<Identity, Cell>>,
}

/// Why no pool can be opened: all of them are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// All.
    All,
    /// All that the role may have.
    Role,
}

/// How many use a pool, and since when nobody does.
#[derive(Debug)]
pub struct UseCount(Lock<(usize, Instant)>);

/// A pool that is not closed before this is dropped.
#[derive(Debug)]
pub struct PoolUse(Arc<Pool>);

impl Default for UseCount {
    fn default() -> Self {
        UseCount(Lock::new((0, Instant::now())))
    }
}

impl PoolUse {
    /// One more use of this pool.
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
    /// Those that are open.
    pub fn open(&self) -> Vec<Arc<Pool>> {
        self.cells.lock().values().filter_map(|cell| cell.get().cloned()).collect()
    }

    /// The pool of these clients, to be opened if it isn't yet.
    pub fn get(&self, identity: &Identity) -> Result<Cell, Full> {
        let mut cells = self.cells.lock();
        if let Some(cell) = cells.get(identity) {
            return Ok(cell.clone());
        }
        let of_role = cells.keys().filter(|other| other.user() == identity.user()).count();
        if of_role >= limits::POOLS_PER_ROLE_MAX {
            let closes = evict(&mut cells, |other| other.user() == identity.user());
            closes.then_some(()).ok_or(Full::Role)?;
        } else if cells.len() >= limits::POOLS_MAX {
            evict(&mut cells, |_| true).then_some(()).ok_or(Full::All)?;
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

    /// Closes those that nobody has used for so long.
    pub fn close_unused(&self, age: Duration) {
        let mut cells = self.cells.lock();
        let is_old = |cell: &Cell| unused(cell).is_some_and(|since| since.elapsed() >= age);
        let old: Vec<_> =
            cells.iter().filter(|(_, cell)| is_old(cell)).map(|(identity, _)| identity.clone()).collect();
        old.iter().for_each(|identity| close(&mut cells, identity));
    }
}

/// Since when nobody has used a pool that is open; none where somebody does or is about to.
fn unused(cell: &Cell) -> Option<Instant> {
    let (count, since) = *cell.get()?.uses.0.lock();
    (count == 0 && Arc::strong_count(cell) == 1).then_some(since)
}

/// Closes the pool that has been unused for longest, of those whose clients are wanted; false if there is none.
fn evict(cells: &mut HashMap<Identity, Cell>, wanted: impl Fn(&Identity) -> bool) -> bool {
    let candidates = cells.iter().filter(|(identity, _)| wanted(identity));
    let unused = candidates.filter_map(|(identity, cell)| Some((unused(cell)?, identity)));
    let Some(identity) = unused.min_by_key(|(since, _)| *since).map(|(_, identity)| identity.clone()) else {
        return false;
    };
    close(cells, &identity);
    true
}

fn close(cells: &mut HashMap<Identity, Cell>, identity: &Identity) {
    if let Some(pool) = cells.remove(identity).and_then(|cell| cell.get().cloned()) {
        tracing::info!(pool = pool.id, clients = pool.identity.describe(), "pool closed: nobody uses it");
        tokio::spawn(end(pool));
    }
}

/// Ends a pool that nobody can find any more, when what its clients have left under way is done.
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
