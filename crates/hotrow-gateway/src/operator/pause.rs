//! Operators' commands for the connections of one database or of all: PAUSE, RESUME, RECONNECT.

use std::sync::Arc;
use std::time::Duration;

use crate::pool::Pool;
use crate::shared::Shared;

/// No pool of this database is open.
#[derive(Debug, PartialEq, Eq)]
pub struct NotInUse;

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

    /// Pauses a database, or all. Returns when the work under way is finished and all connections are closed. If the
    /// future is dropped before that, the pause is undone.
    pub async fn pause(&self, database: Option<&str>) -> Result<(), NotInUse> {
        let pools = self.pools_of(database)?;
        tracing::info!(database = database.unwrap_or("(all)"), "pausing: waiting for work under way");
        self.directory.databases.set_paused(database, true);
        self.directory.listeners.paused(database);
        let undo = Undo { shared: self, database, wanted: true };
        let lanes: Vec<_> = pools.iter().flat_map(|pool| pool.pause()).collect();
        for lane in lanes {
            let _ = lane.await; // a lane that has ended has no connection
        }
        // Sessions release their connections in their own time. A delay of 10 ms does not matter to an operator.
        while self.directory.databases.users(database) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.pools_of(database)?.iter().for_each(|pool| pool.close_idle());
        self.authentication.close_unused(Duration::ZERO);
        undo.keep();
        tracing::info!(database = database.unwrap_or("(all)"), "paused: no connection to the server is open");
        Ok(())
    }

    /// Disconnects all clients of a database, or of all, and pauses it: new clients wait until it is resumed. Statements
    /// under way are cancelled.
    pub async fn kill(&self, database: Option<&str>) -> Result<(), NotInUse> {
        self.pools_of(database)?;
        self.directory.databases.set_paused(database, true);
        for control in self.controls.all() {
            if database.is_none_or(|database| control.pool().identity.database() == database) {
                control.kill();
            }
        }
        self.pause(database).await
    }

    /// Resumes a database, or all.
    pub fn resume(&self, database: Option<&str>) -> Result<(), NotInUse> {
        let pools = match self.pools_of(database) {
            // All clients have left during the pause.
            Err(NotInUse) if database.is_some_and(|name| self.directory.databases.is_paused(name)) => {
                Vec::new()
            }
            pools => pools?,
        };
        self.directory.databases.set_paused(database, false);
        pools.iter().filter(|pool| !pool.database_state().is_paused()).for_each(|pool| pool.resume());
        tracing::info!(database = database.unwrap_or("(all)"), "resumed");
        Ok(())
    }

    /// Replaces the connections of a database, or of all: lanes after their work under way, sessions when they release
    /// their connections. Returns when the old connections of lanes and listeners are closed.
    pub async fn reconnect(&self, database: Option<&str>) -> Result<(), NotInUse> {
        let pools = self.pools_of(database)?;
        for pool in &pools {
            pool.database_state().retire_connections();
            pool.close_idle();
        }
        let listeners = self.directory.listeners.renew(database);
        // Each pool for itself, because its server may be unreachable.
        let renewing: Vec<_> = pools.into_iter().map(|pool| tokio::spawn(renew(pool))).collect();
        for renewed in renewing {
            let _ = renewed.await; // it fails only when the process ends
        }
        for closed in listeners {
            let _ = closed.await; // a listener that has ended has no connection
        }
        Ok(())
    }
}

/// Asks the server again for the settings of a pool, and makes its lanes log in again.
async fn renew(pool: Arc<Pool>) {
    if !pool.database_state().is_paused()
        && let Err(error) = pool.ask_again().await
    {
        tracing::warn!(%error, clients = pool.identity.describe(), "the server could not be asked again");
    }
    for closed in pool.renew() {
        let _ = closed.await; // a lane that has ended has no connection
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
