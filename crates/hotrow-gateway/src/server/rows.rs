//! Carries the decisions about transactions that work on the same rows: those that wait are woken when it is their turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use hotrow_connect::lock::Lock;
use hotrow_core::admission::RowPatience;
use hotrow_core::key::KeyName;
use hotrow_core::session;
use hotrow_lane::key::Key;
use hotrow_lane::row_queue::{Contention, QueueId, Request, RowQueues, Turn};
use tokio::sync::oneshot;

use crate::hot_keys::{KeyCounts, KeySnapshot};
use crate::metrics::{METRICS, microseconds};

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

/// A transaction's place among those that begin with the same statement, or work on the same row, until it is dropped.
#[derive(Debug)]
pub struct RowPlace {
    rows: Arc<Rows>,
    queue: QueueId,
    name: Option<Box<KeyName>>,
    /// When the transaction began to wait or to work.
    since: Instant,
    /// When it began to work.
    works_since: Instant,
    /// The largest number of other transactions that it has met on a row.
    others: Option<usize>,
}

/// A transaction that waits for such a place.
#[derive(Debug)]
pub struct RowWait {
    rows: Arc<Rows>,
    queue: QueueId,
    name: Option<Box<KeyName>>,
    since: Instant,
    ticket: u64,
    ended: u64,
    woken: oneshot::Receiver<()>,
    is_over: bool,
}

impl Rows {
    /// A place in this queue, or a wait for one. A row has a name.
    pub fn join(self: &Arc<Self>, request: Request, name: Option<Box<KeyName>>) -> Result<RowPlace, RowWait> {
        let (queue, mut waiting) = (request.queue, self.0.lock());
        let (rows, since) = (self.clone(), Instant::now());
        match waiting.queues.join(request) {
            Turn::Works => Ok(RowPlace { rows, queue, name, since, works_since: since, others: None }),
            Turn::Waits { ticket, ended } => {
                let (wakes, woken) = oneshot::channel();
                waiting.wakers.insert(ticket, wakes);
                if let QueueId::Row(key) = queue
                    && let Some(name) = name.as_deref().filter(|_| !waiting.counts.is_named(&key))
                {
                    waiting.counts.name(key, name.clone());
                }
                Err(RowWait { rows, queue, name, since, ticket, ended, woken, is_over: false })
            }
        }
    }

    /// A transaction at the server comes to this row. Returns its place, and the number of others that work on the row.
    pub fn enter_row(self: &Arc<Self>, row: Key, name: Box<KeyName>) -> (RowPlace, usize) {
        let others = self.0.lock().queues.enter_row(row);
        let (queue, name) = (QueueId::Row(row), Some(name));
        let since = Instant::now();
        (RowPlace { rows: self.clone(), queue, name, since, works_since: since, others: None }, others)
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

    /// Counts a transaction that has worked on a row and has ended.
    fn count(&mut self, place: &mut RowPlace) {
        let QueueId::Row(key) = place.queue else { return };
        self.ended += 1;
        let now = Instant::now();
        let time = std::iter::once(now.saturating_duration_since(place.since));
        if self.counts.count(key, self.ended, 1, time, now)
            && let Some(name) = place.name.take()
        {
            self.counts.name(key, *name);
        }
    }

    /// A transaction has ended: it is the next one's turn.
    fn leave(&mut self, queue: QueueId, contention: Contention) {
        for ticket in self.queues.leave(queue, contention) {
            self.wake(ticket);
        }
    }
}

impl RowWait {
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
                        rows.queues.go_on(self.queue, self.ticket);
                    }
                    break;
                }
                () = tokio::time::sleep(patience.without_end) => {
                    let mut rows = self.rows.0.lock();
                    for ticket in rows.queues.waited(self.queue, &mut self.ended) {
                        rows.wake(ticket);
                    }
                }
            }
        }
        self.is_over = true;
        let (rows, name) = (self.rows.clone(), self.name.take());
        RowPlace {
            rows,
            queue: self.queue,
            name,
            since: self.since,
            works_since: Instant::now(),
            others: None,
        }
    }
}

impl Drop for RowWait {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut rows = self.rows.0.lock();
        match rows.wakers.remove(&self.ticket) {
            Some(_) => rows.queues.give_up(self.queue, self.ticket),
            None => rows.leave(self.queue, Contention::NoRow(0)), // its turn has come, unnoticed
        }
    }
}

impl Drop for RowPlace {
    fn drop(&mut self) {
        let rows = self.rows.clone();
        let mut rows = rows.0.lock();
        rows.count(self);
        let contention = match self.others {
            None => Contention::NoRow(microseconds(self.works_since.elapsed())),
            Some(others) => Contention::Others(others),
        };
        rows.leave(self.queue, contention);
    }
}

impl session::Place for RowPlace {
    fn found_others(&mut self, others: usize) {
        if self.others.is_none() {
            self.rows.0.lock().queues.reached_row(self.queue, microseconds(self.works_since.elapsed()));
        }
        self.others = self.others.max(Some(others));
    }
}
