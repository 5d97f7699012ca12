//! Semaphores whose limit can change while permits are in use: for clients and for held connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A semaphore with a limit that can change.
#[derive(Debug)]
pub struct Permits {
    free: Arc<Semaphore>,
    limit: AtomicUsize,
}

/// A permit until it is dropped.
pub type Permit = OwnedSemaphorePermit;

impl Permits {
    /// With this limit, and no permit in use.
    pub fn new(limit: usize) -> Self {
        Permits { free: Arc::new(Semaphore::new(limit)), limit: AtomicUsize::new(limit) }
    }

    pub fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// Number of permits in use.
    pub fn in_use(&self) -> usize {
        self.limit().saturating_sub(self.free.available_permits())
    }

    /// Changes the limit. Permits in use stay valid. If there are too many, no new one is given before enough of them
    /// are dropped.
    pub fn resize(&self, limit: usize) {
        let before = self.limit.swap(limit, Relaxed);
        if limit >= before {
            self.free.add_permits(limit - before);
            return;
        }
        let (free, surplus) = (self.free.clone(), u32::try_from(before - limit).unwrap_or(u32::MAX));
        tokio::spawn(async move {
            if let Ok(permits) = free.acquire_many_owned(surplus).await {
                permits.forget();
            }
        });
    }

    /// A permit, if one is free.
    pub fn try_acquire(&self) -> Option<Permit> {
        self.free.clone().try_acquire_owned().ok()
    }

    /// A permit, as soon as it is this caller's turn.
    pub async fn acquire(&self) -> Permit {
        self.free.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Waits until no permit is in use.
    pub async fn all_released(&self) {
        let all = u32::try_from(self.limit()).unwrap_or(u32::MAX);
        let everyone = self.free.acquire_many(all).await;
        drop(everyone.expect("the semaphore is never closed"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_limit_changes_while_permits_are_in_use() {
        let permits = Permits::new(2);
        let (one, two) = (permits.try_acquire().unwrap(), permits.try_acquire().unwrap());
        assert!(permits.try_acquire().is_none());
        permits.resize(3);
        let three = permits.try_acquire().unwrap();
        permits.resize(1);
        tokio::task::yield_now().await; // the surplus is queued
        drop(one);
        drop(two);
        assert!(permits.try_acquire().is_none(), "the limit is 1 and one permit is in use");
        assert_eq!(permits.in_use(), 1);
        drop(three);
        tokio::task::yield_now().await;
        let four = permits.try_acquire().unwrap();
        assert!(permits.try_acquire().is_none());
        drop(four);
        permits.all_released().await;
        permits.resize(2);
        let _five = permits.acquire().await;
        assert!(permits.try_acquire().is_some());
    }
}
