//! What simulated sessions wait for: connections, their turn on a row, something to take, verdicts, pools, notifications, and a
//! replica. A cancel request may come at any time.

use std::sync::Arc;

use bytes::BytesMut;
use hotrow_lane::cancel::WaitsFor;
use hotrow_lane::row_queue::{Request, Turn};
use hotrow_lane::waiting::{Entered, Ticket};
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use super::client::Client;
use super::envelope::SimEnvelope;
use super::environment::{SimEnvironment, SimPlace, SimStatement};
use super::leaving::Fate;
use super::packing::BOXES;
use super::program::BOX;
use super::replicas::Search;
use super::world::World;
use crate::session::{CallEnd, CallEvent, CallTimer, Need};
use crate::settings::Settings;

/// What a session waits for.
pub enum Wait {
    Connection,
    Turn(Request),
    Call(Box<Call>),
    Verdict(Arc<SimStatement>),
    Pool(Settings),
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

impl Client {
    /// Its session has come to this need.
    pub(super) fn is_at(&self, need: &Need<SimEnvironment>) {
        let mut cancel = self.cancel.borrow_mut();
        match need {
            Need::Event | Need::Reply | Need::Lanes => {
                cancel.at_events();
            }
            _ => cancel.busy(),
        }
    }

    /// Whether no cancel request is on its way to the backend that this need uses, or leaves.
    pub(super) fn is_quiet_for(&self, need: &Need<SimEnvironment>) -> bool {
        let mut cancel = self.cancel.borrow_mut();
        if matches!(need, Need::Release { .. }) { cancel.leaves() } else { cancel.is_quiet() }
    }

    fn begins_to_wait(&self, waits_for: WaitsFor) {
        let (first, last) = self.answers.borrow().slots();
        let _ = self.cancel.borrow_mut().waits(waits_for, last.map(|_| first));
    }
}

impl World {
    /// Whether a session that needs something has to wait for it.
    fn has_to_wait(&mut self) -> bool {
        self.waits && self.random.u8(..3) == 0
    }

    pub(super) fn begin_wait(&mut self, number: usize, wait: Wait) {
        let client = &mut self.clients[number];
        let waits_for = match wait {
            Wait::Connection | Wait::Pool(_) => WaitsFor::Connection,
            Wait::Turn(_) => WaitsFor::Row,
            Wait::Call(_) => WaitsFor::Answer,
            Wait::Verdict(_) => WaitsFor::Catalog,
            Wait::Replica(_) => WaitsFor::Replica,
        };
        client.begins_to_wait(waits_for);
        client.wait = Some(wait);
    }

    pub(super) fn need_verdict(&mut self, number: usize, statement: Arc<SimStatement>) {
        if self.has_to_wait() {
            return self.begin_wait(number, Wait::Verdict(statement));
        }
        let verdict = statement.decide();
        self.clients[number].session.decided(statement, verdict);
    }

    pub(super) fn need_pool(&mut self, number: usize, settings: Settings) {
        match self.has_to_wait() {
            true => self.begin_wait(number, Wait::Pool(settings)),
            false => self.enter_pool(number, &settings),
        }
    }

    /// A session waits for notifications. If it has a connection, its unit has been answered there, and a cancel request finds
    /// nothing.
    pub(super) fn begin_catching_up(&mut self, number: usize) {
        let client = &mut self.clients[number];
        if client.session.connection().is_none() {
            client.begins_to_wait(WaitsFor::Notifications);
        }
        client.catches_up = Some(self.listener.catch_up(number));
    }

    pub(super) fn give_up_catching_up(&mut self, number: usize) {
        let client = &mut self.clients[number];
        client.catches_up = None;
        client.cancel.borrow_mut().wait_over();
        client.session.wait_cancelled();
    }

    pub(super) fn need_connection(&mut self, number: usize) {
        match self.has_to_wait() {
            _ if self.shared.refuses() => {
                let problem = Problem::error(SqlState::CannotConnectNow, "no connection", "");
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
        let (key, mark) =
            (envelope.unit.claimed.key.expect("of a row"), envelope.notified.expect("it was sent"));
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
            Wait::Connection | Wait::Turn(_) | Wait::Verdict(_) | Wait::Pool(_) | Wait::Replica(_)
                if is_cancelled =>
            {
                client.cancel.borrow_mut().wait_over();
                client.session.wait_cancelled();
            }
            Wait::Connection | Wait::Turn(_) | Wait::Verdict(_) | Wait::Pool(_)
                if self.random.u8(..4) == 0 =>
            {
                client.cancel.borrow_mut().wait_over();
                match wait {
                    Wait::Turn(request) => self.place(number, request),
                    Wait::Verdict(statement) => {
                        let verdict = statement.decide();
                        client.session.decided(statement, verdict);
                    }
                    Wait::Pool(settings) => self.enter_pool(number, &settings),
                    _ => self.connect(number),
                }
            }
            Wait::Call(mut call) => {
                let has_left = matches!(client.fate, Some(Fate::Closes | Fate::Disappears));
                let event = match has_left {
                    _ if client.session.ends_calls(self.stage) => CallEvent::Stops,
                    true => {
                        client.session.client_left();
                        CallEvent::ClientLeft
                    }
                    false if call.is_woken => CallEvent::Woken,
                    false => {
                        let paused = (self.random.u8(..4) == 0).then_some(self.clock + 10);
                        CallEvent::Time { now: self.clock, paused }
                    }
                };
                let end = if is_cancelled { Some(CallEnd::Cancelled) } else { call.call.step(event) };
                let Some(end) = end else {
                    client.wait = Some(Wait::Call(call));
                    return;
                };
                self.shared.waiting.borrow_mut().leave(call.ticket);
                client.cancel.borrow_mut().wait_over();
                client.session.call_ended(call.envelope, end, &call.empty);
            }
            Wait::Replica(search) if self.random.bool() => {
                self.seek(number, search);
            }
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
        let (space, key) = crate::key::notified(&payload).expect("a space and a key");
        for number in self.shared.waiting.borrow_mut().notified(space, key) {
            if let Some(Wait::Call(call)) = &mut self.clients[number].wait {
                call.is_woken = true;
            }
        }
        true
    }
}
