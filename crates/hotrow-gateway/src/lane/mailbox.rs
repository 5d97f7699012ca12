//! Where a client's answers wait for their turn: lanes put them in from outside, in any order; the client gets them
//! in the order of its units. Never waits: what the socket does not take now stays here.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use hotrow_core::limits;

use crate::lock::Lock;
use crate::net::WriteHalf;
use crate::net::budget::{self, Reservation};
use crate::net::wake::Wake;

/// One client's answers, among them what lanes give back (`H`).
#[derive(Debug)]
pub struct Mailbox<H> {
    /// The session's number.
    pub session: u64,
    /// Wakes the session's task when there is something for it to do.
    pub wake: Wake,
    /// The half of the client's socket that is written.
    pub write: WriteHalf,
    state: Lock<State<H>>,
}

/// What waits.
#[derive(Debug)]
struct State<H> {
    /// The number of the first slot.
    first: u64,
    slots: VecDeque<Slot<H>>,
    /// How many slots hold what a lane gave back.
    handed: usize,
    /// Bytes for the client.
    out: BytesMut,
    /// Bytes of answers that wait for one before them.
    kept: usize,
    /// What all of these bytes take of the common budget.
    budget: Reservation,
    /// The session's task wants to know of every change.
    watched: bool,
    /// Somebody has put answers in and will flush.
    marked: bool,
    /// The client is gone: nobody wants answers.
    closed: bool,
    /// Slots of units that the gateway has refused and whose session wants to know.
    refused: Vec<u64>,
}

/// What is left of the answers that a client gets.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Bytes that the socket does not take now.
    pub unread: usize,
    /// Units that are unanswered or not yet passed on.
    pub pending: usize,
    /// The client has to read, or be answered, before it may send more.
    pub is_full: bool,
}

#[derive(Debug)]
enum Slot<H> {
    /// In a lane.
    Waiting,
    /// Answered, behind one that isn't.
    Answered(BytesMut),
    /// For the session's task to deal with.
    Handed(Box<H>),
}

impl<H> Mailbox<H> {
    /// An empty mailbox for a client's socket.
    pub fn new(session: u64, write: WriteHalf) -> Arc<Self> {
        let state = State {
            first: 0,
            slots: VecDeque::new(),
            handed: 0,
            out: BytesMut::new(),
            kept: 0,
            budget: Reservation::default(),
            watched: false,
            marked: false,
            closed: false,
            refused: Vec::new(),
        };
        Arc::new(Mailbox { session, wake: Wake::default(), write, state: Lock::new(state) })
    }

    /// A place for a unit's answer, behind all earlier ones.
    pub fn reserve(&self) -> u64 {
        let mut state = self.state.lock();
        state.slots.push_back(Slot::Waiting);
        state.first + state.slots.len() as u64 - 1
    }

    /// Puts in an answer that `write` appends. True if the caller has to call [`Mailbox::flush`] later, false if
    /// somebody else will.
    pub fn answer(&self, slot: u64, write: impl FnOnce(&mut BytesMut)) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return false;
        }
        if slot != state.first {
            let index =
                usize::try_from(slot - state.first).expect("a slot is answered once, while it is there");
            let mut bytes = BytesMut::new();
            write(&mut bytes);
            state.kept += bytes.len();
            state.slots[index] = Slot::Answered(bytes);
            state.charge();
            return false;
        }
        write(&mut state.out);
        state.pop();
        state.charge();
        !std::mem::replace(&mut state.marked, true)
    }

    /// Notes that the answer at this place, which is not there yet, is the gateway's own error.
    pub fn refuses(&self, slot: u64) {
        self.state.lock().refused.push(slot);
    }

    /// The places before this one whose answers were the gateway's own errors, each of them once.
    pub fn take_refused(&self, end: u64) -> Vec<u64> {
        self.state.lock().refused.extract_if(.., |slot| *slot < end).collect()
    }

    /// Gives a unit back to the session's task. False if the session has ended.
    pub fn hand(&self, slot: u64, handed: H) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            drop(state); // what is handed may have something to say when it is dropped
            return false;
        }
        let index = usize::try_from(slot - state.first).expect("a slot is answered once, while it is there");
        state.slots[index] = Slot::Handed(Box::new(handed));
        state.handed += 1;
        if index == 0 {
            self.wake.wake();
        }
        true
    }

    /// Writes what the socket takes and wakes the session's task if it has to go on.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        state.marked = false;
        if state.closed {
            return;
        }
        let written = self.write.try_drain(&mut state.out);
        let handed = matches!(state.slots.front(), Some(Slot::Handed(_)));
        // A write error is the session task's to find when it writes or reads.
        if handed || state.watched || !matches!(written, Ok(true)) {
            self.wake.wake();
        }
        state.shrink();
    }

    /// Appends bytes for the client behind what is there; only when no slot waits in front of them.
    pub fn append(&self, write: impl FnOnce(&mut BytesMut)) {
        let mut state = self.state.lock();
        debug_assert!(
            state.slots.is_empty()
                || matches!(state.slots.front(), Some(Slot::Handed(_)) | Some(Slot::Waiting))
        );
        write(&mut state.out);
    }

    /// Appends an answer of the gateway's own in its turn.
    pub fn append_in_turn(&self, write: impl FnOnce(&mut BytesMut)) {
        let mut state = self.state.lock();
        if state.slots.is_empty() {
            write(&mut state.out);
        } else {
            let mut bytes = BytesMut::new();
            write(&mut bytes);
            state.kept += bytes.len();
            state.slots.push_back(Slot::Answered(bytes));
        }
    }

    /// Writes what the socket takes; what is left.
    pub fn try_write(&self) -> io::Result<Left> {
        let mut state = self.state.lock();
        self.write.try_drain(&mut state.out)?;
        state.shrink();
        let (unread, pending) = (state.out.len(), state.slots.len());
        Ok(Left { unread, pending, is_full: pending >= limits::PIPELINE_UNITS_MAX || state.is_full(0) })
    }

    /// Whether a lane has given back a unit that is not dealt with.
    pub fn has_handed(&self) -> bool {
        self.state.lock().handed > 0
    }

    /// Whether the client has to read, or be answered, before it may send more.
    pub fn is_full(&self) -> bool {
        let state = self.state.lock();
        state.slots.len() >= limits::PIPELINE_UNITS_MAX || state.is_full(0)
    }

    /// Whether the client would have more answers than it may leave unread, with so many bytes that are on their way to it.
    pub fn is_overfull(&self, bytes: usize) -> bool {
        self.state.lock().is_full(bytes)
    }

    /// How many units are unanswered or not yet passed on.
    pub fn pending(&self) -> usize {
        self.state.lock().slots.len()
    }

    /// The slot that is answered next, and the last one that is reserved; none if all are answered.
    pub fn slots(&self) -> (u64, Option<u64>) {
        let state = self.state.lock();
        let last = state.slots.len().checked_sub(1).map(|index| state.first + index as u64);
        (state.first, last)
    }

    /// Bytes that the client has not read.
    pub fn unread(&self) -> usize {
        self.state.lock().out.len()
    }

    /// Whether the session's task wants to be woken by every answer.
    pub fn watch(&self, watched: bool) {
        self.state.lock().watched = watched;
    }

    /// The unit at the front if a lane gave it back.
    pub fn take_handed(&self) -> Option<(u64, H)> {
        let mut state = self.state.lock();
        let front = state.slots.front_mut().filter(|slot| matches!(slot, Slot::Handed(_)))?;
        let Slot::Handed(handed) = std::mem::replace(front, Slot::Waiting) else { return None };
        state.handed -= 1;
        Some((state.first, *handed))
    }

    /// The unit at the front, which the session's task has dealt with, is done.
    pub fn finish_front(&self) {
        self.state.lock().pop();
    }

    /// Nobody wants answers any more.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.slots.clear();
        state.out = BytesMut::new();
        state.kept = 0;
        state.charge();
    }
}

impl<H> State<H> {
    /// Takes off the first slot and all that are answered behind it.
    fn pop(&mut self) {
        self.slots.pop_front();
        self.first += 1;
        while let Some(Slot::Answered(_)) = self.slots.front() {
            if let Some(Slot::Answered(bytes)) = self.slots.pop_front() {
                self.kept -= bytes.len();
                self.out.extend_from_slice(&bytes);
            }
            self.first += 1;
        }
    }

    /// Whether answers of so many bytes more would have to wait until the client has read some.
    fn is_full(&self, more: usize) -> bool {
        let bytes = self.out.len() + self.kept + more;
        let most =
            if budget::is_exhausted() { limits::SESSION_BUFFER_BYTES } else { limits::UNREAD_BYTES_MAX };
        bytes >= most
    }

    fn charge(&mut self) {
        self.budget.charge(self.out.len() + self.kept);
    }

    /// Gives back the memory of a large answer once it is gone, and to the budget what was written.
    fn shrink(&mut self) {
        self.charge();
        if self.out.is_empty() && self.out.capacity() > limits::SESSION_BUFFER_BYTES {
            self.out = BytesMut::new();
        }
    }
}
