//! Cancel requests: which client may ask for what, and what is done then.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::lane::Mailbox;
use crate::lane::Message;
use crate::lock::Lock;
use crate::net::Address;
use crate::net::peer::Peer;
use crate::net::task_notify::TaskNotify;
use crate::pool::Pool;
use crate::server::connect;
use crate::session::activity::SessionActivity;

/// The handle by which a session can be cancelled.
#[derive(Debug)]
pub struct Control {
    /// The process id the client was told.
    pub process_id: u32,
    /// The secret the client was told.
    pub secret: [u8; 4],
    /// Where its session waits.
    pub mailbox: Arc<Mailbox>,
    /// Which clients it belongs to.
    pub pool: Arc<Pool>,
    /// Who is at the other end.
    pub peer: Peer,
    /// What its session does.
    pub activity: SessionActivity,
    target: Lock<CancelTarget>,
    /// Counts the cancel requests that were passed on to lanes.
    cancels: AtomicU64,
    /// Wakes a session that waits and is cancelled.
    cancelled: TaskNotify,
    /// Held while a cancel request is on its way to the server.
    sending: tokio::sync::Mutex<()>,
    /// Whether one may be.
    is_cancelling: AtomicBool,
}

/// Where a cancel request finds what a session has under way.
#[derive(Debug)]
enum CancelTarget {
    /// In lanes, if it has anything.
    Lanes,
    /// It waits, for what this says; whether it is to be cancelled.
    Waiting(&'static str, bool),
    /// At a backend.
    Backend(BackendKey),
}

/// A backend that works for a session.
#[derive(Clone, Debug)]
pub struct BackendKey {
    /// The backend's process id.
    pub process_id: u32,
    /// The backend's secret.
    pub secret: Bytes,
    /// The host it is on.
    pub address: Arc<Address>,
}

/// Process ids that clients are told begin here, above all that a system gives to processes: a client that hands its own to
/// pg_terminate_backend must not hit a backend that works for somebody else.
const FIRST_PROCESS_ID: u32 = 1 << 30;

impl Control {
    /// Notes the backend that works for the session now; whether it was cancelled while it waited for that.
    pub fn set_target(&self, target: Option<BackendKey>) -> bool {
        let target = target.map_or(CancelTarget::Lanes, CancelTarget::Backend);
        matches!(std::mem::replace(&mut *self.target.lock(), target), CancelTarget::Waiting(_, true))
    }

    /// Notes that no backend works for the session any more. It doesn't give its connection back before this is done, or a
    /// cancel request that is on its way would hit whoever gets it next.
    pub async fn clear_target(&self) {
        self.set_target(None);
        // The target is taken under the lock that was held just now: who took it before has said so before.
        if self.is_cancelling.load(Relaxed) {
            let _sent = self.sending.lock().await;
        }
    }

    /// Notes that the session waits, for what this says, and has nothing in lanes.
    pub fn set_waiting(&self, what: &'static str) {
        *self.target.lock() = CancelTarget::Waiting(what, false);
    }

    /// How often what the session has in lanes was to be cancelled.
    pub fn cancels(&self) -> u64 {
        self.cancels.load(Relaxed)
    }

    /// Returns when the session is cancelled while it waits.
    pub async fn cancelled_waiting(&self) {
        while !matches!(*self.target.lock(), CancelTarget::Waiting(_, true)) {
            self.cancelled.notified().await;
        }
    }

    /// The backend that works for the session; none also while it waits for one.
    pub fn backend(&self) -> Option<u32> {
        match &*self.target.lock() {
            CancelTarget::Backend(target) => Some(target.process_id),
            CancelTarget::Lanes | CancelTarget::Waiting(..) => None,
        }
    }

    /// What it does, if it waits.
    pub fn waiting(&self) -> Option<&'static str> {
        match &*self.target.lock() {
            CancelTarget::Waiting(what, _) => Some(what),
            CancelTarget::Lanes | CancelTarget::Backend(_) => None,
        }
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
                self.cancels.fetch_add(1, Relaxed); // under the lock: who begins to wait then sees it
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
                let config = self.pool.config();
                let BackendKey { process_id, secret, address } = target;
                if let Err(error) = connect::cancel(&config.upstream, &address, process_id, &secret).await {
                    tracing::warn!(%error, session = self.mailbox.session, "a cancel request could not be sent");
                }
            }
            None => self.pool.send_all(|| Message::Cancel(self.mailbox.session)),
        }
    }
}

/// The handle by which what an operator waits for at the console can be cancelled.
#[derive(Debug)]
pub struct ConsoleCancelHandle {
    /// The process id the client was told.
    pub process_id: u32,
    secret: [u8; 4],
    /// It is.
    pub cancelled: Notify,
}

/// The controls of all sessions, by the process id the clients were told.
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
            pool,
            peer,
            activity: SessionActivity::new(name),
            target: Lock::new(CancelTarget::Lanes),
            cancels: AtomicU64::new(0),
            cancelled: TaskNotify::default(),
            sending: tokio::sync::Mutex::new(()),
            is_cancelling: AtomicBool::new(false),
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

    /// A handle for an operator's session.
    pub fn register_console(&self, secret: [u8; 4]) -> Arc<ConsoleCancelHandle> {
        let process_id = self.last.fetch_add(1, Relaxed) & 0x3fff_ffff | FIRST_PROCESS_ID;
        let handle = Arc::new(ConsoleCancelHandle { process_id, secret, cancelled: Notify::new() });
        self.consoles.lock().insert(process_id, handle.clone());
        handle
    }

    /// Forgets it.
    pub fn remove_console(&self, process_id: u32) {
        self.consoles.lock().remove(&process_id);
    }

    /// Wakes every session, to see that the gateway stops.
    pub fn wake_all(&self) {
        let sessions = self.sessions.lock();
        sessions.values().for_each(|control| control.mailbox.task_notify.notify());
    }

    /// Forgets a session.
    pub fn remove(&self, process_id: u32) {
        self.sessions.lock().remove(&process_id);
    }

    /// Does what a cancel request asks for, if its secret is right; says nothing either way, as PostgreSQL.
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
