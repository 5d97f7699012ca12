//! What simulated sessions wait for: connections, their turn on a row, something to take, and a replica. A cancel request may
//! come at any time.

use bytes::BytesMut;
use hotrow_wire::backend::Problem;

use super::envelope::SimEnvelope;
use super::environment::{BOXES, SimPlace};
use super::leaving::Fate;
use super::program::BOX;
use super::replicas::Search;
use super::world::World;
use crate::row_queue::{Request, Turn};
use crate::session::{CallEnd, CallEvent, CallTimer, WaitsFor, cancelled};
use crate::waiting::{Entered, Ticket};

/// What a session waits for.
pub enum Wait {
    Connection,
    Turn(Request),
    Call(Box<Call>),
    /// A replica. A cancel request during this wait goes to the lanes, which have nothing of the session.
    Replica(Search),
}

/// A call that found nothing.
pub struct Call {
    call: CallTimer<u64>,
    envelope: SimEnvelope,
    empty: BytesMut,
    ticket: Ticket,
    is_woken: bool,
}

/// The longest wait of a call, in steps of the world.
const WAIT_MAX: u64 = 2_000;

impl World {
    /// Whether a session that needs something has to wait for it.
    fn has_to_wait(&mut self) -> bool {
        self.waits && self.random.u8(..3) == 0
    }

    pub(super) fn begin_wait(&mut self, number: usize, wait: Wait) {
        let client = &mut self.clients[number];
        let waits_for = match wait {
            Wait::Connection => Some(WaitsFor::Connection),
            Wait::Turn(_) => Some(WaitsFor::Row),
            Wait::Call(_) => Some(WaitsFor::Answer),
            Wait::Replica(_) => None,
        };
        if let Some(waits_for) = waits_for {
            let (first, last) = client.answers.borrow().slots();
            client.cancel.borrow_mut().waits(waits_for, last.map(|_| first));
        }
        client.wait = Some(wait);
    }

    pub(super) fn need_connection(&mut self, number: usize) {
        match self.has_to_wait() {
            _ if self.shared.refuses() => {
                let problem = Problem::error("57P03", "no connection", "");
                self.clients[number].session.no_connection(problem);
            }
            true => self.begin_wait(number, Wait::Connection),
            false => self.connect(number),
        }
    }

    pub(super) fn need_turn(&mut self, number: usize, request: Request) {
        match self.has_to_wait() {
            true => self.begin_wait(number, Wait::Turn(request)),
            false => self.place(number, request),
        }
    }

    fn place(&mut self, number: usize, request: Request) {
        let shared = self.shared.clone();
        assert_eq!(shared.rows.borrow_mut().join(request), Turn::Works, "clients use separate rows");
        let queue = request.queue;
        self.clients[number].session.placed(queue, SimPlace { shared, queue, others: None });
    }

    /// A lane has given back a call that found nothing.
    pub(super) fn wait_with_call(&mut self, number: usize, envelope: SimEnvelope, empty: BytesMut) {
        let (key, mark) = (envelope.unit.key.expect("of a row"), envelope.mark.expect("it was sent"));
        let entered = self.shared.waiting.borrow_mut().enter(key, mark, number);
        match entered {
            Entered::Waits(ticket) => {
                let (again, longest) = (self.random.u64(..WAIT_MAX), self.random.u64(..WAIT_MAX));
                let call = CallTimer::new(self.clock + again, self.clock + longest);
                let call = Call { call, envelope, empty, ticket, is_woken: false };
                self.begin_wait(number, Wait::Call(Box::new(call)));
            }
            Entered::Again => self.clients[number].session.call_ended(envelope, CallEnd::Retry, &empty),
            Entered::Full => unreachable!("few clients"),
        }
    }

    /// A session that waits goes on, or not yet.
    pub(super) fn wait_turn(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let is_cancelled = client.cancel.borrow().is_cancelled();
        let Some(wait) = client.wait.take() else { return };
        match wait {
            // A connection may be there before the session sees that it is cancelled.
            Wait::Connection if is_cancelled && self.random.bool() => {
                client.cancel.borrow_mut().wait_over();
                client.session.no_connection(cancelled());
            }
            Wait::Connection if self.random.u8(..4) == 0 => self.connect(number),
            Wait::Turn(request) if is_cancelled || self.random.u8(..4) == 0 => {
                let is_cancelled = client.cancel.borrow_mut().wait_over();
                match is_cancelled {
                    true => client.session.no_connection(cancelled()),
                    false => self.place(number, request),
                }
            }
            Wait::Call(mut call) => {
                let has_left = matches!(client.fate, Some(Fate::Closes | Fate::Disappears));
                let event = match is_cancelled {
                    _ if client.session.ends_calls(self.stage) => CallEvent::Stops,
                    true => CallEvent::Cancelled,
                    false if has_left => {
                        client.session.client_left();
                        CallEvent::ClientLeft
                    }
                    false if call.is_woken => CallEvent::Woken,
                    false => {
                        let paused = (self.random.u8(..4) == 0).then_some(self.clock + 10);
                        CallEvent::Time { now: self.clock, paused }
                    }
                };
                let Some(end) = call.call.step(event) else {
                    client.wait = Some(Wait::Call(call));
                    return;
                };
                self.shared.waiting.borrow_mut().leave(call.ticket);
                let end = if client.cancel.borrow_mut().wait_over() { CallEnd::Cancelled } else { end };
                client.session.call_ended(call.envelope, end, &call.empty);
            }
            Wait::Replica(search) if self.random.bool() => self.seek(number, search),
            wait => client.wait = Some(wait),
        }
    }

    /// Another client puts something into a client's box. The notification arrives later.
    pub(super) fn give(&mut self) {
        let client = self.random.usize(..self.clients.len());
        let row = 10 * client as u64 + BOX;
        if self
            .backends
            .iter()
            .chain(self.lanes.iter().filter_map(|lane| lane.backend.as_ref()))
            .any(|backend| backend.has_changed(row))
        {
            return; // it waits for the row
        }
        self.gifts -= 1;
        self.database.set(row, self.database.value(row) + 1);
        self.clients[client].given += 1;
        self.notifications.push_back(format!("{BOXES} {row}"));
    }

    /// The notification of a gift arrives. False if none is on its way.
    pub(super) fn notify(&mut self) -> bool {
        let Some(payload) = self.notifications.pop_front() else { return false };
        for number in self.shared.waiting.borrow_mut().notified(&payload) {
            if let Some(Wait::Call(call)) = &mut self.clients[number].wait {
                call.is_woken = true;
            }
        }
        true
    }
}
