//! A client's answers in the order of its units (`hotrow_core::session`). Lanes add them in any order. It never waits:
//! bytes that the socket does not take now stay here.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use hotrow_connect::lock::Lock;
use hotrow_connect::net::WriteHalf;
use hotrow_core::limits;
use hotrow_lane::answers::Answers;

use crate::net::budget::{self, Reservation};
use crate::net::task_notify::TaskNotify;

/// One client's answers, and the units that lanes give back (`H`).
#[derive(Debug)]
pub struct Mailbox<H> {
    /// The session's number.
    pub session: u64,
    /// Wakes the session's task when there is something for it to do.
    pub task_notify: TaskNotify,
    /// The half of the client's socket that is written.
    pub write: WriteHalf,
    state: Lock<State<H>>,
}

#[derive(Debug)]
struct State<H> {
    answers: Answers<H>,
    /// The share of the common budget that these bytes take.
    budget: Reservation,
    /// The session's task has to be woken by every change.
    watched: bool,
    /// A lane has put answers in and will flush.
    marked: bool,
    /// The client is gone: no answer is needed.
    closed: bool,
    /// Bytes that the socket has taken.
    sent: u64,
}

/// The part of the answers that the client has not received.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// Bytes that the socket does not take now.
    pub unread: usize,
    /// Units that are unanswered or not yet passed on.
    pub pending: usize,
    /// The client has to read, or be answered, before it may send more.
    pub is_full: bool,
}

impl<H> Mailbox<H> {
    /// An empty mailbox for a client's socket.
    pub fn new(session: u64, write: WriteHalf) -> Arc<Self> {
        let state = State {
            answers: Answers::default(),
            budget: Reservation::default(),
            watched: false,
            marked: false,
            closed: false,
            sent: 0,
        };
        Arc::new(Mailbox { session, task_notify: TaskNotify::default(), write, state: Lock::new(state) })
    }

    /// Reads or changes the answers.
    pub fn answers<R>(&self, with: impl FnOnce(&mut Answers<H>) -> R) -> R {
        with(&mut self.state.lock().answers)
    }

    /// Puts in an answer that `write` appends. True if the caller has to call [`Mailbox::flush`] later, false if another caller
    /// will.
    pub fn answer(&self, slot: u64, write: impl FnOnce(&mut BytesMut)) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return false;
        }
        let is_next = state.answers.answer(slot, write);
        state.charge();
        is_next && !std::mem::replace(&mut state.marked, true)
    }

    /// Notes that the answer for this slot, which is not there yet, is an error of the gateway.
    pub fn refuses(&self, slot: u64) {
        self.state.lock().answers.refuses(slot);
    }

    /// Gives a unit back to the session's task. False if the session has ended.
    pub fn give_back(&self, slot: u64, returned: H) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            drop(state); // dropping the unit may take other locks
            return false;
        }
        if state.answers.give_back(slot, returned) {
            self.task_notify.notify();
        }
        true
    }

    /// Writes as much as the socket takes, and wakes the session's task if it has to act.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        state.marked = false;
        if state.closed {
            return;
        }
        let written = state.drain(&self.write);
        // The session's task finds a write error when it writes or reads.
        if state.answers.is_front_returned() || state.watched || !matches!(written, Ok(true)) {
            self.task_notify.notify();
        }
        state.shrink();
    }

    /// Writes as much as the socket takes. Returns what is left.
    pub fn try_write(&self) -> io::Result<Backlog> {
        let mut state = self.state.lock();
        state.drain(&self.write)?;
        state.shrink();
        let (unread, pending) = (state.answers.out.len(), state.answers.pending());
        Ok(Backlog { unread, pending, is_full: state.is_full() })
    }

    /// Whether the client has to read, or be answered, before it may send more.
    pub fn is_full(&self) -> bool {
        self.state.lock().is_full()
    }

    /// Whether the client would have more unread answers than allowed, if this many bytes are added.
    pub fn is_overfull(&self, bytes: usize) -> bool {
        self.state.lock().is_overfull(bytes)
    }

    /// How many units are unanswered or not yet passed on.
    pub fn pending(&self) -> usize {
        self.state.lock().answers.pending()
    }

    /// Bytes that the client has not read.
    pub fn unread(&self) -> usize {
        self.state.lock().answers.out.len()
    }

    /// Bytes that the client's socket has taken.
    pub fn sent_bytes(&self) -> u64 {
        self.state.lock().sent
    }

    /// Sets whether every answer wakes the session's task.
    pub fn watch(&self, watched: bool) {
        self.state.lock().watched = watched;
    }

    /// No answer is needed any more.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let answers = std::mem::take(&mut state.answers);
        state.charge();
        drop(state);
        drop(answers); // dropping a unit may take other locks
    }
}

impl<H> State<H> {
    /// Writes as much as the socket takes. True if nothing is left.
    fn drain(&mut self, write: &WriteHalf) -> io::Result<bool> {
        let before = self.answers.out.len();
        let drained = write.try_drain(&mut self.answers.out);
        self.sent += (before - self.answers.out.len()) as u64;
        drained
    }

    fn is_full(&self) -> bool {
        self.answers.pending() >= limits::PIPELINE_UNITS_MAX || self.is_overfull(0)
    }

    /// Whether answers with this many bytes more would have to wait until the client has read some.
    fn is_overfull(&self, more: usize) -> bool {
        let most =
            if budget::is_exhausted() { limits::SESSION_BUFFER_BYTES } else { limits::UNREAD_BYTES_MAX };
        self.answers.bytes() + more >= most
    }

    fn charge(&mut self) {
        self.budget.charge(self.answers.bytes());
    }

    /// Frees the memory of a large answer that was written, and returns written bytes to the budget.
    fn shrink(&mut self) {
        self.charge();
        let out = &mut self.answers.out;
        if out.is_empty() && out.capacity() > limits::SESSION_BUFFER_BYTES {
            *out = BytesMut::new();
        }
    }
}
