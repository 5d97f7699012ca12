//! Cancel requests: checks their keys and forwards them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::lane::{Mailbox, Message};
use crate::lock::Lock;
use crate::net::Address;
use crate::net::peer::Peer;
use crate::net::task_notify::TaskNotify;
use crate::pool::Pool;
use crate::server::connect;
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
    target: Lock<CancelTarget>,
    /// Counts cancel requests that were sent to lanes.
    cancels: AtomicU64,
    /// Notifies a waiting session that it is cancelled.
    cancelled: TaskNotify,
    /// Held while a cancel request is sent to the server.
    sending: tokio::sync::Mutex<()>,
    /// Whether a cancel request is being sent.
    is_cancelling: AtomicBool,
    /// An operator disconnects the client.
    is_killed: AtomicBool,
}

/// Where a session's work is for a cancel request.
#[derive(Debug)]
enum CancelTarget {
    /// In lanes, if the session has work.
    Lanes,
    /// The session waits: the reason, and whether it was cancelled.
    Waiting(&'static str, bool),
    /// At a backend.
    Backend(BackendKey),
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

    /// Sets the backend that works for the session. Returns whether the session was cancelled while it waited.
    pub fn set_target(&self, target: Option<BackendKey>) -> bool {
        let target = target.map_or(CancelTarget::Lanes, CancelTarget::Backend);
        matches!(std::mem::replace(&mut *self.target.lock(), target), CancelTarget::Waiting(_, true))
    }

    /// Notes that no backend works for the session any more. The session calls it before it gives its connection back.
    /// Otherwise a cancel request under way could hit the next user of the connection.
    pub async fn clear_target(&self) {
        self.set_target(None);
        // The target was changed under the lock. A task that read the target before has set this flag before.
        if self.is_cancelling.load(Relaxed) {
            let _sent = self.sending.lock().await;
        }
    }

    /// Notes that the session waits for this reason, and has no units in lanes.
    pub fn set_waiting(&self, what: &'static str) {
        *self.target.lock() = CancelTarget::Waiting(what, false);
    }

    /// Number of cancel requests for the session's units in lanes.
    pub fn cancels(&self) -> u64 {
        self.cancels.load(Relaxed)
    }

    /// Returns when the session is cancelled while it waits.
    pub async fn cancelled_waiting(&self) {
        while !matches!(*self.target.lock(), CancelTarget::Waiting(_, true)) {
            self.cancelled.notified().await;
        }
    }

    /// The process ID of the backend that works for the session. None while the session waits for one.
    pub fn backend(&self) -> Option<u32> {
        match &*self.target.lock() {
            CancelTarget::Backend(target) => Some(target.process_id),
            CancelTarget::Lanes | CancelTarget::Waiting(..) => None,
        }
    }

    /// Why the session waits, if it does.
    pub fn waiting(&self) -> Option<&'static str> {
        match &*self.target.lock() {
            CancelTarget::Waiting(what, _) => Some(what),
            CancelTarget::Lanes | CancelTarget::Backend(_) => None,
        }
    }

    /// Whether an operator disconnects the client.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Relaxed)
    }

    /// Disconnects the client. Its statement is cancelled, so the session does not wait for its end.
    pub fn kill(self: &Arc<Self>) {
        self.is_killed.store(true, Relaxed);
        self.mailbox.task_notify.notify();
        let control = self.clone();
        tokio::spawn(async move { control.cancel().await });
    }

    async fn cancel(&self) {
        let _sending = self.sending.lock().await;
        self.is_cancelling.store(true, Relaxed);
        self.forward_cancel().await;
        self.is_cancelling.store(false, Relaxed);
    }

    async fn forward_cancel(&self) {
        let target = match &mut *self.target.lock() {
            CancelTarget::Lanes => {
                // under the lock, so a session that begins to wait sees it
                self.cancels.fetch_add(1, Relaxed);
                None
            }
            CancelTarget::Waiting(_, cancelled) => {
                *cancelled = true;
                return self.cancelled.notify();
            }
            CancelTarget::Backend(target) => Some(target.clone()),
        };
        match target {
            Some(target) => {
                let pool = self.pool();
                let config = pool.config();
                let BackendKey { process_id, secret, address } = target;
                if let Err(error) = connect::cancel(&config.upstream, &address, process_id, &secret).await {
                    tracing::warn!(%error, session = self.mailbox.session, "a cancel request could not be sent");
                }
            }
            None => self.pool().send_all(|| Message::Cancel(self.mailbox.session)),
        }
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
            target: Lock::new(CancelTarget::Lanes),
            cancels: AtomicU64::new(0),
            cancelled: TaskNotify::default(),
            sending: tokio::sync::Mutex::new(()),
            is_cancelling: AtomicBool::new(false),
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
