//! Cancel requests: checks their keys and carries them. `hotrow_core::session::CancelState` decides where they go.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use hotrow_connect::connect;
use hotrow_connect::lock::Lock;
use hotrow_connect::net::Address;
use hotrow_core::limits;
use hotrow_lane::cancel::{CancelState, CancelTarget, WaitsFor};
use tokio::sync::Notify;

use crate::lane::{Mailbox, ToLane};
use crate::net::peer::Peer;
use crate::net::task_notify::TaskNotify;
use crate::pool::Pool;
use crate::session::activity::SessionActivity;

/// A session's handle for cancel requests and for the console.
#[derive(Debug)]
pub struct Control {
    /// The process ID that the client was told.
    pub process_id: u32,
    /// The secret that the client was told.
    pub secret: [u8; 4],
    /// The session's mailbox.
    pub mailbox: Arc<Mailbox>,
    pool: Lock<Arc<Pool>>,
    /// The other end of the client's connection.
    pub peer: Peer,
    /// The session's activity.
    pub activity: SessionActivity,
    cancel: Lock<CancelState<BackendKey>>,
    /// Notifies the session's task that its wait is cancelled, or that a cancel request has arrived.
    changed: TaskNotify,
    /// Held during a cancel request of the client, so it cannot make many at once.
    asking: tokio::sync::Mutex<()>,
    /// Held while a request is sent to the server.
    sending: tokio::sync::Mutex<()>,
    /// Notifies the client's request that the session is no longer busy.
    free: TaskNotify,
    /// An operator disconnects the client.
    is_killed: AtomicBool,
}

/// The backend that works for a session.
#[derive(Clone, Debug)]
pub struct BackendKey {
    /// The backend's process ID.
    pub process_id: u32,
    /// The backend's secret.
    pub secret: Bytes,
    /// Its host.
    pub address: Arc<Address>,
}

/// The first process ID that clients are told. It is above all process IDs of a system: a client that passes its own to
/// pg_terminate_backend must not hit the backend of another session.
const FIRST_PROCESS_ID: u32 = 1 << 30;

impl Control {
    /// The session's pool.
    pub fn pool(&self) -> Arc<Pool> {
        self.pool.lock().clone()
    }

    /// Notes that the session has moved to another pool.
    pub fn moved(&self, pool: Arc<Pool>) {
        *self.pool.lock() = pool;
    }

    /// A backend is there for the session. False if the session's work was cancelled before.
    pub fn works(&self, backend: BackendKey) -> bool {
        let unit = self.earliest();
        self.cancel.lock().works(backend, unit)
    }

    /// The session has lost its backend.
    pub fn disconnected(&self) {
        self.activity.holds_none();
        self.cancel.lock().leaves();
    }

    /// The session leaves its backend. Returns when no cancel request is on its way there.
    pub async fn leave(&self) {
        while !self.cancel.lock().leaves() {
            self.changed.notified().await;
        }
    }

    /// The session does something that no cancel request may interrupt: requests wait until it is done.
    pub fn busy(&self) {
        self.cancel.lock().busy();
    }

    /// The same on the session's connection. Returns when no cancel request is on its way there.
    pub async fn quiet(&self) {
        self.busy();
        while !self.cancel.lock().is_quiet() {
            self.changed.notified().await;
        }
    }

    /// Whether a cancel request waits until the session is no longer busy.
    pub fn is_awaited(&self) -> bool {
        self.cancel.lock().is_awaited()
    }

    /// The session waits for its client, its server or its lanes.
    pub fn at_events(&self) {
        if self.cancel.lock().at_events() {
            self.free.notify();
        }
    }

    /// Waits for something, unless a cancel request ends the wait. This is the only way to wait for anything else than the
    /// client, the server and the lanes. If the request comes when the wait is over, its result is in the error.
    pub async fn unless_cancelled<R>(
        &self,
        waits_for: WaitsFor,
        wait: impl Future<Output = R>,
    ) -> Result<R, Option<R>> {
        let unit = self.earliest();
        if self.cancel.lock().waits(waits_for, unit) {
            self.free.notify();
        }
        let result = tokio::select! {
            biased;
            result = wait => Some(result),
            () = self.cancelled_waiting() => None,
        };
        match (self.cancel.lock().wait_over(), result) {
            (false, Some(result)) => Ok(result),
            (_, result) => Err(result),
        }
    }

    /// The session waits no longer, because its client has gone.
    pub fn wait_over(&self) {
        self.cancel.lock().wait_over();
    }

    /// Returns when the session is cancelled while it waits.
    async fn cancelled_waiting(&self) {
        while !self.cancel.lock().is_cancelled() {
            self.changed.notified().await;
        }
    }

    /// The session has ended: no request finds work of it.
    pub fn ended(&self) {
        self.disconnected();
        self.at_events();
    }

    /// Whether a cancel request came for this unit, which a lane has given back.
    pub fn is_meant(&self, slot: u64) -> bool {
        self.cancel.lock().is_meant(Some(slot))
    }

    /// The slot of the earliest unit without an answer.
    fn earliest(&self) -> Option<u64> {
        let (first, last) = self.mailbox.answers(|answers| answers.slots());
        last.map(|_| first)
    }

    /// The process ID of the backend that works for the session. None while the session waits for one.
    pub fn backend(&self) -> Option<u32> {
        self.cancel.lock().backend().map(|backend| backend.process_id)
    }

    /// What the session waits for, if it does.
    pub fn waits_for(&self) -> Option<WaitsFor> {
        self.cancel.lock().waits_for()
    }

    /// Whether an operator disconnects the client.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Relaxed)
    }

    /// Disconnects the client. Its statement is cancelled at the server too, wherever it is.
    pub fn kill(self: &Arc<Self>) {
        let control = self.clone();
        tokio::spawn(async move {
            // Cancel requests of the client that cannot be sent do not hold an operator up.
            let patience = Duration::from_millis(limits::CONNECT_TIMEOUT_MS);
            let _sending = tokio::time::timeout(patience, control.sending.lock()).await;
            let target = control.request(true);
            control.mailbox.task_notify.notify();
            control.carry(target).await;
        });
    }

    /// The client has gone: what it waits for is cancelled.
    pub fn client_left(self: &Arc<Self>) {
        let control = self.clone();
        tokio::spawn(async move { control.cancel().await });
    }

    async fn cancel(&self) {
        let _asking = self.asking.lock().await;
        loop {
            let sending = self.sending.lock().await;
            match self.request(false) {
                CancelTarget::Later => {
                    drop(sending);
                    self.free.notified().await;
                }
                target => return self.carry(target).await,
            }
        }
    }

    /// The session of a killed client ends after the request knows its target. If it ended before, nothing would tell where
    /// its work is, and the work would go on.
    fn request(&self, kill: bool) -> CancelTarget<BackendKey> {
        let earliest = self.earliest();
        let mut cancel = self.cancel.lock();
        self.is_killed.fetch_or(kill, Relaxed);
        cancel.request(earliest)
    }

    async fn carry(&self, target: CancelTarget<BackendKey>) {
        let backend = match target {
            CancelTarget::Session => return self.changed.notify(),
            CancelTarget::Lanes => {
                return self.pool().send_all(|| ToLane::Cancel(self.mailbox.session));
            }
            CancelTarget::Backend(backend) => backend,
            CancelTarget::Later => return, // the session of a killed client ends when it is no longer busy
        };
        let _request = Request(self);
        let pool = self.pool();
        let config = pool.config();
        let BackendKey { process_id, secret, address } = backend;
        let sent = connect::cancel(&config.upstream, &address, process_id, &secret).await;
        if let Err(error) = sent {
            tracing::warn!(%error, session = self.mailbox.session, "a cancel request could not be sent");
        }
    }
}

/// A cancel request on its way to a backend, until it is dropped.
struct Request<'c>(&'c Control);

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.0.cancel.lock().arrived();
        self.0.changed.notify();
    }
}

/// A console session's handle for cancel requests.
#[derive(Debug)]
pub struct ConsoleCancelHandle {
    /// The process ID that the client was told.
    pub process_id: u32,
    secret: [u8; 4],
    /// Notified by a cancel request.
    pub cancelled: Notify,
}

/// The controls of all sessions, by the process ID that the clients were told.
#[derive(Debug, Default)]
pub struct Controls {
    sessions: Lock<HashMap<u32, Arc<Control>>>,
    consoles: Lock<HashMap<u32, Arc<ConsoleCancelHandle>>>,
    last: AtomicU32,
}

impl Controls {
    /// A control for a new session.
    pub fn register(
        &self,
        mailbox: Arc<Mailbox>,
        pool: Arc<Pool>,
        secret: [u8; 4],
        (peer, name): (Peer, &str),
    ) -> Arc<Control> {
        let mut sessions = self.sessions.lock();
        let process_id = loop {
            let process_id = self.last.fetch_add(1, Relaxed) & 0x3fff_ffff | FIRST_PROCESS_ID;
            if !sessions.contains_key(&process_id) {
                break process_id;
            }
        };
        let control = Arc::new(Control {
            process_id,
            secret,
            mailbox,
            pool: Lock::new(pool),
            peer,
            activity: SessionActivity::new(name),
            cancel: Lock::default(),
            changed: TaskNotify::default(),
            asking: tokio::sync::Mutex::new(()),
            sending: tokio::sync::Mutex::new(()),
            free: TaskNotify::default(),
            is_killed: AtomicBool::new(false),
        });
        sessions.insert(process_id, control.clone());
        control
    }

    /// All sessions, the oldest first.
    pub fn all(&self) -> Vec<Arc<Control>> {
        let sessions = self.sessions.lock();
        let mut all: Vec<_> = sessions.values().cloned().collect();
        drop(sessions);
        all.sort_by_key(|control| control.mailbox.session);
        all
    }

    /// A handle for a console session.
    pub fn register_console(&self, secret: [u8; 4]) -> Arc<ConsoleCancelHandle> {
        let process_id = self.last.fetch_add(1, Relaxed) & 0x3fff_ffff | FIRST_PROCESS_ID;
        let handle = Arc::new(ConsoleCancelHandle { process_id, secret, cancelled: Notify::new() });
        self.consoles.lock().insert(process_id, handle.clone());
        handle
    }

    /// Number of console sessions.
    pub fn consoles(&self) -> usize {
        self.consoles.lock().len()
    }

    /// Removes the handle of a console session.
    pub fn remove_console(&self, process_id: u32) {
        self.consoles.lock().remove(&process_id);
    }

    /// Wakes every session, so it sees that the gateway stops.
    pub fn wake_all(&self) {
        let sessions = self.sessions.lock();
        sessions.values().for_each(|control| control.mailbox.task_notify.notify());
    }

    /// Removes a session.
    pub fn remove(&self, process_id: u32) -> Option<Arc<Control>> {
        self.sessions.lock().remove(&process_id)
    }

    /// Disconnects the client that was told this process ID. False if there is none.
    pub fn kill(&self, process_id: u32) -> bool {
        let control = self.sessions.lock().get(&process_id).cloned();
        control.is_some_and(|control| {
            control.kill();
            true
        })
    }

    /// Handles a cancel request if its secret is right. Like PostgreSQL, it never answers.
    pub async fn cancel(&self, process_id: u32, secret: &[u8]) {
        let control = self.sessions.lock().get(&process_id).cloned();
        let handle = self.consoles.lock().get(&process_id).cloned();
        if let Some(handle) = handle.filter(|handle| handle.secret[..] == *secret) {
            return handle.cancelled.notify_waiters();
        }
        match control {
            Some(control) if control.secret[..] == *secret => control.cancel().await,
            _ => tracing::warn!(process_id, "a cancel request with a wrong key"),
        }
    }
}
