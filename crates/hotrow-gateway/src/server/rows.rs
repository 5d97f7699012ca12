//! Carries the decisions about transactions that work on the same row: those that wait are woken when it is their turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use hotrow_core::admission::RowPatience;
use hotrow_core::key::{Key, KeyName};
use hotrow_core::row_queue::{Place, RowQueues};
use tokio::sync::oneshot;

use crate::hot_keys::{KeyCounts, KeySnapshot};
use crate::lock::Lock;
use crate::metrics::METRICS;

/// The rows of a database on which transactions of clients work.
#[derive(Debug, Default)]
pub struct Rows(Lock<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    queues: RowQueues,
    wakers: HashMap<u64, oneshot::Sender<()>>,
    counts: KeyCounts,
    /// Number of transactions that have ended. Each is one commit.
    ended: u64,
}

/// A transaction's place among those that work on a row, until it is dropped.
#[derive(Debug)]
pub struct RowPlace {
    rows: Arc<Rows>,
    key: Key,
    name: Option<Box<KeyName>>,
    /// When the transaction began to wait or to work.
    since: Instant,
}

/// A transaction that waits for such a place.
#[derive(Debug)]
pub struct RowWait {
    rows: Arc<Rows>,
    key: Key,
    name: Option<Box<KeyName>>,
    since: Instant,
    ticket: u64,
    ended: u64,
    woken: oneshot::Receiver<()>,
    is_over: bool,
}

impl Rows {
    /// A place among the transactions that work on this row, or a wait for one.
    pub fn join(self: &Arc<Self>, key: Key, name: Option<Box<KeyName>>) -> Result<RowPlace, RowWait> {
        let mut waiting = self.0.lock();
        let (rows, since) = (self.clone(), Instant::now());
        match waiting.queues.join(key) {
            Place::Works => Ok(RowPlace { rows, key, name, since }),
            Place::Waits { ticket, ended } => {
                let (wakes, woken) = oneshot::channel();
                waiting.wakers.insert(ticket, wakes);
                if let Some(name) = name.as_deref().filter(|_| !waiting.counts.is_named(&key)) {
                    waiting.counts.name(key, name.clone());
                }
                Err(RowWait { rows, key, name, since, ticket, ended, woken, is_over: false })
            }
        }
    }

    /// The rows with the most transactions, and those for which transactions wait.
    pub fn snapshots(&self) -> Vec<KeySnapshot> {
        let mut all = self.0.lock();
        let waiting: HashMap<Key, usize> = all.queues.waiting().collect();
        let mut keys = all.counts.snapshots(waiting.keys().copied());
        keys.iter_mut().for_each(|one| one.waiting = waiting.get(&one.key).copied().unwrap_or_default());
        keys
    }
}

impl Waiting {
    /// It is the turn of the transaction with this ticket.
    fn wake(&mut self, ticket: u64) {
        if let Some(waker) = self.wakers.remove(&ticket) {
            let _ = waker.send(()); // if it is gone, its drop gives the place to the next one
        }
    }

    /// Counts a transaction that has ended.
    fn count(&mut self, place: &mut RowPlace) {
        self.ended += 1;
        let now = Instant::now();
        let time = std::iter::once(now.saturating_duration_since(place.since));
        if self.counts.count(place.key, self.ended, 1, time, now)
            && let Some(name) = place.name.take()
        {
            self.counts.name(place.key, *name);
        }
    }

    /// A transaction has ended: it is the next one's turn.
    fn leave(&mut self, key: Key) {
        if let Some(ticket) = self.queues.leave(key) {
            self.wake(ticket);
        }
    }
}

impl RowWait {
    /// Waits for the place.
    pub async fn place(mut self, patience: RowPatience) -> RowPlace {
        let _gauge = METRICS.row_waits.enter();
        let longest = tokio::time::sleep(patience.longest);
        tokio::pin!(longest);
        loop {
            tokio::select! {
                biased;
                _ = &mut self.woken => break,
                () = &mut longest => {
                    let mut rows = self.rows.0.lock();
                    if rows.wakers.remove(&self.ticket).is_some() {
                        rows.queues.go_on(self.key, self.ticket);
                    }
                    break;
                }
                () = tokio::time::sleep(patience.without_end) => {
                    let mut rows = self.rows.0.lock();
                    for ticket in rows.queues.waited(self.key, &mut self.ended) {
                        rows.wake(ticket);
                    }
                }
            }
        }
        self.is_over = true;
        RowPlace { rows: self.rows.clone(), key: self.key, name: self.name.take(), since: self.since }
    }
}

impl Drop for RowWait {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut rows = self.rows.0.lock();
        match rows.wakers.remove(&self.ticket) {
            Some(_) => rows.queues.give_up(self.key, self.ticket),
            None => rows.leave(self.key), // its turn has come, unnoticed
        }
    }
}

impl Drop for RowPlace {
    fn drop(&mut self) {
        let rows = self.rows.clone();
        let mut rows = rows.0.lock();
        rows.count(self);
        rows.leave(self.key);
    }
}
