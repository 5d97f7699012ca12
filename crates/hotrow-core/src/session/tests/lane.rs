//! The I/O of a simulated lane: runs its batches on a backend, one statement at a time, and answers or returns
//! the units. The lane itself is the real one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_wire::backend::{Problem, tag};
use hotrow_wire::frontend::{self, Named};
use hotrow_wire::split;

use super::environment::{Delivery, LANES, Shared, SimEnvelope, SimReturned, SimStatement};
use super::postgres::{Backend, Database};
use crate::lane::{Action, Batch, Doubt, Event, Failure, Lane, LaneKind, Outcome, Refusal, Unit};
use crate::session::{RunOutcome, Statement};

/// A part of a batch on the connection.
enum Part {
    /// The statement, and its messages.
    Statement(Arc<SimStatement>, Bytes),
    /// The transaction's ID is asked for.
    Xid,
    Sync,
}

/// A lane and its connection.
pub struct LaneTask {
    pub number: usize,
    kind: LaneKind,
    lane: Lane<SimEnvelope>,
    pub backend: Option<Backend>,
    parts: VecDeque<Part>,
    /// The replies to the statements of each batch, and its transaction.
    replies: BTreeMap<u64, (Vec<Bytes>, Option<u64>)>,
    wants_connection: bool,
    asked: Option<Doubt>,
    /// The earliest batch has failed: the server skips the rest of it.
    skips: bool,
}

impl LaneTask {
    pub fn new(number: usize) -> Self {
        let kind = if number < LANES { LaneKind::Write } else { LaneKind::Read };
        LaneTask {
            number,
            kind,
            lane: Lane::new(kind),
            backend: None,
            parts: VecDeque::new(),
            replies: BTreeMap::new(),
            wants_connection: false,
            asked: None,
            skips: false,
        }
    }

    /// Whether there is work besides the inbox.
    pub fn has_work(&self) -> bool {
        self.wants_connection || self.asked.is_some() || self.backend.is_some() && !self.parts.is_empty()
    }

    /// Does the next work on the connection.
    pub fn work(&mut self, database: &mut Database, shared: &Shared) {
        if std::mem::take(&mut self.wants_connection) {
            self.backend = Some(Backend::new("", ""));
            return self.step(Event::Connected, shared);
        }
        if let Some(doubt) = self.asked.take() {
            let (_, xid) = self.earliest();
            let xid = *xid;
            let is_committed = xid.is_some_and(|xid| database.committed.contains(&xid));
            let outcome = match doubt {
                _ if !is_committed => Outcome::Aborted,
                Doubt::Id(_) => Outcome::Committed,
                Doubt::IdAfter(_) => Outcome::Unknown,
            };
            return self.step(Event::Resolved(outcome), shared);
        }
        match self.parts.pop_front() {
            Some(Part::Statement(statement, messages)) if !self.skips => {
                let event = self.run(&statement, &messages, database);
                self.step(event, shared);
            }
            Some(Part::Xid) if !self.skips => {
                let xid = self.backend.as_ref().and_then(Backend::xid);
                self.earliest().1 = xid;
                self.step(Event::TransactionId(xid), shared);
            }
            Some(Part::Sync) => {
                self.sync(database);
                self.skips = false;
                self.step(Event::Ready, shared);
            }
            Some(_) | None => {}
        }
    }

    /// The results so far of the earliest batch under way.
    fn earliest(&mut self) -> &mut (Vec<Bytes>, Option<u64>) {
        let number = self.lane.under_way().front().expect("a batch is under way").number;
        self.replies.entry(number).or_default()
    }

    fn sync(&mut self, database: &mut Database) {
        let backend = self.backend.as_mut().expect("parts are on a connection");
        backend.input.extend_from_slice(frontend::SYNC);
        while backend.step(database) {}
        backend.output.clear();
    }

    /// The connection is lost, perhaps after the server has committed.
    pub fn cut(&mut self, commits: bool, database: &mut Database, shared: &Shared) {
        if self.backend.is_none() {
            return;
        }
        if commits && matches!(self.parts.front(), Some(Part::Sync)) {
            self.sync(database);
        }
        if let Some(mut backend) = self.backend.take() {
            backend.die(database);
        }
        self.parts.clear();
        self.skips = false;
        self.asked = None;
        self.step(Event::Lost, shared);
    }

    fn run(
        &mut self,
        statement: &SimStatement,
        messages: &Bytes,
        database: &mut Database,
    ) -> Event<SimEnvelope> {
        let backend = self.backend.as_mut().expect("parts are on a connection");
        let name = str::from_utf8(&statement.name).expect("the gateway's name");
        if !backend.statements.contains_key(name) {
            Named { statement: true, name: &statement.name }.put(frontend::tag::CLOSE, &mut backend.input);
            statement.put_parse(&statement.name, &mut backend.input);
        }
        backend.input.extend_from_slice(messages);
        backend.input.extend_from_slice(frontend::FLUSH);
        while backend.step(database) {}
        let output = backend.output.split();
        let (mut reply, mut rest) = (BytesMut::new(), &output[..]);
        while let Some(frame) = split(rest, |_| usize::MAX).expect("valid") {
            rest = &rest[frame.bytes.len()..];
            match frame.tag {
                tag::ERROR => {
                    self.skips = true;
                    return Event::Failed(Failure::Error);
                }
                tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE => {}
                _ => reply.extend_from_slice(frame.bytes),
            }
        }
        self.earliest().0.push(reply.freeze());
        Event::Answered
    }

    /// The lane processes an event, and its actions are performed.
    pub fn step(&mut self, event: Event<SimEnvelope>, shared: &Shared) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut actions = Vec::new();
            self.lane.step(event, &mut actions);
            for action in actions {
                self.perform(action, shared, &mut events);
            }
        }
    }

    fn perform(
        &mut self,
        action: Action<SimEnvelope>,
        shared: &Shared,
        events: &mut VecDeque<Event<SimEnvelope>>,
    ) {
        match action {
            Action::Connect => self.wants_connection = true,
            Action::Disconnect => self.backend = None,
            Action::Resolve(doubt) => self.asked = Some(doubt),
            Action::Write(number) => {
                let batch = self.lane.batch(number).expect("just cut");
                for run in batch.units.iter().flat_map(|unit| {
                    unit.payload.unit.runs().map(|run| (run.statement.clone(), unit.payload.unit.frames(run)))
                }) {
                    self.parts.push_back(Part::Statement(run.0, Bytes::copy_from_slice(run.1)));
                }
                self.parts.extend([Part::Xid, Part::Sync]);
                events.push_back(Event::Written(number));
            }
            Action::Answer(batch) => self.answer(batch, shared),
            Action::Alone(unit, _) => {
                unit.payload.unit.runs().for_each(|run| run.statement.count(RunOutcome::Failed));
                self.give_back(unit, SimReturned::Alone, shared);
            }
            Action::Return(unit) => self.give_back(unit, SimReturned::Resubmit, shared),
            Action::Refuse(units, refusal) => {
                assert_eq!(refusal, Refusal::OutcomeUnknown, "nothing else is refused here");
                let problem = Problem::error("08007", "unknown", "");
                for unit in units {
                    let envelope = self.leave(unit, shared);
                    shared.deliver(envelope, |envelope| envelope.refusal(&problem));
                }
            }
        }
    }

    fn answer(&mut self, batch: Batch<SimEnvelope>, shared: &Shared) {
        let (replies, _) = self.replies.remove(&batch.number).unwrap_or_default();
        let mut replies = replies.iter();
        for unit in batch.units {
            let envelope = self.leave(unit, shared);
            let of_unit: Vec<&[u8]> =
                replies.by_ref().take(envelope.unit.runs().count()).map(|reply| &reply[..]).collect();
            let mut reply = BytesMut::new();
            envelope.unit.put_answer(of_unit.into_iter(), &[], &mut reply);
            shared.deliver(envelope, |envelope| Delivery::Reply(envelope.slot, reply));
        }
    }

    fn give_back(
        &mut self,
        unit: Unit<SimEnvelope>,
        returned: impl FnOnce(SimEnvelope) -> SimReturned,
        shared: &Shared,
    ) {
        let envelope = self.leave(unit, shared);
        shared.deliver(envelope, |envelope| Delivery::Returned(envelope.slot, returned(envelope)));
    }

    /// A unit leaves the lane.
    fn leave(&self, unit: Unit<SimEnvelope>, shared: &Shared) -> SimEnvelope {
        let lane = self.number % LANES;
        shared.affinity[self.kind as usize].borrow_mut().release(lane, unit.keys());
        let Unit { claims, mut payload, .. } = unit;
        payload.unit.claims = claims;
        payload
    }
}
