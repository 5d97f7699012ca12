//! The calls of a pool that wait for something to answer, and the connection on which their server says that there is. Who
//! is asked again is decided in `hotrow_core::waiting`; that a call's time is over is its session's to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hotrow_core::limits;
use hotrow_core::waiting::{Entered, NotificationCount, Ticket, Waiting};
use hotrow_wire::Reader;
use hotrow_wire::backend::{Problem, tag};
use tokio::sync::{Notify, oneshot};

use crate::lane::{Envelope, Packed};
use crate::lock::Lock;
use crate::metrics::{GaugeGuard, METRICS};
use crate::pool::Pool;
use crate::server::upstream::{self, Upstream};
use crate::statements::Statement;

/// Where the calls of a pool wait.
#[derive(Debug, Default)]
pub struct WaitingCalls {
    calls: Lock<Waiting<Caller>>,
    listener: Lock<ListenerState>,
    /// Somebody has come since the last look.
    used: AtomicBool,
    /// The first has come, or an order for the connection.
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

/// What has been ordered about the connection that listens.
#[derive(Debug, Default)]
struct ListenerState {
    /// There shall be none.
    paused: bool,
    /// How often it was to be made anew.
    renewals: u64,
    is_open: bool,
    /// Who wants to hear that the one there was is closed.
    closed: Vec<oneshot::Sender<()>>,
}

/// A call's place, until this is dropped.
#[derive(Debug)]
pub struct WaitingSlot<'a> {
    room: &'a WaitingCalls,
    ticket: Ticket,
    /// Says that it is to be asked again.
    pub woken: oneshot::Receiver<()>,
}

/// A call that waits, for people who look.
#[derive(Debug)]
pub struct WaitingCallSnapshot {
    /// Whose it is.
    pub session: u64,
    /// The function.
    pub function: String,
    /// How long ago it came.
    pub age: Duration,
    /// The shape of its statement.
    pub shape: String,
}

impl WaitingCalls {
    /// A call is about to be sent.
    pub fn sends(&self, packed: &Packed) -> Option<NotificationCount> {
        let run = packed.runs().next()?;
        run.packing.key.as_ref().map(|spec| self.calls.lock().sends(spec))
    }

    /// A place for a call that has found nothing; none if it has to be asked again at once.
    pub fn enter(&self, sent: &Envelope, session: u64) -> Result<Option<WaitingSlot<'_>>, Problem> {
        let (Some(key), Some(mark), Some(run)) = (sent.unit.key, sent.mark, sent.unit.runs().next()) else {
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
                "53000",
                format!("{} calls wait already; this one has found nothing", limits::WAITING_CALLS_MAX),
                "Ask without waiting, or share what waits.",
            )),
        }
    }

    /// Who waits.
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

    /// There shall be no connection from now on, or only not the one that there is. Says when that is closed.
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

    /// There may be a connection again.
    pub fn resume(&self) {
        self.listener.lock().paused = false;
        self.changed.notify_one();
    }

    /// Returns when a connection is needed, with the number of renewals so far.
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
            let _ = waiter.send(()); // who asked may be gone
        }
    }

    /// Returns when the connection that was made then is needed no more.
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
            let _ = caller.woken.send(()); // it may have left in this moment
        }
    }
}

impl Drop for WaitingSlot<'_> {
    fn drop(&mut self) {
        let left = self.room.calls.lock().leave(self.ticket);
        drop(left); // outside of the lock
    }
}

/// Listens for as long as the process lives, whenever a call of the pool waits.
pub async fn listen(pool: Arc<Pool>) {
    let mut pause = Duration::ZERO;
    loop {
        let renewals = pool.waiting.listener_needed().await;
        let idle = pool.config().held_idle;
        let listened = tokio::select! {
            error = wake_until_lost(&pool, &mut pause) => Some(error),
            () = pool.waiting.listener_superseded(renewals, idle) => None,
        };
        pool.waiting.listener_closed();
        if let Some(error) = listened {
            // Until it listens again, calls are asked again when their functions said so.
            tracing::warn!(%error, clients = pool.identity.describe(), "the connection that listens for waiting calls is gone");
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
    // In a statement of its own: the lock must not be held while they are woken.
    let all = pool.waiting.calls.lock().listens();
    WaitingCalls::wake(all);
    loop {
        match upstream.frame().await {
            Ok(frame) if frame[0] == tag::NOTIFICATION => {
                if let Some(payload) = payload(&frame[hotrow_wire::HEADER_BYTES..]) {
                    let woken = pool.waiting.calls.lock().notified(payload);
                    WaitingCalls::wake(woken);
                }
            }
            Ok(_) => {} // a setting that was reloaded, or the reason for the end that comes
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

/// What a NotificationResponse carries, behind the process id and the channel.
fn payload(body: &[u8]) -> Option<&str> {
    let mut reader = Reader::new(body);
    reader.u32().ok()?;
    reader.text().ok()?;
    reader.text().ok()
}
