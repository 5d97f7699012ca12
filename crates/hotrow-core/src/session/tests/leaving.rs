//! Sessions that end in the middle of anything: their clients send Terminate, close their sending side or disappear, an
//! operator ends them, or the gateway stops. What was sent is finished, and nothing of the session is left.

use std::collections::BTreeMap;

use bytes::BytesMut;
use hotrow_lane::lane::Event;
use hotrow_wire::backend::{Problem, Report, tag};
use hotrow_wire::{SqlState, frontend, put_frame, split};

use super::count::{check_rows, count};
use super::postgres::Database;
use super::random::{differing, direct, frames, is_often, program, seeds, shown};
use super::world::World;
use crate::session::{Need, SessionEnd, Stage, Wait};

/// What becomes of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It sends Terminate after the message that it has begun to send.
    Terminates,
    /// It closes its sending side, and still reads.
    Closes,
    Disappears,
    /// An operator ends its session.
    Killed,
}

/// The end of a session.
#[derive(Debug)]
pub enum Ending {
    /// What the client has sent is finished at the server. Then the session ends in this way.
    Finishes(SessionEnd),
    /// Units in lanes are finished.
    Settles,
}

fn stopping() -> SessionEnd {
    SessionEnd::Problem(Problem::fatal(SqlState::AdminShutdown, "", ""))
}

impl World {
    /// A client leaves, or the gateway stops.
    pub(super) fn one_leaves(&mut self) {
        let number = self.random.usize(..self.clients.len());
        let client = &mut self.clients[number];
        if self.random.u8(..6) == 0 {
            self.stage = if self.stage == Stage::Serving { Stage::TakenOver } else { Stage::Leaving };
            return;
        }
        if client.is_over || client.fate.is_some() {
            return;
        }
        let fate = [Fate::Terminates, Fate::Closes, Fate::Disappears, Fate::Killed][self.random.usize(..4)];
        client.fate = Some(fate);
        match fate {
            Fate::Terminates => {
                let rest = client.rest_of_message();
                client.program.truncate(rest);
                client.ends_at = client.sent_bytes + rest;
                put_frame(&mut client.program, frontend::tag::TERMINATE, |_| {});
            }
            Fate::Closes | Fate::Disappears => client.program.clear(),
            Fate::Killed => {}
        }
    }

    /// A session that does not wait for anything else notices what became of its client. False if nothing did.
    pub(super) fn meet_fate(&mut self, number: usize) -> bool {
        let client = &mut self.clients[number];
        match client.fate {
            Some(Fate::Disappears) => {
                self.end_session(number, SessionEnd::Client, false);
                return true;
            }
            Some(Fate::Killed) if client.ending.is_none() => {
                self.end_session(number, stopping(), false);
                return true;
            }
            _ => {}
        }
        if client.ending.is_some() || !matches!(client.need, Some(Need::Event)) {
            return false;
        }
        // A client that does not read is not read either.
        let has_message = matches!(split(&client.input, |_| usize::MAX), Ok(Some(_)));
        if has_message && client.session.connection().is_none() && !client.is_closed {
            return false;
        }
        match client.session.waits(self.stage, &client.input) {
            Wait::Event | Wait::Moment if client.fate == Some(Fate::Closes) && !client.is_closed => {
                client.is_closed = true;
                if let Err(end) = client.session.client_closed() {
                    self.end_session(number, end, false);
                }
            }
            Wait::Moment if self.random.u8(..4) == 0 => self.end_session(number, stopping(), false),
            Wait::Finish => self.end_session(number, SessionEnd::Client, true),
            Wait::Stop => self.end_session(number, stopping(), false),
            _ => return false,
        }
        true
    }

    /// A session ends in this way. `finishes` is whether its server may still answer what the client has sent.
    pub(super) fn end_session(&mut self, number: usize, end: SessionEnd, finishes: bool) {
        let client = &mut self.clients[number];
        if let SessionEnd::Problem(Problem { code, .. }) = &end {
            assert!(
                [SqlState::ConnectionFailure, SqlState::AdminShutdown].contains(code),
                "no other reason to end a session: {code:?}"
            );
        }
        let end = match client.ending.take() {
            None if finishes && client.session.terminate() => {
                client.ending = Some(Ending::Finishes(end));
                return;
            }
            None => end,
            Some(Ending::Finishes(_)) if matches!(end, SessionEnd::Server) => end,
            Some(Ending::Finishes(first)) => first,
            Some(Ending::Settles) => return self.session_over(number),
        };
        if let Some(connection) = client.session.connection() {
            self.backends[connection.backend].die(&mut self.database);
        }
        client.delayed = None;
        *self.ended.entry(client.fate).or_default() += 1;
        match client.session.leave(end) {
            SessionEnd::Server => self.session_over(number),
            _ => client.ending = Some(Ending::Settles),
        }
    }

    /// A session that ends has nothing to do at the moment. Returns whether it has to be asked again.
    pub(super) fn settled(&mut self, number: usize) -> bool {
        let client = &mut self.clients[number];
        match client.ending {
            Some(Ending::Finishes(_)) if client.session.connection().is_some() => {
                client.need = Some(Need::Reply);
                false
            }
            Some(Ending::Finishes(_)) => {
                self.end_session(number, SessionEnd::Client, false);
                true
            }
            _ => {
                let pending = client.answers.borrow().pending();
                assert_eq!(pending, 0, "client {number} has unanswered units");
                self.session_over(number);
                false
            }
        }
    }

    /// The server has closed the connection of a session that has told it to.
    pub(super) fn finish(&mut self, number: usize) -> bool {
        let client = &mut self.clients[number];
        let Some(Ending::Finishes(_)) = client.ending else { return false };
        let Some(connection) = client.session.connection() else { return false };
        let backend = &self.backends[connection.backend];
        if !backend.is_dead || !backend.output.is_empty() {
            return false;
        }
        if let Err(end) = client.session.server_gone() {
            self.end_session(number, end, false);
        }
        true
    }

    /// Nothing of a session runs any longer.
    pub(super) fn session_over(&mut self, number: usize) {
        let client = &mut self.clients[number];
        client.is_over = true;
        (client.delayed, client.ending) = (None, None);
        if let Some(connection) = client.session.connection() {
            self.backends[connection.backend].die(&mut self.database); // with state that is left there
        }
        client.session.end();
        self.shared.over.borrow_mut().insert(number as u64);
        if client.session.leaves_lanes() {
            let mut inboxes = self.shared.inboxes.borrow_mut();
            inboxes.iter_mut().for_each(|inbox| inbox.push_back(Event::Gone(number as u64)));
        }
        client.received.extend_from_slice(&client.answers.borrow_mut().out.split());
        let channels: Vec<_> = client.session.shared_channels().iter().cloned().collect();
        self.listener.unsubscribe(number, &channels, 0);
    }

    /// The clients that are left disconnect. Their sessions do not count as ended.
    pub(super) fn end_all(&mut self) {
        let over: Vec<bool> = self.clients.iter().map(|client| client.is_over).collect();
        let ended = self.ended.clone();
        for number in 0..self.clients.len() {
            if !self.clients[number].is_over {
                self.end_session(number, SessionEnd::Client, false);
                self.provide(number);
            }
        }
        if self.is_paused {
            self.pause();
        }
        while (0..self.lanes.len()).any(|lane| self.lane_turn(lane)) || self.shared.arrive() {}
        self.check_nothing_is_left();
        self.ended = ended;
        self.clients.iter_mut().zip(over).for_each(|(client, is_over)| client.is_over = is_over);
    }

    /// The lanes pause, or go on.
    pub(super) fn pause(&mut self) {
        self.is_paused = !self.is_paused;
        for inbox in self.shared.inboxes.borrow_mut().iter_mut() {
            inbox.push_back(if self.is_paused { Event::Pause } else { Event::Resume });
        }
    }

    /// The connection that a session holds is lost.
    pub(super) fn cut(&mut self, number: usize) -> bool {
        let client = &mut self.clients[number];
        let Some(connection) = client.session.connection() else { return false };
        self.cuts -= 1;
        self.backends[connection.backend].die(&mut self.database);
        if let Err(end) = client.session.server_gone() {
            self.end_session(number, end, false);
        }
        true
    }

    /// Faults that may still happen.
    pub(super) fn faults(&self) -> usize {
        self.cuts + self.cancels + self.leaves + self.pauses + self.shared.refusals.get()
    }

    /// After the end of all sessions: no place, connection, channel or unit of one is left.
    pub(super) fn check_nothing_is_left(&mut self) {
        for (number, client) in self.clients.iter_mut().enumerate() {
            assert!(client.session.connection().is_none(), "client {number} has a connection");
            assert!(client.session.places.is_empty(), "client {number} has places");
            assert!(
                client.cancel.borrow().backend().is_none(),
                "a cancel request of client {number} has a target"
            );
            for lane in &self.lanes {
                let known = lane.knows(number as u64);
                assert_eq!(known, (false, 0), "lane {} knows client {number} {:?}", lane.number, client.fate);
            }
        }
        assert!(self.shared.rows.borrow().is_empty(), "a place in a row's queue is left");
        assert!(self.shared.waiting.borrow().is_empty(), "a call waits");
        assert!(self.listener.is_empty(), "a session still listens");
        let claims =
            self.shared.affinity.iter().map(|affinity| affinity.borrow().loads().iter().sum::<usize>());
        assert_eq!(claims.sum::<usize>(), 0, "a unit has a claim on a lane");
        for (number, backend) in self.backends.iter().enumerate() {
            let is_idle = self.idle.iter().any(|(_, idle)| idle.backend == number);
            assert!(backend.is_dead || is_idle, "backend {number} belongs to nobody");
        }
    }
}

/// The messages up to the last ReadyForQuery before an unknown outcome, and their number of ReadyForQuery.
fn answered(received: &[u8]) -> (&[u8], usize) {
    let (mut end, mut last, mut count) = (0, 0, 0);
    for frame in frames(received) {
        end += frame.bytes.len();
        if frame.tag == tag::ERROR && Report::read(frame.body()).is_ok_and(|report| report.code == b"08007") {
            break;
        }
        if frame.tag == tag::READY {
            (last, count) = (end, count + 1);
        }
    }
    (&received[..last], count)
}

#[test]
fn units_before_a_terminate_or_a_close_have_the_replies_of_a_direct_connection() {
    let mut ended: BTreeMap<_, usize> = BTreeMap::new();
    for seed in seeds().step_by(2) {
        let mut random = fastrand::Rng::with_seed(seed);
        let programs: Vec<_> = (0..2).map(|client| program(&mut random, client, false)).collect();
        let mut world = World::new(random, programs.clone());
        (world.leaves, world.waits) = (6, true);
        world.shared.stalls.set(seed % 4 == 0);
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
        assert!(played.is_ok(), "HOTROW_SEED={seed}:\n{}", shown(&programs.concat()));
        let mut expected = Database::default();
        for (number, client) in world.clients.iter().enumerate() {
            let sent = &programs[number][..client.sent_bytes.min(client.ends_at)];
            let directly = direct(sent, &mut expected);
            let (received, readies) = answered(&client.received);
            assert!(
                directly.starts_with(received),
                "HOTROW_SEED={seed}, client {number} {:?} sends\n{}through the gateway\n{}directly\n{}",
                client.fate,
                shown(sent),
                differing(received, &directly),
                differing(&directly, received),
            );
            if !matches!(client.fate, Some(Fate::Disappears | Fate::Killed)) {
                // A COPY reads Syncs, so the direct connection says how many units there are.
                assert_eq!(
                    readies,
                    answered(&directly).1,
                    "HOTROW_SEED={seed}, client {number} {:?} has unanswered units\n{}gets\n{}directly\n{}",
                    client.fate,
                    shown(sent),
                    shown(received),
                    shown(&directly)
                );
                for row in [0, 1].map(|row| 10 * number as u64 + row) {
                    assert_eq!(
                        world.database.value(row),
                        expected.value(row),
                        "HOTROW_SEED={seed}, client {number}: row {row}"
                    );
                }
            }
        }
        world.ended.iter().for_each(|(fate, count)| *ended.entry(*fate).or_default() += count);
    }
    let fates = if seeds().count() == 1 { 0 } else { 5 };
    assert!(ended.len() >= fates && ended.values().all(|count| is_often(*count, 60)), "{ended:?}");
}

#[test]
fn sessions_that_end_among_faults_lose_nothing_and_leave_nothing() {
    for seed in seeds().step_by(2) {
        let mut random = fastrand::Rng::with_seed(seed);
        let programs: Vec<BytesMut> = (0..3).map(|client| program(&mut random, client, true)).collect();
        let mut world = World::new(random, programs.clone());
        (world.cuts, world.cancels, world.gifts, world.waits) = (2, 3, 6, true);
        (world.sends, world.leaves, world.pauses) = (10, 5, 3);
        world.shared.stalls.set(true);
        world.shared.refusals.set(3);
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
        assert!(played.is_ok(), "HOTROW_SEED={seed}:\n{}", shown(&programs.concat()));
        for (number, client) in world.clients.iter().enumerate() {
            let sent = &programs[number][..client.sent_bytes.min(client.ends_at)];
            let effects = count(sent, &client.received, true);
            if let Err(why) = check_rows(&world, number, &effects) {
                let (fate, received) = (client.fate, shown(&client.received));
                panic!("HOTROW_SEED={seed}, client {number} {fate:?}: {why}\n{}{received}", shown(sent));
            }
        }
    }
}
