//! Cancel requests: which client may ask for what, and what is done then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::lane::Message;
use crate::mailbox::Mailbox;
use crate::pool::Pool;
use crate::upstream;

/// The handle by which a session can be cancelled.
#[derive(Debug)]
pub struct Control {
    /// The process id the client was told.
    pub process_id: u32,
    /// The secret the client was told.
    pub secret: [u8; 4],
    /// Where its session waits.
    mailbox: Arc<Mailbox>,
    pool: Arc<Pool>,
    target: Mutex<Option<Target>>,
    /// Held while a cancel request is on its way to the server: the session doesn't give its connection back
    /// before, or the request would hit whoever gets it next.
    pub sending: tokio::sync::Mutex<()>,
}

/// A backend that works for a session.
#[derive(Clone, Debug)]
pub struct Target {
    /// The backend's process id.
    pub process_id: u32,
    /// The backend's secret.
    pub secret: Bytes,
}

impl Control {
    /// Notes the backend that works for the session now.
    pub fn set_target(&self, target: Option<Target>) {
        *self.target.lock().expect("nothing panics while it holds a target") = target;
    }

    async fn cancel(&self) {
        let _sending = self.sending.lock().await;
        let target = self.target.lock().expect("nothing panics while it holds a target").clone();
        match target {
            Some(target) => {
                if let Err(error) =
                    upstream::cancel(&self.pool.config.upstream.address, target.process_id, &target.secret)
                        .await
                {
                    tracing::warn!(%error, session = self.mailbox.session, "a cancel request could not be sent");
                }
            }
            None => self.pool.send_all(|| Message::Cancel(self.mailbox.session)),
        }
    }
}

/// The controls of all sessions, by the process id the clients were told.
#[derive(Debug, Default)]
pub struct Controls {
    sessions: Mutex<HashMap<u32, Arc<Control>>>,
    last: AtomicU32,
}

impl Controls {
    /// A control for a new session.
    pub fn register(&self, mailbox: Arc<Mailbox>, pool: Arc<Pool>, secret: [u8; 4]) -> Arc<Control> {
        let mut sessions = self.sessions.lock().expect("nothing panics while it holds the controls");
        let process_id = loop {
            let process_id = self.last.fetch_add(1, Relaxed) & 0x7fff_ffff;
            if process_id > 0 && !sessions.contains_key(&process_id) {
                break process_id;
            }
        };
        let control = Arc::new(Control {
            process_id,
            secret,
            mailbox,
            pool,
            target: Mutex::new(None),
            sending: tokio::sync::Mutex::new(()),
        });
        sessions.insert(process_id, control.clone());
        control
    }

    /// Wakes every session, to see that the gateway stops.
    pub fn wake_all(&self) {
        let sessions = self.sessions.lock().expect("nothing panics while it holds the controls");
        sessions.values().for_each(|control| control.mailbox.wake.notify_one());
    }

    /// Forgets a session.
    pub fn remove(&self, process_id: u32) {
        self.sessions.lock().expect("nothing panics while it holds the controls").remove(&process_id);
    }

    /// Does what a cancel request asks for, if its secret is right; says nothing either way, as PostgreSQL.
    pub async fn cancel(&self, process_id: u32, secret: &[u8]) {
        let control = self
            .sessions
            .lock()
            .expect("nothing panics while it holds the controls")
            .get(&process_id)
            .cloned();
        match control {
            Some(control) if control.secret[..] == *secret => control.cancel().await,
            _ => tracing::warn!(process_id, "a cancel request with a wrong key"),
        }
    }
}
