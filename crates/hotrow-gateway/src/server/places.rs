//! So many places and no more, where the number may change while they are taken: those of clients, those of held
//! connections. Who is let in is decided elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places that can be taken.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    count: AtomicUsize,
}

/// A place that is taken until this is dropped.
pub type Place = OwnedSemaphorePermit;

impl Places {
    /// So many, all free.
    pub fn new(count: usize) -> Self {
        Places { free: Arc::new(Semaphore::new(count)), count: AtomicUsize::new(count) }
    }

    /// How many there are, taken ones included.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.count().saturating_sub(self.free.available_permits())
    }

    /// Changes how many there are. Who has a place keeps it: where there are too many, nobody gets one before enough
    /// of them have been given back.
    pub fn resize(&self, count: usize) {
        let before = self.count.swap(count, Relaxed);
        if count >= before {
            self.free.add_permits(count - before);
            return;
        }
        let (free, surplus) = (self.free.clone(), u32::try_from(before - count).unwrap_or(u32::MAX));
        tokio::spawn(async move {
            if let Ok(permits) = free.acquire_many_owned(surplus).await {
                permits.forget();
            }
        });
    }

    /// A place, if one is free now.
    pub fn try_take(&self) -> Option<Place> {
        self.free.clone().try_acquire_owned().ok()
    }

    /// A place, as soon as it is this caller's turn.
    pub async fn take(&self) -> Place {
        self.free.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Waits until all places are free.
    pub async fn all_free(&self) {
        let all = u32::try_from(self.count()).unwrap_or(u32::MAX);
        let everyone = self.free.acquire_many(all).await;
        drop(everyone.expect("the semaphore is never closed"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_number_of_places_changes_while_they_are_taken() {
        let places = Places::new(2);
        let (one, two) = (places.try_take().unwrap(), places.try_take().unwrap());
        assert!(places.try_take().is_none());
        places.resize(3);
        let three = places.try_take().unwrap();
        places.resize(1);
        tokio::task::yield_now().await; // the surplus gets in line
        drop(one);
        drop(two);
        assert!(places.try_take().is_none(), "one is there and one is taken");
        assert_eq!(places.taken(), 1);
        drop(three);
        tokio::task::yield_now().await;
        let four = places.try_take().unwrap();
        assert!(places.try_take().is_none());
        drop(four);
        places.all_free().await;
        places.resize(2);
        let _five = places.take().await;
        assert!(places.try_take().is_some());
    }
}
