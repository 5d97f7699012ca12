//! A simulated world: sessions, lanes with their I/O, connections and one server. It lists the possible moves and
//! performs one at a time. The choice of moves and faults is made elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use super::backend::Backend;
use super::history::{History, Work};
use super::model::Statement;
use super::server::{Lock, Server, Txn};
use super::sessions::{Session, State};
use super::wire::Wire;
use hotrow_core::witness::{Continuity, Mark, Question, XactStatus, believe, believe_none_committed};
use hotrow_lane::affinity::Affinity;
use hotrow_lane::lane::{Claimed, Event, Failure, LaneKind, Outcome, Reads, Unit};

/// One step of one actor. The number identifies a session, a lane or a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A session submits its next unit.
    Submit(usize),
    /// A session handles a returned unit: it runs the unit alone, or submits it again.
    Turn(usize),
    /// A lane processes submitted units.
    Take(usize),
    /// A lane's I/O passes one frame to the operating system.
    Write(usize),
    /// A backend receives one frame.
    Serve(usize),
    /// A backend stops waiting for a lock.
    TimeOut(usize),
    /// One message arrives at a lane, or the end of the connection.
    Deliver(usize),
    Connect(usize),
    /// The outcome of a transaction is reported.
    Resolve(usize),
    /// A lane has held its next batch back for long enough.
    HoldOver(usize),
}

/// The rules for trusting the server's answers. A test can replace them with wrong ones.
#[derive(Clone, Copy, Debug)]
pub struct TrustRules {
    pub id: fn(u64, XactStatus, Continuity) -> Option<Outcome>,
    pub none_committed: fn(bool) -> Outcome,
}

impl Default for TrustRules {
    fn default() -> Self {
        TrustRules { id: believe, none_committed: believe_none_committed }
    }
}

#[derive(Debug, Default)]
pub struct World {
    pub server: Server,
    pub backends: Vec<Backend>,
    pub wires: Vec<Wire>,
    pub sessions: Vec<Session>,
    pub history: History,
    /// Locks that outsiders hold.
    pub outsiders: Vec<(Lock, Txn)>,
    pub steps: usize,
    /// The moves so far, if they are to be printed.
    pub trace: Option<Vec<String>>,
    affinity: BTreeMap<(usize, bool), Affinity>,
    pub rules: TrustRules,
    /// Lanes have marks.
    pub marks: bool,
    /// Connections set their marks to bare IDs, without a secret number. This is wrong.
    pub bare_marks: bool,
    /// The rows are on another server than the one that the lanes are connected to, as on a node that no longer has the
    /// shard. The server that the lanes ask then has no transaction ID for changes.
    pub elsewhere: bool,
    /// An error undoes its statement only, as on MariaDB.
    pub undoes_statements: bool,
    /// How long the server takes for a commit, if that is long.
    pub commits_take: Option<Duration>,
    /// The last batch of each unit.
    pub last_batch: BTreeMap<usize, usize>,
}

impl World {
    /// A gateway with this number of lanes of each kind.
    pub fn add_gateway(&mut self, lanes: usize) -> usize {
        let gateway = self.affinity.len() / 2;
        for kind in [LaneKind::Write, LaneKind::Read] {
            self.affinity.insert((gateway, kind == LaneKind::Read), Affinity::new(lanes));
            self.wires.extend((0..lanes).map(|_| Wire::new(gateway, kind)));
        }
        gateway
    }

    pub fn add_session(&mut self, gateway: usize, depth: usize) -> usize {
        self.sessions.push(Session::new(gateway, depth));
        self.sessions.len() - 1
    }

    pub fn add_unit(&mut self, work: Work) -> usize {
        let unit = self.history.units.len();
        self.sessions[work.session].unsent.push_back(unit);
        self.history.units.push(work);
        unit
    }

    /// Makes a unit one of two statements.
    pub fn add_second(&mut self, unit: usize, work: Work) {
        self.history.units[unit].then = Some(self.history.units.len());
        self.history.units.push(work);
    }

    pub fn statements(&self, unit: usize) -> Vec<(usize, Statement)> {
        self.history.parts(unit).map(|part| (part, self.history.units[part].statement)).collect()
    }

    /// All possible next moves without faults.
    pub fn moves(&mut self, moves: &mut Vec<Move>) {
        moves.clear();
        for session in 0..self.sessions.len() {
            if self.can_submit(session) {
                moves.push(Move::Submit(session));
            }
            let its_turn = match self.sessions[session].front() {
                Some((unit, _, State::Alone(..))) => {
                    !self.statements(unit).iter().any(|(_, one)| self.server.must_wait(None, *one))
                }
                front => matches!(front, Some((_, _, State::Returned(_)))),
            };
            if its_turn {
                moves.push(Move::Turn(session));
            }
        }
        for (lane, wire) in self.wires.iter().enumerate() {
            let backend = wire.backend.map(|backend| &self.backends[backend]);
            let resolvable = self.outcome(wire).is_some();
            let possible = [
                (!wire.inbox.is_empty(), Move::Take(lane)),
                (!wire.unwritten.is_empty(), Move::Write(lane)),
                (backend.is_some_and(|end| end.dead || !end.output.is_empty()), Move::Deliver(lane)),
                (wire.wanted, Move::Connect(lane)),
                (resolvable, Move::Resolve(lane)),
                (wire.holds, Move::HoldOver(lane)),
            ];
            moves.extend(possible.iter().filter(|(possible, _)| *possible).map(|(_, one)| *one));
        }
        for (number, backend) in self.backends.iter().enumerate().filter(|(_, backend)| backend.has_work()) {
            let waits = backend.waits(&self.server, &self.history.units);
            moves.push(if waits { Move::TimeOut(number) } else { Move::Serve(number) });
        }
    }

    pub fn perform(&mut self, next: Move) {
        match next {
            Move::Submit(session) => self.submit(session),
            Move::Turn(session) => self.turn(session),
            Move::Take(lane) => {
                for event in std::mem::take(&mut self.wires[lane].inbox) {
                    self.step(lane, event);
                }
                if self.wires[lane].slow.is_some() {
                    self.step(lane, Event::Slow);
                }
            }
            Move::Write(lane) => self.write(lane),
            Move::Serve(backend) => self.backends[backend].serve(&mut self.server, &self.history.units),
            Move::TimeOut(backend) => {
                self.backends[backend].give_up(&mut self.server, &self.history.units, Failure::Blocked)
            }
            Move::Deliver(lane) => self.deliver(lane),
            Move::Connect(lane) => {
                let number = self.mark(lane);
                let mark = number.map(|number| self.take_mark(lane, number));
                let wire = &mut self.wires[lane];
                wire.wanted = false;
                wire.marked_by = Some(self.backends.len());
                wire.backend = Some(self.backends.len());
                let mark_and_base = number.zip(mark.as_ref().map(|mark| mark.base));
                self.backends.push(Backend::new(mark_and_base, self.elsewhere, self.undoes_statements));
                wire.now = Some(self.server.identity(mark));
                self.step(lane, Event::Connected);
            }
            Move::HoldOver(lane) => {
                self.wires[lane].holds = false;
                self.step(lane, Event::HoldOver);
            }
            Move::Resolve(lane) => {
                if let Some(outcome) = self.outcome(&self.wires[lane]) {
                    self.resolve(lane, outcome);
                }
            }
        }
    }

    /// The mark of a lane's next connection: the mark of the last one if its backend has ended.
    fn mark(&self, lane: usize) -> Option<usize> {
        let wire = &self.wires[lane];
        let last = wire.marked_by.map(|backend| &self.backends[backend]).filter(|backend| backend.dead);
        let mark = last.and_then(|backend| backend.mark).map_or(self.backends.len(), |(mark, _)| mark);
        (self.marks && wire.kind == LaneKind::Write).then_some(mark)
    }

    /// A new connection of a lane takes this mark.
    fn take_mark(&mut self, lane: usize, number: usize) -> Mark {
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15; // makes different numbers of all numbers
        let base = match self.bare_marks {
            true => 0,
            false => Mark::base((self.backends.len() as u64 + 1).wrapping_mul(SPREAD)),
        };
        let earlier = self.wires[lane].before.as_ref().and_then(|server| server.mark.as_ref());
        let mark = Mark::taken(number.to_string(), String::new(), self.server.mark(number), base, earlier);
        if mark.start != mark.found {
            self.server.stamp(number, mark.start);
        }
        mark
    }

    /// The outcome for a lane that asks. `None` if it has to wait.
    fn outcome(&self, wire: &Wire) -> Option<Outcome> {
        let (question, continuity) = wire.question()?;
        match question {
            Question::Nothing(outcome) => Some(outcome),
            Question::Status(id) => (self.rules.id)(id, self.server.xact_status(id), continuity),
            Question::AnyCommitted(mut ids) => {
                let none_is = ids.all(|id| self.server.xact_status(id) == XactStatus::Aborted);
                Some((self.rules.none_committed)(none_is))
            }
        }
    }

    /// Reports the outcome of a transaction to the lane that asked.
    pub fn resolve(&mut self, lane: usize, outcome: Outcome) {
        if self.wires[lane].asked.take().is_some() {
            if let Some(batch) = self.wires[lane].lane.under_way().front().map(|batch| batch.number) {
                self.evidence(lane, batch).resolved = Some(outcome);
            }
            self.step(lane, Event::Resolved(outcome));
        }
    }

    /// Cuts a lane's connection. The server still receives `keep` of the frames under way, and then the end.
    pub fn cut(&mut self, lane: usize, keep: usize) {
        if let Some(backend) = self.wires[lane].disconnect() {
            self.backends[backend].input.truncate(keep);
            self.backends[backend].client_gone = true;
            self.step(lane, Event::Lost);
        }
    }

    /// An attempt to connect fails.
    pub fn fail_to_connect(&mut self, lane: usize, give_up: bool) {
        if !std::mem::take(&mut self.wires[lane].wanted) {
            return;
        }
        if give_up {
            self.history.gave_up = true;
            let numbers: Vec<_> =
                self.wires[lane].lane.under_way().iter().map(|batch| batch.number).collect();
            numbers.into_iter().for_each(|number| self.evidence(lane, number).gave_up = true);
        }
        self.step(lane, Event::ConnectFailed { give_up });
    }

    /// The client of a session cancels its earliest unit.
    pub fn cancel(&mut self, session: usize) {
        if let Some((_, lane, State::InLane)) = self.sessions[session].front() {
            self.history.cancels.insert(session);
            self.wires[lane].inbox.push_back(Event::Cancel(session as u64));
        }
    }

    /// A session waits no longer for another one that waits for a lock.
    pub fn impatient(&mut self, session: usize) {
        if let Some((_, lane, State::InLane)) = self.sessions[session].front() {
            self.wires[lane].inbox.push_back(Event::Impatient(session as u64));
        }
    }

    /// A lane's earliest batch takes long. Waiting units leave the lane, and new ones avoid it.
    pub fn slow(&mut self, lane: usize) {
        let wire = &mut self.wires[lane];
        let front = wire.lane.under_way().front().map(|batch| batch.number);
        if wire.backend.is_none() || wire.slow.is_some() || front.is_none() {
            return;
        }
        wire.slow = front;
        self.set_slow(lane, true);
        self.step(lane, Event::Slow);
    }

    /// The slow batch is done.
    pub fn end_slow(&mut self, lane: usize) {
        let wire = &mut self.wires[lane];
        let front = wire.lane.under_way().front().map(|batch| batch.number);
        if wire.slow.is_some() && wire.slow != front {
            wire.slow = None;
            self.set_slow(lane, false);
        }
    }

    fn set_slow(&mut self, lane: usize, slow: bool) {
        let Wire { gateway, kind, .. } = self.wires[lane];
        let first = self.wires.iter().position(|wire| wire.gateway == gateway && wire.kind == kind);
        if let (Some(first), Some(affinity)) =
            (first, self.affinity.get_mut(&(gateway, kind == LaneKind::Read)))
        {
            affinity.set_slow(lane - first, slow);
        }
    }

    /// The server finds that the next statement of a lane's backend takes too long.
    pub fn stall(&mut self, lane: usize) {
        if let Some(backend) = self.wires[lane].backend {
            self.backends[backend].stall(&mut self.server, &self.history.units);
        }
    }

    fn can_submit(&mut self, session: usize) -> bool {
        let Some(unit) = self.sessions[session].next() else { return false };
        if self.sessions[session].lane().is_none() {
            return true;
        }
        let lane = self.route(session, unit, self.sessions[session].lane());
        lane.inspect(|lane| self.release(*lane, unit)).is_some()
    }

    /// Chooses the lane for a session's unit. With units under way, only their lane is possible.
    pub fn route(&mut self, session: usize, unit: usize, only: Option<usize>) -> Option<usize> {
        let kind = self.history.units[unit].kind;
        let gateway = self.sessions[session].gateway;
        let first = self.wires.iter().position(|wire| wire.gateway == gateway && wire.kind == kind)?;
        let only = match only {
            Some(lane) if self.wires[lane].kind != kind => return None,
            lane => lane.map(|lane| lane - first),
        };
        let affinity = self.affinity.get_mut(&(gateway, kind == LaneKind::Read))?;
        let claims = self.history.claims(unit);
        affinity.assign(claims.iter().map(|claim| claim.key), only).map(|place| first + place)
    }

    /// A unit has left its lane.
    pub fn release(&mut self, lane: usize, unit: usize) {
        let Wire { gateway, kind, .. } = self.wires[lane];
        let first = self.wires.iter().position(|wire| wire.gateway == gateway && wire.kind == kind);
        if let (Some(first), Some(affinity)) =
            (first, self.affinity.get_mut(&(gateway, kind == LaneKind::Read)))
        {
            let claims = self.history.claims(unit);
            affinity.release(lane - first, claims.iter().map(|claim| claim.key));
        }
    }

    fn submit(&mut self, session: usize) {
        let Some(unit) = self.sessions[session].next() else { return };
        let only = self.sessions[session].lane();
        let lane = self.route(session, unit, only);
        self.sessions[session].send(lane.unwrap_or(0));
        self.history.submitted.push(unit);
        let Work { rows_per_commit, merge, bytes, takes_any, then, .. } = self.history.units[unit];
        let claimed = Claimed {
            key: self.history.least_key(unit),
            rows_per_commit,
            merge,
            may_wait: false,
            may_leave: self.undoes_statements && self.history.units[unit].may_leave(),
            lockable: self.history.units[unit].is_lockable(),
            takes_any,
            reads: Reads::Nothing,
            statements: self.history.parts(unit).count() as u16,
            claims: then.map(|_| self.history.claims(unit).into()).unwrap_or_default(),
            bytes,
        };
        let unmeasured = unit % 10 == 7;
        let made = Unit { unmeasured, ..Unit::new(session as u64, only.is_none(), claimed, unit) };
        match lane {
            Some(lane) => self.wires[lane].inbox.push_back(Event::Submit(made)),
            // Its rows are in another lane than its session.
            None => self.note(unit, State::Alone(made, None)),
        }
    }
}
