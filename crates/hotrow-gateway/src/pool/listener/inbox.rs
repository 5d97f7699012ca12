//! The notifications of one session that its client has not received. They are bounded: a client that does not read
//! them holds up no other client.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use hotrow_connect::lock::Lock;
use hotrow_core::limits;
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use super::Subscriber;
use crate::lane::Mailbox;
use crate::metrics::{GaugeGuard, METRICS, RefusalReason};
use crate::net::budget::{self, Reservation};

/// One session's notifications. Each is the body of a NotificationResponse, which all subscribers of its channel share.
#[derive(Debug)]
pub struct NotificationInbox {
    state: Lock<State>,
    /// Wakes the session.
    mailbox: Arc<Mailbox>,
    _gauge: GaugeGuard,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    budget: Reservation,
    /// Why there will be no more.
    end: Option<Problem>,
}

/// Bytes that a waiting notification needs beside its body.
const ENTRY_BYTES: usize = 64;

impl NotificationInbox {
    /// An empty one for a session with this mailbox.
    pub fn new(mailbox: Arc<Mailbox>) -> Arc<Self> {
        Arc::new(NotificationInbox {
            state: Lock::default(),
            mailbox,
            _gauge: METRICS.listening_clients.enter(),
        })
    }

    /// Takes the next notification.
    pub fn pop(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        let body = state.waiting.pop_front()?;
        let bytes = state.bytes - body.len() - ENTRY_BYTES;
        state.set_bytes(bytes);
        Some(body)
    }

    /// The number of notifications up to this one, or 0 if it is not here.
    pub fn count_up_to(&self, body: &[u8]) -> usize {
        self.state.lock().waiting.iter().position(|other| other[..] == *body).map_or(0, |index| index + 1)
    }

    /// Why no more arrive.
    pub fn problem(&self) -> Option<Problem> {
        self.state.lock().end.clone()
    }
}

impl Subscriber for NotificationInbox {
    /// Adds a notification, or ends the session if too many wait.
    fn notified(&self, body: &Bytes) {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return;
        }
        let bytes = state.bytes + body.len() + ENTRY_BYTES;
        let most = match budget::is_half_used() {
            true => limits::SESSION_BUFFER_BYTES,
            false => limits::WAITING_NOTIFICATIONS_BYTES_MAX,
        };
        if bytes > most {
            state.end = Some(too_many(most));
        } else {
            state.waiting.push_back(body.clone());
            state.set_bytes(bytes);
        }
        drop(state);
        self.mailbox.task_notify.notify();
    }

    fn ended(&self, problem: &Problem) {
        self.state.lock().end.get_or_insert_with(|| problem.clone());
        self.mailbox.task_notify.notify();
    }
}

impl State {
    fn set_bytes(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.budget.charge(bytes);
    }
}

fn too_many(most: usize) -> Problem {
    METRICS.refusals.add(RefusalReason::SlowReader, 1);
    Problem::fatal(
        SqlState::OutOfMemory,
        format!("more than {most} bytes of notifications wait for the client"),
        "Read notifications as they arrive, also during long transactions. Connect again, LISTEN again, and then \
         check for what the missed notifications were about.",
    )
}
