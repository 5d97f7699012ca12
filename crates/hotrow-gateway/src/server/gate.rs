//! Whether the connections to a database may be used: PAUSE shuts its gate, RESUME opens it. Counts who has passed, so
//! that PAUSE knows when the last one is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::Notify;

/// The gate of one database.
#[derive(Debug, Default)]
pub struct Gate {
    shut: AtomicBool,
    opened: Notify,
    inside: AtomicUsize,
    /// Counts how often connections were asked to be made anew.
    generation: AtomicU64,
    /// Counts what may have changed the catalogue.
    catalogue: AtomicU64,
}

/// Somebody who has passed, until this is dropped.
#[derive(Debug)]
pub struct Passed {
    gate: Arc<Gate>,
    generation: u64,
}

impl Gate {
    /// Whether nobody may pass.
    pub fn is_shut(&self) -> bool {
        self.shut.load(SeqCst)
    }

    /// From now on nobody passes.
    pub fn shut(&self) {
        self.shut.store(true, SeqCst);
    }

    /// Whoever waits passes.
    pub fn open(&self) {
        self.shut.store(false, SeqCst);
        self.opened.notify_waiters();
    }

    /// How many have passed and are not back.
    pub fn inside(&self) -> usize {
        self.inside.load(SeqCst)
    }

    /// Connections that were made before are not used again.
    pub fn renew(&self) {
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
    pub async fn pass(self: &Arc<Self>, patience: Duration) -> Option<Passed> {
        match self.try_pass() {
            None => tokio::time::timeout(patience, self.wait()).await.ok(),
            passed => passed,
        }
    }

    async fn wait(self: &Arc<Self>) -> Passed {
        loop {
            let opened = self.opened.notified(); // from here on, so that no opening is missed
            if let Some(passed) = self.try_pass() {
                return passed;
            }
            opened.await;
        }
    }

    /// Passes if it is open. Counted first and looked after, so that whoever shuts the gate sees everyone who got through.
    pub fn try_pass(self: &Arc<Self>) -> Option<Passed> {
        self.inside.fetch_add(1, SeqCst);
        let passed = Passed { gate: self.clone(), generation: self.generation.load(SeqCst) };
        if self.is_shut() { None } else { Some(passed) }
    }
}

impl Passed {
    /// When it passed: a connection that is older than this is not to be used.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a connection that was made then may be kept for others.
    pub fn may_keep(&self, made: u64) -> bool {
        !self.gate.is_shut() && self.gate.generation.load(SeqCst) == made
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        self.gate.inside.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_comes_to_a_shut_gate_waits_and_is_not_forgotten() {
        let gate = Arc::new(Gate::default());
        let passed = gate.pass(Duration::ZERO).await.unwrap();
        gate.shut();
        assert_eq!(gate.inside(), 1);
        drop(passed);
        assert_eq!(gate.inside(), 0);
        assert!(gate.pass(Duration::from_millis(1)).await.is_none());
        let waits = tokio::spawn({
            let gate = gate.clone();
            async move { gate.pass(Duration::from_secs(60)).await.is_some() }
        });
        tokio::task::yield_now().await;
        assert_eq!(gate.inside(), 0, "who waits is not inside");
        gate.open();
        assert!(waits.await.unwrap());
    }

    #[tokio::test]
    async fn what_was_made_before_is_not_kept() {
        let gate = Arc::new(Gate::default());
        let old = gate.pass(Duration::ZERO).await.unwrap();
        assert!(old.may_keep(old.generation()));
        gate.renew();
        assert!(!old.may_keep(old.generation()));
        let new = gate.pass(Duration::ZERO).await.unwrap();
        assert!(new.may_keep(new.generation()));
        gate.shut();
        assert!(!new.may_keep(new.generation()));
    }
}
