//! The I/O of a simulated lane: runs its batches on a backend, one statement at a time, and answers or returns
//! the units. The lane itself is the real one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hotrow_lane::lane::{
    Action, Batch, Changes, Doubt, Event, Failure, Lane, LaneKind, Outcome, Refusal, Times, Unit,
};
use hotrow_wire::SqlState;
use hotrow_wire::backend::{Problem, tag};
use hotrow_wire::frontend::{self, ObjectName};
use hotrow_wire::split;

use super::envelope::{Delivery, SimEnvelope, SimReturned};
use super::environment::{LANES, Shared, SimStatement};
use super::postgres::{Backend, Database};
use super::replicas::{FIRST_LANE, position};
use crate::replica::Position;
use crate::session::{RunOutcome, Statement, cancelled};

/// The end of a call that has found nothing.
const NOTHING: &[u8] = b"DELETE 0";

/// A part of a batch on the connection.
enum Part {
    /// The check that a standby has replayed the WAL up to here. None if it fails for certain.
    Replayed(Option<Position>),
    /// The statement, and its messages.
    Statement(Arc<SimStatement>, Bytes),
    /// The transaction's ID is asked for.
    Xid,
    Sync,
}

/// A lane and its connection.
pub struct LaneTask {
    pub number: usize,
    /// The standby to which it connects.
    replica: Option<usize>,
    /// The number of its connection to the standby.
    connection: u64,
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
    /// The lane holds its next batch back.
    holds: bool,
    /// Sessions that had ended when they got units back.
    gone: Vec<u64>,
}

impl LaneTask {
    pub fn new(number: usize) -> Self {
        let kind = if number < LANES { LaneKind::Write } else { LaneKind::Read };
        LaneTask {
            number,
            replica: number.checked_sub(FIRST_LANE).map(|number| number / LANES),
            connection: 0,
            kind,
            lane: Lane::new(kind),
            backend: None,
            parts: VecDeque::new(),
            replies: BTreeMap::new(),
            wants_connection: false,
            asked: None,
            skips: false,
            holds: false,
            gone: Vec::new(),
        }
    }

    /// Whether there is work besides the inbox.
    pub fn has_work(&self) -> bool {
        self.wants_connection
            || self.asked.is_some()
            || self.holds
            || self.backend.is_some() && !self.parts.is_empty()
    }

    /// Whether it connects to this standby.
    pub fn is_of_replica(&self, replica: usize) -> bool {
        self.replica == Some(replica)
    }

    /// Does the next work on the connection, to the primary or to a standby.
    pub fn work(&mut self, primary: &mut Database, shared: &Shared) {
        let Some(replica) = self.replica else { return self.work_on(primary, shared) };
        if self.wants_connection {
            if shared.happens(4) {
                self.wants_connection = false;
                return self.step(Event::ConnectFailed { give_up: true }, shared);
            }
            self.connection = shared.replicas.borrow_mut().connected();
        }
        let mut database = std::mem::take(&mut shared.replicas.borrow_mut().all[replica].database);
        self.work_on(&mut database, shared);
        shared.replicas.borrow_mut().all[replica].database = database;
    }

    fn work_on(&mut self, database: &mut Database, shared: &Shared) {
        if std::mem::take(&mut self.wants_connection) {
            if shared.refuses() {
                return self.step(Event::ConnectFailed { give_up: true }, shared);
            }
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
                if matches!(event, Event::Answered(_))
                    && let Some(place) = self.finds_nothing()
                {
                    self.step(Event::Waits(place), shared);
                }
                self.step(event, shared);
            }
            Some(Part::Replayed(position)) => {
                let replica = self.replica.expect("only lanes to standbys check them");
                let shows = position.is_some_and(|position| shared.replicas.borrow().has(replica, position));
                if !shows {
                    shared.replicas.borrow_mut().behind += 1;
                    self.skips = true;
                    self.step(Event::Failed(Failure::Behind), shared);
                }
            }
            Some(Part::Xid) if !self.skips => {
                let xid = self.backend.as_ref().and_then(Backend::xid);
                self.earliest().1 = xid;
                self.step(Event::TransactionId(xid), shared);
            }
            Some(Part::Sync) => {
                if shared.happens(4) {
                    let commit = Some(Duration::from_millis(12));
                    self.step(Event::Took(Times { commit, ..Times::default() }), shared);
                }
                self.sync(database);
                self.skips = false;
                self.step(Event::Ready, shared);
            }
            Some(_) => {}
            None => {
                if std::mem::take(&mut self.holds) {
                    self.step(Event::HoldOver, shared);
                }
            }
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
            ObjectName { statement: true, name: &statement.name }
                .put(frontend::tag::CLOSE, &mut backend.input);
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
        Event::Answered(Changes::None)
    }

    /// The place in its batch of the call that was answered last, if it has found nothing.
    fn finds_nothing(&mut self) -> Option<usize> {
        let (replies, _) = self.earliest();
        let answered = replies.len();
        replies.last().filter(|reply| reply.windows(NOTHING.len()).any(|part| part == NOTHING))?;
        let units = self.lane.under_way().front()?.units.iter().enumerate();
        let mut places = units.flat_map(|(place, unit)| unit.payload.unit.runs().map(move |_| place));
        places.nth(answered - 1)
    }

    /// The lane processes an event, and its actions are performed.
    pub fn step(&mut self, event: Event<SimEnvelope>, shared: &Shared) {
        let mut events = VecDeque::from([event]);
        if let Some(Event::Submit(_)) = events.front()
            && shared.refuses()
            && let Some(Event::Submit(unit)) = events.pop_front()
        {
            self.perform(Action::Refuse(vec![unit], Refusal::QueueFull), shared, &mut events);
        }
        while let Some(event) = events.pop_front() {
            let mut actions = Vec::new();
            self.lane.step(event, &mut actions);
            for action in actions {
                self.perform(action, shared, &mut events);
            }
            // As the real one, a lane forgets a session that it can give back nothing.
            events.extend(self.gone.drain(..).map(Event::Gone));
        }
    }

    /// Units have waited for too long in a paused lane.
    pub fn expire(&mut self, random: &mut fastrand::Rng, shared: &Shared) {
        let mut actions = Vec::new();
        self.lane.expire(|_| random.bool(), &mut actions);
        actions.into_iter().for_each(|action| self.perform(action, shared, &mut VecDeque::new()));
    }

    /// Whether it remembers that it has given back a unit of a session, and the session's units that it has.
    pub fn knows(&self, session: u64) -> (bool, usize) {
        let units = self.lane.units().filter(|(_, unit)| unit.session == session);
        (self.lane.remembers(session), units.count())
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
            Action::Hold(_) => self.holds = true,
            Action::Resolve(doubt) => self.asked = Some(doubt),
            Action::Write(number) => {
                let batch = self.lane.batch(number).expect("just cut");
                if self.replica.is_some() {
                    let envelopes = batch.units.iter().map(|unit| &unit.payload);
                    self.parts.push_back(Part::Replayed(position(envelopes, self.connection)));
                }
                for run in batch.units.iter().flat_map(|unit| {
                    unit.payload.unit.runs().map(|run| (run.statement.clone(), unit.payload.unit.frames(run)))
                }) {
                    self.parts.push_back(Part::Statement(run.0, Bytes::copy_from_slice(run.1)));
                }
                self.parts.extend([Part::Xid, Part::Sync]);
                events.push_back(Event::Written(number));
            }
            Action::Answer(batch) => self.answer(batch, shared),
            // The primary shows whether the fault is the unit's.
            Action::Alone(unit, _) if self.replica.is_some() => {
                self.give_back(unit, SimReturned::Resubmit, shared);
            }
            Action::Alone(unit, _) => {
                unit.payload.unit.runs().for_each(|run| run.statement.count(RunOutcome::Failed));
                self.give_back(unit, SimReturned::Alone, shared);
            }
            Action::Return(unit) => self.give_back(unit, SimReturned::Resubmit, shared),
            Action::Refuse(units, refusal) if self.replica.is_some() && refusal != Refusal::Cancelled => {
                units.into_iter().for_each(|unit| self.give_back(unit, SimReturned::Resubmit, shared));
            }
            Action::Refuse(units, refusal) => {
                let problem = match refusal {
                    Refusal::OutcomeUnknown => {
                        Problem::error(SqlState::TransactionResolutionUnknown, "unknown", "")
                    }
                    Refusal::NotSent | Refusal::Paused => {
                        Problem::error(SqlState::CannotConnectNow, "not sent", "")
                    }
                    Refusal::QueueFull => Problem::error(SqlState::InsufficientResources, "full", ""),
                    Refusal::Cancelled => cancelled(),
                    Refusal::WrittenElsewhere => panic!("a server has no other nodes here"),
                };
                for unit in units {
                    let envelope = self.leave(unit, shared);
                    shared.deliver(envelope, |envelope| envelope.refusal(&problem));
                }
            }
        }
    }

    fn answer(&mut self, batch: Batch<SimEnvelope>, shared: &Shared) {
        let (replies, _) = self.replies.remove(&batch.number).unwrap_or_default();
        if self.replica.is_some() {
            shared.replicas.borrow_mut().reads += batch.units.len();
        }
        let mut replies = replies.iter();
        for (place, unit) in batch.units.into_iter().enumerate() {
            if batch.waits.contains(&place) && shared.over.borrow().contains(&unit.session) {
                self.gone.push(unit.session);
            }
            let envelope = self.leave(unit, shared);
            let of_unit: Vec<&[u8]> =
                replies.by_ref().take(envelope.unit.runs().count()).map(|reply| &reply[..]).collect();
            let mut reply = BytesMut::new();
            envelope.unit.put_answer(of_unit.into_iter(), &[], &mut reply);
            shared.deliver(envelope, |envelope| match batch.waits.contains(&place) {
                true => Delivery::Returned(envelope.slot, Box::new(SimReturned::Wait(envelope, reply))),
                false => Delivery::Reply(envelope.slot, reply),
            });
        }
    }

    fn give_back(
        &mut self,
        unit: Unit<SimEnvelope>,
        returned: impl FnOnce(SimEnvelope) -> SimReturned,
        shared: &Shared,
    ) {
        if shared.over.borrow().contains(&unit.session) {
            self.gone.push(unit.session);
        }
        let envelope = self.leave(unit, shared);
        shared.deliver(envelope, |envelope| Delivery::Returned(envelope.slot, Box::new(returned(envelope))));
    }

    /// A unit leaves the lane.
    fn leave(&self, unit: Unit<SimEnvelope>, shared: &Shared) -> SimEnvelope {
        let lane = self.number % LANES;
        match self.replica {
            None => shared.affinity[self.kind as usize].borrow_mut().release(lane, unit.keys()),
            Some(replica) => {
                let replicas = shared.replicas.borrow();
                replicas.all[replica].affinity.borrow_mut().release(lane, unit.keys());
            }
        }
        let Unit { claimed, mut payload, .. } = unit;
        payload.unit.claimed = claimed;
        payload
    }
}
