//! The waiting calls of a pool, and their share of the listening connection. `hotrow_lane::waiting` decides which calls are
//! repeated. Each session watches the deadline of its own call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hotrow_connect::lock::Lock;
use hotrow_core::key::{self, ValueForm};
use hotrow_core::limits;
use hotrow_lane::waiting::{Entered, NotificationCount, Ticket, Waiting};
use hotrow_wire::SqlState;
use hotrow_wire::backend::{Notification, Problem};
use tokio::sync::{Notify, oneshot};

use crate::lane::{Envelope, Packed};
use crate::metrics::{GaugeGuard, METRICS};
use crate::pool::Pool;
use crate::pool::listener::{self, Listeners, Subscriber, Subscription};
use crate::statements::Statement;

/// The channel on which the server says that a waiting call may find something. The hotrow schema's functions send it with
/// pg_notify.
const CHANNEL: &str = "hotrow_wake";

/// The waiting calls of a pool.
#[derive(Debug, Default)]
pub struct WaitingCalls {
    calls: Lock<Waiting<Caller, ValueForm>>,
    /// A call has arrived since the last check.
    used: AtomicBool,
    /// The listening connection has ended.
    ended: AtomicBool,
    /// The first call has arrived, or the listening connection has ended.
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
        let (Some(key), Some(mark), Some(run)) =
            (sent.unit.claimed.key, sent.notified, sent.unit.runs().next())
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
                "Call the function again later, call it without waiting, or let fewer clients wait at the same time.",
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

    /// Returns when a call waits.
    async fn are_there(&self) {
        while self.calls.lock().is_empty() {
            self.changed.notified().await;
        }
    }

    /// Returns when the notifications have ended, or no call has waited for this long.
    async fn end_or_unused(&self, idle: Duration) {
        while !self.ended.load(Relaxed) {
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

impl Subscriber for WaitingCalls {
    fn notified(&self, body: &Bytes) {
        if let Some((space, key)) = payload(body).and_then(key::notified) {
            let woken = self.calls.lock().notified(space, key);
            Self::wake(woken);
        }
    }

    fn ended(&self, _: &Problem) {
        self.ended.store(true, Relaxed);
        self.changed.notify_one();
    }
}

/// Listens whenever a call of the pool waits, as long as the pool is open. While nothing listens, calls are repeated at the times
/// that their functions have returned.
pub async fn listen(pool: Arc<Pool>, listeners: Arc<Listeners>) {
    let mut pause = Duration::ZERO;
    loop {
        let calls = &pool.waiting;
        calls.are_there().await;
        calls.ended.store(false, Relaxed);
        let subscription = Subscription::new(listeners.of(&pool), calls.clone());
        if subscription.add(&pool, vec![CHANNEL.to_owned()], listener::marker()).await {
            pause = Duration::ZERO;
            // In a statement of its own, because the lock must not be held while calls are woken.
            let all = calls.calls.lock().listens();
            WaitingCalls::wake(all);
            calls.end_or_unused(pool.config().held_idle).await;
        } else {
            tokio::time::sleep(pause).await;
            let longest = Duration::from_millis(limits::RECONNECT_MAX_MS);
            pause = (pause * 2).clamp(Duration::from_millis(limits::RECONNECT_MIN_MS), longest);
        }
    }
}

/// The payload of a NotificationResponse.
fn payload(body: &[u8]) -> Option<&str> {
    str::from_utf8(Notification::read(body).ok()?.payload).ok()
}
