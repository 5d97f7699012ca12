//! How a session ends: its client leaves, the gateway stops, or the session fails. Units that were sent are finished
//! first.

use hotrow_wire::split;

use super::{Environment, Need, Session, SessionEnd};

/// The progress of the gateway's stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Sessions serve their clients.
    Serving,
    /// Another gateway has taken over: sessions of silent clients end. A client that has just connected here is still
    /// served.
    TakenOver,
    /// All sessions end as soon as their work under way is done, and no new client is admitted.
    Leaving,
}

/// What a session that needs an event waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The client, and the server if the session holds a connection.
    Event,
    /// The client. The session ends if the client stays silent for a moment, because the gateway stops.
    Moment,
    /// The server only.
    Reply,
    /// One more unit in lanes.
    Lanes,
    /// The client has to read, and sends no more.
    Room,
    /// Nothing: the client has left. What it has sent is finished, and the session ends.
    Finish,
    /// Nothing: the session ends because the gateway stops.
    Stop,
}

/// What is known about the end of a session.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// The client sends no more.
    is_closed: bool,
    /// The session is over: no call waits any longer.
    is_over: bool,
    /// A call's wait was ended because the gateway stops: the session ends when it is idle.
    ended_call: bool,
}

impl<E: Environment> Session<E> {
    /// What the session waits for now that it needs an event. `input` has the client's bytes that it has not taken.
    pub fn waits(&self, stage: Stage, input: &[u8]) -> Wait {
        let pending = || self.env.answers(|answers| answers.pending());
        if self.leaving.is_closed {
            let has_more = matches!(split(input, |_| usize::MAX), Ok(Some(_)));
            return match has_more {
                false => Wait::Finish,
                true if self.phase.is_held() => Wait::Reply,
                true if pending() > 0 => Wait::Lanes,
                true => Wait::Room,
            };
        }
        if self.phase.is_held() {
            // A session in a transaction ends after it.
            return if stage == Stage::Leaving && self.is_idle() { Wait::Stop } else { Wait::Event };
        }
        if self.gathered_bytes() > 0 || self.has_begun() {
            return Wait::Event;
        }
        match stage {
            _ if self.leaving.ended_call && pending() > 0 => Wait::Lanes,
            _ if self.leaving.ended_call => Wait::Stop,
            Stage::Leaving if pending() > 0 => Wait::Lanes,
            Stage::Leaving => Wait::Stop,
            Stage::TakenOver if pending() == 0 => Wait::Moment,
            Stage::TakenOver | Stage::Serving => Wait::Event,
        }
    }

    /// The client has closed its sending side while the session waited for it. With a connection, what it has sent is
    /// still run and answered.
    pub fn client_closed(&mut self) -> Result<(), SessionEnd> {
        self.leaving.is_closed = self.phase.is_held();
        if self.leaving.is_closed { Ok(()) } else { Err(SessionEnd::Client) }
    }

    /// The client has disconnected while a call waits: this call and later ones need no answer.
    pub fn client_left(&mut self) {
        self.leaving.is_over = true;
    }

    /// Whether a call that waits gets its empty answer now.
    pub fn ends_calls(&mut self, stage: Stage) -> bool {
        let ends = stage != Stage::Serving || self.leaving.is_over;
        self.leaving.ended_call |= ends;
        ends
    }

    /// Whether a client that does not read is waited for.
    pub fn waits_for_room(&self, stage: Stage) -> bool {
        stage != Stage::Leaving || self.leaving.is_over
    }

    /// The session ends: it loses its connection, and takes no more messages. Its units in lanes are finished by
    /// [`Session::last_need`]. Returns the end as the client learns it. In the middle of a message no reason can be reported.
    pub fn leave(&mut self, end: SessionEnd) -> SessionEnd {
        let end = if self.is_in_message() { SessionEnd::Server } else { end };
        self.leaving.is_over = true;
        if matches!(end, SessionEnd::Problem(_)) {
            self.lose_alone();
        }
        self.end();
        end
    }

    /// What the session needs without more messages of the client. None if it needs nothing before the next event.
    pub fn last_need(&mut self) -> Result<Option<Need<E>>, SessionEnd> {
        let is_over = self.leaving.is_over;
        Ok(match self.step(&[], &mut 0)? {
            Need::Event if is_over && self.env.answers(|answers| answers.pending()) > 0 => Some(Need::Lanes),
            Need::Event => None,
            Need::Reply if !is_over => None,
            need => Some(need),
        })
    }

    /// The session leaves the lanes of its pool. Returns whether they may remember it, because one has given back a unit, or
    /// may do so.
    pub fn leaves_lanes(&mut self) -> bool {
        std::mem::take(&mut self.in_lanes.has_returned) || self.env.answers(|answers| answers.pending()) > 0
    }

    /// The session has ended: its connection is closed, and the unit that runs there is lost.
    pub fn end(&mut self) {
        self.disconnect();
        self.drop_alone();
    }
}
