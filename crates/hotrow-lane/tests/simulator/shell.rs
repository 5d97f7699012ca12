//! The simulated I/O between lanes, connections and sessions. It passes events, performs the resulting
//! actions and records them in the history. It decides nothing.

use hotrow_lane::key::Key;
use hotrow_lane::lane::{Action, Batch, Changes, Event, Leaving, Times, Unit, Xid};

use super::backend::{Frame, Message};
use super::history::{Evidence, Fate, Sent, UnitOutcome, Work};
use super::model::Reply;
use super::sessions::State;
use super::world::World;

impl World {
    /// A session handles the unit that a lane returned.
    pub fn turn(&mut self, session: usize) {
        match self.sessions[session].take_front() {
            Some((_, State::Returned(unit))) => {
                let Some(lane) = self.route(session, unit.payload, None) else {
                    return self.note(unit.payload, State::Alone(unit, None)); // no lane can take it
                };
                self.sessions[session].send_again(lane);
                self.wires[lane].inbox.push_back(Event::Submit(Unit { first: true, ..unit }));
            }
            Some((lane, State::Alone(unit, key))) => {
                let unit = unit.payload;
                let (txn, replies) = self.server.run_alone(&self.statements(unit));
                for (part, reply) in self.history.parts(unit).zip(replies) {
                    self.record(part, Fate::Answered(txn, reply), None);
                }
                self.note(unit, State::Done);
                if let Some(key) = key {
                    self.wires[lane].inbox.push_back(Event::Unblocked(key));
                }
            }
            _ => {}
        }
    }

    /// A client leaves. Its returned units do not run, and their lanes are told.
    pub fn leave(&mut self, session: usize) {
        if self.sessions[session].gone {
            return;
        }
        for unit in self.sessions[session].leave() {
            self.history.parts(unit).for_each(|part| self.record(part, Fate::Left, None));
        }
        while let Some((unit, lane, key)) = self.sessions[session].drop_given_back() {
            self.record_all(unit, Fate::Left, None);
            if let Some(key) = key {
                self.wires[lane].inbox.push_back(Event::Unblocked(key));
            }
        }
        let gateway = self.sessions[session].gateway;
        for wire in self.wires.iter_mut().filter(|wire| wire.gateway == gateway) {
            wire.inbox.push_back(Event::Gone(session as u64));
        }
    }

    /// One frame goes to the operating system, which accepts it even if the server is gone.
    pub fn write(&mut self, lane: usize) {
        let wire = &mut self.wires[lane];
        let (Some(frame), Some(backend)) = (wire.unwritten.pop_front(), wire.backend) else { return };
        let backend = &mut self.backends[backend];
        if !backend.dead {
            backend.input.push_back(frame);
        }
        if let Frame::Sync(number) = frame {
            self.evidence(lane, number).written = true;
            self.step(lane, Event::Written(number));
        }
    }

    /// One message arrives, or the end of the connection after the last one.
    pub fn deliver(&mut self, lane: usize) {
        let Some(backend) = self.wires[lane].backend else { return };
        let Some(message) = self.backends[backend].output.pop_front() else {
            self.wires[lane].disconnect();
            return self.step(lane, Event::Lost);
        };
        let Some(index) = self.wires[lane].sent.front().copied() else {
            return self.history.complaints.push(format!("{message:?} for no batch"));
        };
        let elsewhere = self.elsewhere;
        let units = &self.history.batches[index].units;
        let of_statement: Vec<Work> = units
            .iter()
            .flat_map(|unit| self.history.parts(*unit))
            .map(|part| self.history.units[part])
            .collect();
        let sent = &mut self.history.batches[index];
        let event = match message {
            Message::Part(txn, reply) => return sent.replies.push((txn, reply)),
            Message::Answered(txn, reply) => {
                let changes =
                    if elsewhere { shown(&of_statement[sent.replies.len()], reply) } else { Changes::None };
                sent.replies.push((txn, reply));
                sent.evidence.changes = sent.evidence.changes.max(changes);
                Event::Answered(changes)
            }
            Message::Left(txn, failure) => {
                let answered = sent.replies.len();
                sent.replies.push((txn, Reply::Error));
                let place = self.history.place(&self.history.batches[index].units, answered);
                self.history.left.insert((index, self.history.batches[index].units[place]));
                self.step(lane, Event::Leaves(place, failure));
                return self.step(lane, Event::Answered(Changes::None));
            }
            Message::Locked => Event::Locked,
            Message::Xid(xid) => {
                sent.evidence.xid = Some(xid);
                Event::TransactionId(xid)
            }
            Message::Failed(failure) => {
                sent.evidence.failed = true;
                Event::Failed(failure)
            }
            Message::Ready => {
                sent.evidence.ready = true;
                let is_commit = matches!(sent.evidence.xid, Some(Some(_)));
                self.wires[lane].sent.pop_front();
                if let Some(took) = self.commits_take.filter(|_| is_commit) {
                    self.step(lane, Event::Took(Times { commit: Some(took), ..Times::default() }));
                }
                Event::Ready
            }
        };
        self.step(lane, event);
    }

    /// Everything that was received about a batch.
    pub fn evidence(&mut self, lane: usize, number: u64) -> &mut Evidence {
        let of_batch = |sent: &&mut Sent| sent.lane == lane && sent.number == number;
        let sent = self.history.batches.iter_mut().rev().find(of_batch);
        &mut sent.expect("the lane has sent it").evidence
    }

    /// The lane processes an event.
    pub fn step(&mut self, lane: usize, event: Event<usize>) {
        let event_text = self.trace.is_some().then(|| format!("{event:?}"));
        let is_slow = matches!(event, Event::Slow);
        let mut actions = Vec::new();
        self.wires[lane].lane.step(event, &mut actions);
        if let (Some(trace), Some(event)) = (&mut self.trace, event_text) {
            trace.push(format!("lane {lane}: {event} -> {actions:?}"));
        }
        self.history.moved += if is_slow { actions.len() } else { 0 };
        for action in actions {
            self.act(lane, action);
        }
        self.end_slow(lane);
        self.wires[lane].settle();
    }

    fn act(&mut self, lane: usize, action: Action<usize>) {
        match action {
            Action::Connect => {
                if std::mem::replace(&mut self.wires[lane].wanted, true) || self.wires[lane].backend.is_some()
                {
                    self.history.complaints.push(format!("lane {lane} wants a second connection"));
                }
            }
            Action::Disconnect => self.disconnect(lane),
            Action::Hold(_) => {
                self.history.held += 1;
                self.wires[lane].holds = true;
            }
            Action::Write(number) => self.send(lane, number),
            Action::Answer(batch) => self.answer(lane, &batch),
            Action::Alone(unit, key) => {
                self.history.too_slow += usize::from(unit.leaving == Leaving::TooSlow);
                self.give_back(lane, unit.payload, State::Alone(unit, key));
            }
            Action::Return(unit) => self.give_back(lane, unit.payload, State::Returned(unit)),
            Action::Refuse(units, refusal) => {
                for unit in units {
                    let evidence = self.last_evidence(unit.payload);
                    self.release(lane, unit.payload);
                    self.record_all(unit.payload, Fate::Refused(refusal), evidence);
                }
            }
            Action::Resolve(doubt) => self.wires[lane].asked = Some(doubt),
        }
    }

    /// The lane closes its connection. Nothing may be under way on it.
    fn disconnect(&mut self, lane: usize) {
        let is_quiet = self.wires[lane].unwritten.is_empty() && self.wires[lane].sent.is_empty();
        match self.wires[lane].disconnect() {
            Some(backend) if is_quiet => self.backends[backend].client_gone = true,
            _ => {
                self.history.complaints.push(format!("lane {lane} closes a connection that it uses, or none"))
            }
        }
    }

    /// Tells a lane to pause or to resume.
    pub fn pause(&mut self, lane: usize) {
        let pause = !self.wires[lane].paused;
        self.wires[lane].paused = pause;
        self.wires[lane].inbox.push_back(if pause { Event::Pause } else { Event::Resume });
    }

    /// All lanes resume. `false` if none was paused.
    pub fn resume_all(&mut self) -> bool {
        let paused: Vec<_> = (0..self.wires.len()).filter(|lane| self.wires[*lane].paused).collect();
        for &lane in &paused {
            if !self.wires[lane].lane.is_at_rest() || self.wires[lane].wanted {
                self.history.complaints.push(format!("lane {lane} does not come to rest"));
            }
            self.history.paused += 1;
            self.pause(lane);
        }
        !paused.is_empty()
    }

    fn send(&mut self, lane: usize, number: u64) {
        let under_way = self.wires[lane].lane.under_way();
        let count = under_way.len();
        let behind_commit = under_way[0].number != number && under_way[0].xid != Xid::Missing;
        let batch = under_way.back().filter(|batch| batch.number == number).expect("just cut");
        let units: Vec<usize> = batch.units.iter().map(|unit| unit.payload).collect();
        let calls: Vec<Vec<usize>> = batch.calls().map(|call| units[call].to_vec()).collect();
        let ahead: Vec<Key> = batch.ahead.iter().map(|(key, ..)| *key).collect();
        for &unit in &units {
            self.note_again(unit);
            self.last_batch.insert(unit, self.history.batches.len());
        }
        let wire = &mut self.wires[lane];
        wire.queue(number, &ahead, &calls, &self.history);
        wire.sent.push_back(self.history.batches.len());
        let evidence = Evidence::none(wire.kind);
        self.history.batches.push(Sent {
            lane,
            number,
            units,
            calls: calls.iter().map(Vec::len).collect(),
            ahead,
            under_way: count,
            behind_commit,
            replies: Vec::new(),
            evidence,
        });
    }

    fn answer(&mut self, lane: usize, batch: &Batch<usize>) {
        for unit in batch.units.iter().map(|unit| unit.payload) {
            let sent = self.last_batch[&unit];
            let evidence = self.history.batches[sent].evidence;
            // Units before it may have left the batch.
            let before = self.history.batches[sent].units.iter().take_while(|one| **one != unit);
            let first: usize = before.map(|one| self.history.parts(*one).count()).sum();
            for (place, part) in (first..).zip(self.history.parts(unit)) {
                let sent = &self.history.batches[sent];
                let fate = match sent.replies.get(place) {
                    Some((txn, reply)) if sent.number == batch.number => Fate::Answered(*txn, *reply),
                    _ => Fate::Nothing,
                };
                self.record(part, fate, Some(evidence));
            }
            self.release(lane, unit);
            self.note(unit, State::Done);
        }
    }

    /// All statements of a unit have the same outcome.
    fn record_all(&mut self, unit: usize, fate: Fate, evidence: Option<Evidence>) {
        self.history.parts(unit).for_each(|part| self.record(part, fate, evidence));
        self.note(unit, State::Done);
    }

    fn record(&mut self, unit: usize, fate: Fate, evidence: Option<Evidence>) {
        self.history.outcomes.push(UnitOutcome { unit, fate, log: self.server.log.len(), evidence });
    }

    pub fn note(&mut self, unit: usize, state: State) {
        let session = self.history.units[unit].session;
        if !self.sessions[session].note(unit, state) {
            self.history.complaints.push(format!("unit {unit} is dealt with twice"));
        }
    }

    /// A unit goes back to its session. If the session is gone, the unit does not run, and the lane is told.
    fn give_back(&mut self, lane: usize, unit: usize, state: State) {
        self.note_again(unit);
        self.release(lane, unit);
        let session = self.history.units[unit].session;
        if !self.sessions[session].gone {
            return self.note(unit, state);
        }
        self.record_all(unit, Fate::Left, None);
        self.wires[lane].inbox.push_back(Event::Gone(session as u64));
        if let State::Alone(_, Some(key)) = state {
            self.wires[lane].inbox.push_back(Event::Unblocked(key));
        }
    }

    fn last_evidence(&self, unit: usize) -> Option<Evidence> {
        self.last_batch.get(&unit).map(|batch| {
            let evidence = self.history.batches[*batch].evidence;
            Evidence { failed: evidence.failed || self.history.left.contains(&(*batch, unit)), ..evidence }
        })
    }

    fn note_again(&mut self, unit: usize) {
        if let Some(evidence) = self.last_evidence(unit) {
            self.history.again.push((unit, evidence));
        }
    }
}

/// The changes that a reply shows. A call of a function hides its own.
fn shown(work: &Work, reply: Reply) -> Changes {
    match reply {
        _ if work.merge.is_some() => Changes::Hidden,
        Reply::Value(_) if work.statement.writes() => Changes::Rows,
        Reply::Inserted => Changes::Rows,
        Reply::Value(_) | Reply::NoRow | Reply::Error => Changes::None,
    }
}
