//! The connection with which all sessions of one role and database listen, and with them the waiting calls of its pools,
//! instead of a connection each. `hotrow_core::notifications` decides what it runs and who gets a notification.

mod inbox;
mod task;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use hotrow_connect::lock::Lock;
use hotrow_core::notifications::{Hub, Marker, TooMany};
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;
use tokio::sync::{Notify, oneshot};

use crate::pool::Pool;

pub use inbox::NotificationInbox;

/// A route's number, a database and a role.
type Key = (u64, String, String);

/// The listening connections.
#[derive(Debug, Default)]
pub struct Listeners {
    listeners: Lock<HashMap<Key, Weak<SharedListener>>>,
}

/// One listening connection, which is open while a subscriber needs it.
#[derive(Debug, Default)]
pub struct SharedListener {
    state: Lock<State>,
    /// There is something to do for the task.
    changed: Notify,
}

/// Who gets notifications. Called under the listener's lock.
pub trait Subscriber: Debug + Send + Sync {
    /// A notification: the body of a NotificationResponse.
    fn notified(&self, body: &Bytes);

    /// The connection has ended, and no more notifications arrive.
    fn ended(&self, problem: &Problem);
}

/// A waiting subscriber: true if what it waits for has succeeded.
type Waiter = oneshot::Sender<bool>;

#[derive(Debug, Default)]
struct State {
    hub: Hub<Arc<dyn Subscriber>, Waiter>,
    /// A task has the connection, or is about to open it.
    is_open: bool,
    /// Callers that wait until the connection is replaced by a new one.
    renewing: Vec<oneshot::Sender<()>>,
    /// The connection is closed as soon as there is no subscriber, without waiting for another one.
    leaves: bool,
}

/// A subscriber's share of a listening connection, until it is dropped.
#[derive(Debug)]
pub struct Subscription<S> {
    listener: Arc<SharedListener>,
    number: u64,
    pub subscriber: Arc<S>,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The error for a client that may have missed notifications.
pub fn lost() -> Problem {
    Problem::fatal(
        SqlState::ConnectionFailure,
        "the connection that listens for this client was lost, and notifications may have been lost with it",
        "Connect again, LISTEN again, and then check for what the missed notifications were about.",
    )
}

/// A new marker.
pub fn marker() -> Marker {
    let mut bytes = [0; 16];
    // Without random numbers no client could have logged in. A marker that is not new only delays its subscriber.
    let _ = getrandom::fill(&mut bytes);
    format!("{:032x}", u128::from_be_bytes(bytes))
}

impl Listeners {
    /// The listening connection for the clients of a pool.
    pub fn of(&self, pool: &Pool) -> Arc<SharedListener> {
        let mut listeners = self.listeners.lock();
        let identity = &pool.identity;
        let key = (identity.route().id(), identity.database().to_owned(), identity.user().to_owned());
        if let Some(listener) = listeners.get(&key).and_then(Weak::upgrade) {
            return listener;
        }
        listeners.retain(|_, listener| listener.strong_count() > 0);
        let new = Arc::new(SharedListener::default());
        listeners.insert(key, Arc::downgrade(&new));
        new
    }

    fn of_database(&self, wanted: Option<&str>) -> Vec<Arc<SharedListener>> {
        let listeners = self.listeners.lock();
        let matching =
            listeners.iter().filter(|((_, name, _), _)| wanted.is_none_or(|wanted| wanted == name));
        matching.filter_map(|(_, listener)| listener.upgrade()).collect()
    }

    /// A database, or all, was paused: the connections are closed, and their clients are told.
    pub fn paused(&self, database: Option<&str>) {
        self.of_database(database).iter().for_each(|listener| listener.changed.notify_one());
    }

    /// Closes the connections without subscribers.
    pub fn leave_unused(&self) {
        for listener in self.of_database(None) {
            let mut state = listener.state.lock();
            if state.is_open && state.hub.is_empty() {
                state.leaves = true;
                listener.changed.notify_one();
            }
        }
    }

    /// Replaces the connections of a database, or of all. Clients miss nothing. Each receiver reports that an old
    /// connection is closed.
    pub fn renew(&self, database: Option<&str>) -> Vec<oneshot::Receiver<()>> {
        let renew = |listener: Arc<SharedListener>| {
            let (done, receiver) = oneshot::channel();
            let mut state = listener.state.lock();
            if state.is_open {
                state.renewing.push(done);
                listener.changed.notify_one();
            }
            drop(state);
            receiver
        };
        self.of_database(database).into_iter().map(renew).collect()
    }
}

impl<S: Subscriber + 'static> Subscription<S> {
    /// For a subscriber that has no channels yet.
    pub fn new(listener: Arc<SharedListener>, subscriber: Arc<S>) -> Self {
        Subscription { listener, number: NUMBERS.fetch_add(1, Relaxed), subscriber }
    }

    /// Adds channels, if any, and waits until the subscriber has got the marker. False if the connection cannot listen to them.
    pub async fn add(&self, pool: &Pool, channels: Vec<String>, marker: Marker) -> bool {
        let (waiter, done) = oneshot::channel();
        let begun = {
            let mut state = self.listener.state.lock();
            let subscriber: Arc<dyn Subscriber> = self.subscriber.clone();
            let subscribed = state.hub.subscribe((self.number, subscriber), channels, marker, waiter);
            if subscribed == Err(TooMany) {
                tracing::debug!("a listening connection has too many channels for one more subscriber");
                return false;
            }
            std::mem::replace(&mut state.is_open, true)
        };
        if begun {
            self.listener.changed.notify_one();
        } else {
            tokio::spawn(task::run(self.listener.clone(), pool.context.clone(), pool.identity.clone()));
        }
        done.await.unwrap_or(false)
    }

    /// Removes channels.
    pub fn remove(&self, channels: &[String]) {
        self.listener.state.lock().hub.unsubscribe(self.number, channels);
        self.listener.changed.notify_one();
    }

    /// Returns when everything that was notified before the call has arrived, or the connection is lost.
    pub async fn catch_up(&self) {
        let (waiter, done) = oneshot::channel();
        {
            let mut state = self.listener.state.lock();
            if !state.is_open {
                return;
            }
            state.hub.catch_up(waiter);
        }
        self.listener.changed.notify_one();
        let _ = done.await; // the subscriber is told of a lost connection
    }
}

impl<S> Drop for Subscription<S> {
    fn drop(&mut self) {
        self.listener.state.lock().hub.leave(self.number);
        self.listener.changed.notify_one();
    }
}

impl SharedListener {
    /// Ends the connection. The subscribers are told if they may miss notifications.
    fn end(&self, problem: Option<&Problem>) {
        let state = std::mem::take(&mut *self.state.lock());
        let (subscribers, waiters) = state.hub.lost();
        if let Some(problem) = problem {
            subscribers.for_each(|subscriber| subscriber.ended(problem));
        }
        for waiter in waiters {
            let _ = waiter.send(false); // it may have left
        }
    }
}
