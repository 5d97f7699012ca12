//! The waiting calls of a pool, and the connection that listens for their notifications. `hotrow_lane::waiting` decides
//! which calls are repeated. Each session watches the deadline of its own call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hotrow_core::key::{self, ValueForm};
use hotrow_core::limits;
use hotrow_lane::waiting::{Entered, NotificationCount, Ticket, Waiting};
use hotrow_wire::Reader;
use hotrow_wire::SqlState;
use hotrow_wire::backend::{Problem, tag};
use tokio::sync::{Notify, oneshot};

use crate::lane::{Envelope, Packed};
use crate::lock::Lock;
use crate::metrics::{GaugeGuard, METRICS};
use crate::pool::Pool;
use crate::server::upstream::{self, Upstream};
use crate::statements::Statement;

/// The waiting calls of a pool.
#[derive(Debug, Default)]
pub struct WaitingCalls {
    calls: Lock<Waiting<Caller, ValueForm>>,
    listener: Lock<ListenerState>,
    /// A call has arrived since the last check.
    used: AtomicBool,
    /// The first call has arrived, or the listener's state has changed.
    changed: Notify,
}

#[derive(Debug)]
struct Caller {
    woken: oneshot::Sender<()>,
    session: u64,
    since: Instant,
    function: String,
    statement: Arc<Statement>,
    _gauge: GaugeGuard,
}

/// The state of the listener: the connection that listens for notifications.
#[derive(Debug, Default)]
struct ListenerState {
    /// The pool is paused.
    paused: bool,
    /// How often the connection was to be replaced.
    renewals: u64,
    is_open: bool,
    /// Callers that wait until the connection is closed.
    closed: Vec<oneshot::Sender<()>>,
}

/// A waiting call's slot until it is dropped.
#[derive(Debug)]
pub struct WaitingSlot<'a> {
    room: &'a WaitingCalls,
    ticket: Ticket,
    /// Reports that the call has to be repeated.
    pub woken: oneshot::Receiver<()>,
}

/// A waiting call as the console shows it.
#[derive(Debug)]
pub struct WaitingCallSnapshot {
    /// Its session's number.
    pub session: u64,
    pub function: String,
    /// How long ago it arrived.
    pub age: Duration,
    /// The shape of its statement.
    pub shape: String,
}

impl WaitingCalls {
    /// Notes a call that is about to be sent.
    pub fn sends(&self, packed: &Packed) -> Option<NotificationCount> {
        let run = packed.runs().next()?;
        let spec = run.packing.key.as_ref()?;
        Some(self.calls.lock().sends(spec.table, spec.columns.first()?.form))
    }

    /// A slot for a call that found nothing. None if the call has to be repeated at once.
    pub fn enter(&self, sent: &Envelope, session: u64) -> Result<Option<WaitingSlot<'_>>, Problem> {
        let (Some(key), Some(mark), Some(run)) = (sent.unit.claimed.key, sent.mark, sent.unit.runs().next())
        else {
            return Ok(None);
        };
        let (sender, woken) = oneshot::channel();
        let caller = Caller {
            woken: sender,
            session,
            since: sent.came,
            function: run.packing.table.clone(),
            statement: run.statement.clone(),
            _gauge: METRICS.waiting_calls.enter(),
        };
        let mut calls = self.calls.lock();
        match calls.enter(key, mark, caller) {
            Entered::Waits(ticket) => {
                let is_first = calls.len() == 1;
                drop(calls);
                self.used.store(true, Relaxed);
                if is_first {
                    self.changed.notify_one();
                }
                Ok(Some(WaitingSlot { room: self, ticket, woken }))
            }
            Entered::Again => Ok(None),
            Entered::Full => Err(Problem::error(
                SqlState::InsufficientResources,
                format!(
                    "the call ran and found nothing, and it cannot wait: the limit of {} waiting calls is reached",
                    limits::WAITING_CALLS_MAX
                ),
                "Call the function again later, call it without waiting, or let fewer clients wait at once.",
            )),
        }
    }

    /// The waiting calls for the console.
    pub fn snapshots(&self) -> Vec<WaitingCallSnapshot> {
        let calls = self.calls.lock();
        let look = |caller: &Caller| WaitingCallSnapshot {
            session: caller.session,
            function: caller.function.clone(),
            age: caller.since.elapsed(),
            shape: caller.statement.shown(limits::SHOWN_SHAPE_CHARS_MAX),
        };
        calls.iter().take(limits::SHOWN_UNITS_MAX).map(look).collect()
    }

    /// Closes the listener's connection. If `stays` is set, no other one is opened before [`resume`](Self::resume). The
    /// receiver reports that it is closed.
    pub fn close(&self, stays: bool) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut listener = self.listener.lock();
        listener.paused |= stays;
        listener.renewals += 1;
        if listener.is_open {
            listener.closed.push(sender);
        }
        drop(listener);
        self.changed.notify_one();
        receiver
    }

    /// Allows a connection again.
    pub fn resume(&self) {
        self.listener.lock().paused = false;
        self.changed.notify_one();
    }

    /// Returns when a connection is needed, with the number of replacements so far.
    async fn listener_needed(&self) -> u64 {
        loop {
            if !self.calls.lock().is_empty() {
                let mut listener = self.listener.lock();
                if !listener.paused {
                    listener.is_open = true;
                    return listener.renewals;
                }
            }
            self.changed.notified().await;
        }
    }

    fn listener_closed(&self) {
        let mut listener = self.listener.lock();
        listener.is_open = false;
        for waiter in listener.closed.drain(..) {
            let _ = waiter.send(()); // the caller may be gone
        }
    }

    /// Returns when the connection that was made at this number of replacements is no longer needed.
    async fn listener_superseded(&self, renewals: u64, idle: Duration) {
        loop {
            if self.listener.lock().renewals != renewals {
                return;
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(idle) => {
                    if !self.used.swap(false, Relaxed) && self.calls.lock().is_empty() {
                        return;
                    }
                }
            }
        }
    }

    fn wake(callers: Vec<Caller>) {
        for caller in callers {
            let _ = caller.woken.send(()); // its session may have left just now
        }
    }
}

impl Drop for WaitingSlot<'_> {
    fn drop(&mut self) {
        let left = self.room.calls.lock().leave(self.ticket);
        drop(left); // outside the lock
    }
}

/// The listener's connection is open or being opened. When dropped, also because the task is aborted, those who wait until it is
/// closed go on.
struct Open<'a>(&'a WaitingCalls);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.listener_closed();
    }
}

/// Listens whenever a call of the pool waits, as long as the pool is open.
pub async fn listen(pool: Arc<Pool>) {
    let mut pause = Duration::ZERO;
    loop {
        let renewals = pool.waiting.listener_needed().await;
        let open = Open(&pool.waiting);
        let idle = pool.config().held_idle;
        let listened = tokio::select! {
            error = wake_until_lost(&pool, &mut pause) => Some(error),
            () = pool.waiting.listener_superseded(renewals, idle) => None,
        };
        drop(open);
        if let Some(error) = listened {
            // Until it listens again, calls are repeated at the times that their functions have returned.
            tracing::warn!(%error, clients = pool.identity.describe(), "the connection that listens for waiting calls was lost");
            tokio::time::sleep(pause).await;
            let longest = Duration::from_millis(limits::RECONNECT_MAX_MS);
            pause = (pause * 2).clamp(Duration::from_millis(limits::RECONNECT_MIN_MS), longest);
        }
    }
}

/// Wakes calls until the connection is lost.
async fn wake_until_lost(pool: &Pool, pause: &mut Duration) -> upstream::Error {
    let mut upstream = match open(pool).await {
        Ok(upstream) => upstream,
        Err(error) => return error,
    };
    *pause = Duration::ZERO;
    // In a statement of its own, because the lock must not be held while calls are woken.
    let all = pool.waiting.calls.lock().listens();
    WaitingCalls::wake(all);
    loop {
        match upstream.frame().await {
            Ok(frame) if frame[0] == tag::NOTIFICATION => {
                let payload = payload(&frame[hotrow_wire::HEADER_BYTES..]);
                if let Some((space, key)) = payload.and_then(key::notified) {
                    let woken = pool.waiting.calls.lock().notified(space, key);
                    WaitingCalls::wake(woken);
                }
            }
            Ok(_) => {} // a changed setting, or the reason for the end of the connection
            Err(error) => return error,
        }
    }
}

async fn open(pool: &Pool) -> Result<Upstream, upstream::Error> {
    let mut parameters = pool.identity.parameters().to_vec();
    parameters.push(("application_name".to_owned(), "hotrow listener".to_owned()));
    let config = pool.config().clone();
    let mut upstream = Upstream::connect(&config.upstream, &parameters, &pool.context.login, false).await?;
    upstream.query(include_str!("../../sql/listen.sql"), &[]).await?;
    Ok(upstream)
}

/// The payload of a NotificationResponse.
fn payload(body: &[u8]) -> Option<&str> {
    let mut reader = Reader::new(body);
    reader.u32().ok()?;
    reader.text().ok()?;
    reader.text().ok()
}
