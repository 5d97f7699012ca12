//! A simulated world: sessions, lanes with their shells, connections and one server. It knows which moves are possible
//! and performs one at a time; which one comes next, and what goes wrong, is decided elsewhere.

use std::collections::BTreeMap;

use super::backend::Backend;
use super::history::{History, Work};
use super::model::Statement;
use super::server::{Lock, Server, Status, Txn};
use super::sessions::{Session, State};
use super::wire::Wire;
use crate::affinity::Affinity;
use crate::lane::{Event, Kind, Outcome, Unit};

/// One step of one actor; the number is a session's, a lane's or a backend's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A session hands over its next unit.
    Submit(usize),
    /// A session deals with the unit it got back: runs it alone, or hands it over again.
    Turn(usize),
    /// A lane takes in what a session has left for it.
    Take(usize),
    /// A lane's shell hands one frame to the operating system.
    Write(usize),
    /// A backend takes in one frame.
    Serve(usize),
    /// A backend gives up waiting for a lock.
    TimeOut(usize),
    /// One message arrives at a lane, or the end of the connection.
    Deliver(usize),
    Connect(usize),
    /// What became of a transaction is told.
    Resolve(usize),
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
    /// The moves so far, where somebody wants to read them.
    pub trace: Option<Vec<String>>,
    affinity: BTreeMap<(usize, bool), Affinity>,
    /// The batch each unit was last sent in.
    pub last_batch: BTreeMap<usize, usize>,
}

impl World {
    /// A gateway with so many lanes of each kind.
    pub fn add_gateway(&mut self, lanes: usize) -> usize {
        let gateway = self.affinity.len() / 2;
        for kind in [Kind::Write, Kind::Read] {
            self.affinity.insert((gateway, kind == Kind::Read), Affinity::new(lanes));
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

    /// The statements of a unit.
    pub fn statements(&self, unit: usize) -> Vec<(usize, Statement)> {
        self.history.parts(unit).map(|part| (part, self.history.units[part].statement)).collect()
    }

    /// All that can happen next, if nothing goes wrong.
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
            let resolvable = wire.asked.is_some_and(|txn| self.server.status(txn) != Status::InProgress);
            let possible = [
                (!wire.inbox.is_empty(), Move::Take(lane)),
                (!wire.unwritten.is_empty(), Move::Write(lane)),
                (backend.is_some_and(|end| end.dead || !end.output.is_empty()), Move::Deliver(lane)),
                (wire.wanted, Move::Connect(lane)),
                (resolvable, Move::Resolve(lane)),
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
            }
            Move::Write(lane) => self.write(lane),
            Move::Serve(backend) => self.backends[backend].serve(&mut self.server, &self.history.units),
            Move::TimeOut(backend) => self.backends[backend].time_out(&mut self.server),
            Move::Deliver(lane) => self.deliver(lane),
            Move::Connect(lane) => {
                let wire = &mut self.wires[lane];
                wire.wanted = false;
                wire.backend = Some(self.backends.len());
                self.backends.push(Backend::default());
                self.step(lane, Event::Connected);
            }
            Move::Resolve(lane) => {
                let status = self.wires[lane].asked.map(|txn| self.server.status(txn));
                let committed = status == Some(Status::Committed);
                self.resolve(lane, if committed { Outcome::Committed } else { Outcome::Aborted });
            }
        }
    }

    /// Tells a lane what became of the transaction it asked about.
    pub fn resolve(&mut self, lane: usize, outcome: Outcome) {
        if self.wires[lane].asked.take().is_some() {
            if let Some(batch) = self.wires[lane].lane.under_way().front().map(|batch| batch.number) {
                self.evidence(lane, batch).resolved = Some(outcome);
            }
            self.step(lane, Event::Resolved(outcome));
        }
    }

    /// Cuts a lane's connection: of the frames on their way the server still gets so many, and then the end.
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

    /// The client of a session wants its earliest unit cancelled.
    pub fn cancel(&mut self, session: usize) {
        if let Some((_, lane, State::InLane)) = self.sessions[session].front() {
            self.history.cancels.insert(session);
            self.wires[lane].inbox.push_back(Event::Cancel(session as u64));
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

    /// Picks the lane for a session's unit; beside units on their way it can only be theirs.
    pub fn route(&mut self, session: usize, unit: usize, only: Option<usize>) -> Option<usize> {
        let kind = self.history.units[unit].kind;
        let gateway = self.sessions[session].gateway;
        let first = self.wires.iter().position(|wire| wire.gateway == gateway && wire.kind == kind)?;
        let only = match only {
            Some(lane) if self.wires[lane].kind != kind => return None,
            lane => lane.map(|lane| lane - first),
        };
        let affinity = self.affinity.get_mut(&(gateway, kind == Kind::Read))?;
        let claims = self.history.claims(unit);
        affinity.assign(claims.iter().map(|claim| claim.key), only).map(|place| first + place)
    }

    /// A unit has left its lane.
    pub fn release(&mut self, lane: usize, unit: usize) {
        let Wire { gateway, kind, .. } = self.wires[lane];
        let first = self.wires.iter().position(|wire| wire.gateway == gateway && wire.kind == kind);
        if let (Some(first), Some(affinity)) = (first, self.affinity.get_mut(&(gateway, kind == Kind::Read)))
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
        let Work { rows_per_commit, merge, bytes, then, .. } = self.history.units[unit];
        let made = Unit {
            session: session as u64,
            first: only.is_none(),
            key: self.history.least_key(unit),
            rows_per_commit,
            merge,
            lockable: self.history.units[unit].is_lockable(),
            statements: self.history.parts(unit).count() as u16,
            claims: then.map(|_| self.history.claims(unit).into()).unwrap_or_default(),
            at_fault: 0,
            bytes,
            losses: 0,
            reruns: 0,
            may_wait: false,
            payload: unit,
        };
        match lane {
            Some(lane) => self.wires[lane].inbox.push_back(Event::Submit(made)),
            // Its rows are in different lanes.
            None => self.note(unit, State::Alone(made, None)),
        }
    }
}
