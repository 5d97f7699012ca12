//! Whether the connections to a database may be used: PAUSE shuts its gate, RESUME opens it. Counts who has passed, so
//! that PAUSE knows when the last one is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::Notify;

/// The gate of one database.
#[derive(Debug, Default)]
pub struct DatabaseState {
    paused: AtomicBool,
    resumed: Notify,
    users: AtomicUsize,
    /// Counts how often connections were asked to be made anew.
    generation: AtomicU64,
    /// Counts what may have changed the catalogue.
    catalogue: AtomicU64,
}

/// Somebody who has passed, until this is dropped.
#[derive(Debug)]
pub struct DatabaseUse {
    database: Arc<DatabaseState>,
    generation: u64,
}

impl DatabaseState {
    /// Whether nobody may pass.
    pub fn is_paused(&self) -> bool {
        self.paused.load(SeqCst)
    }

    /// From now on nobody passes.
    pub fn pause(&self) {
        self.paused.store(true, SeqCst);
    }

    /// Whoever waits passes.
    pub fn resume(&self) {
        self.paused.store(false, SeqCst);
        self.resumed.notify_waiters();
    }

    /// How many have passed and are not back.
    pub fn users(&self) -> usize {
        self.users.load(SeqCst)
    }

    /// Connections that were made before are not used again.
    pub fn retire_connections(&self) {
        self.generation.fetch_add(1, SeqCst);
    }

    /// Something may have changed the catalogue.
    pub fn catalogue_changed(&self) {
        self.catalogue.fetch_add(1, SeqCst);
    }

    /// How often that has happened.
    pub fn catalogue_epoch(&self) -> u64 {
        self.catalogue.load(SeqCst)
    }

    /// Passes as soon as it is open; none if that takes too long.
    pub async fn enter(self: &Arc<Self>, patience: Duration) -> Option<DatabaseUse> {
        match self.try_enter() {
            None => tokio::time::timeout(patience, self.wait_until_resumed()).await.ok(),
            used => used,
        }
    }

    async fn wait_until_resumed(self: &Arc<Self>) -> DatabaseUse {
        loop {
            let resumed = self.resumed.notified(); // from here on, so that no opening is missed
            if let Some(used) = self.try_enter() {
                return used;
            }
            resumed.await;
        }
    }

    /// Passes if it is open. Counted first and looked after, so that whoever shuts the gate sees everyone who got through.
    pub fn try_enter(self: &Arc<Self>) -> Option<DatabaseUse> {
        self.users.fetch_add(1, SeqCst);
        let used = DatabaseUse { database: self.clone(), generation: self.generation.load(SeqCst) };
        if self.is_paused() { None } else { Some(used) }
    }
}

impl DatabaseUse {
    /// When it passed: a connection that is older than this is not to be used.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a connection that was made then may be kept for others.
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
    async fn who_comes_to_a_shut_gate_waits_and_is_not_forgotten() {
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
        assert_eq!(database.users(), 0, "who waits is not inside");
        database.resume();
        assert!(waits.await.unwrap());
    }

    #[tokio::test]
    async fn what_was_made_before_is_not_kept() {
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
