//! Whether a database is paused, and how many connections to it are in use: PAUSE waits until the number is 0.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use hotrow_core::classify::Alters;
use tokio::sync::Notify;

use crate::server::rows::Rows;

#[derive(Debug, Default)]
pub struct DatabaseState {
    paused: AtomicBool,
    resumed: Notify,
    users: AtomicUsize,
    /// Counts requests to replace connections.
    generation: AtomicU64,
    /// Counts possible changes of the catalog. Shared by all names of the database.
    catalog: Arc<AtomicU64>,
    /// The rows on which transactions of clients work.
    pub rows: Arc<Rows>,
}

/// A use of a connection to the database until it is dropped.
#[derive(Debug)]
pub struct DatabaseUse {
    database: Arc<DatabaseState>,
    generation: u64,
}

impl DatabaseState {
    pub fn new(catalog: Arc<AtomicU64>) -> Self {
        DatabaseState { catalog, ..DatabaseState::default() }
    }

    /// Whether an operator has paused it.
    pub fn is_paused(&self) -> bool {
        self.paused.load(SeqCst)
    }

    /// Pauses it: no new use begins.
    pub fn pause(&self) {
        self.paused.store(true, SeqCst);
    }

    /// Resumes it: waiting uses begin.
    pub fn resume(&self) {
        self.paused.store(false, SeqCst);
        self.resumed.notify_waiters();
    }

    /// Number of uses.
    pub fn users(&self) -> usize {
        self.users.load(SeqCst)
    }

    /// Retires the connections that exist now: they are not used again.
    pub fn retire_connections(&self) {
        self.generation.fetch_add(1, SeqCst);
    }

    /// Notes that the catalog may have changed in this way.
    pub fn catalog_changed(&self, alters: Alters) {
        self.catalog.fetch_add(alters.step(), SeqCst);
    }

    /// The epoch of the catalog: how often it may have changed.
    pub fn catalog_epoch(&self) -> u64 {
        self.catalog.load(SeqCst)
    }

    /// Begins a use as soon as the database is not paused. None if that takes too long.
    pub async fn enter(self: &Arc<Self>, patience: Duration) -> Option<DatabaseUse> {
        match self.try_enter() {
            None => tokio::time::timeout(patience, self.wait_until_resumed()).await.ok(),
            used => used,
        }
    }

    async fn wait_until_resumed(self: &Arc<Self>) -> DatabaseUse {
        loop {
            let resumed = self.resumed.notified(); // registered before the check, so no resume is missed
            if let Some(used) = self.try_enter() {
                return used;
            }
            resumed.await;
        }
    }

    /// Begins a use if the database is not paused. The use is counted before the check, so a task that pauses the
    /// database sees every use that got through.
    pub fn try_enter(self: &Arc<Self>) -> Option<DatabaseUse> {
        self.users.fetch_add(1, SeqCst);
        let used = DatabaseUse { database: self.clone(), generation: self.generation.load(SeqCst) };
        if self.is_paused() { None } else { Some(used) }
    }
}

impl DatabaseUse {
    /// The generation of the use. Connections of earlier generations must not be used.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a connection of this generation can be kept for other sessions.
    pub fn may_reuse(&self, made: u64) -> bool {
        !self.database.is_paused() && self.database.generation.load(SeqCst) == made
    }
}

impl Drop for DatabaseUse {
    fn drop(&mut self) {
        self.database.users.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_use_of_a_paused_database_waits_until_it_is_resumed() {
        let database = Arc::new(DatabaseState::default());
        let used = database.enter(Duration::ZERO).await.unwrap();
        database.pause();
        assert_eq!(database.users(), 1);
        drop(used);
        assert_eq!(database.users(), 0);
        assert!(database.enter(Duration::from_millis(1)).await.is_none());
        let waits = tokio::spawn({
            let database = database.clone();
            async move { database.enter(Duration::from_secs(60)).await.is_some() }
        });
        tokio::task::yield_now().await;
        assert_eq!(database.users(), 0, "a waiting use is not counted");
        database.resume();
        assert!(waits.await.unwrap());
    }

    #[tokio::test]
    async fn connections_of_an_earlier_generation_are_not_reused() {
        let database = Arc::new(DatabaseState::default());
        let old = database.enter(Duration::ZERO).await.unwrap();
        assert!(old.may_reuse(old.generation()));
        database.retire_connections();
        assert!(!old.may_reuse(old.generation()));
        let new = database.enter(Duration::ZERO).await.unwrap();
        assert!(new.may_reuse(new.generation()));
        database.pause();
        assert!(!new.may_reuse(new.generation()));
    }
}
