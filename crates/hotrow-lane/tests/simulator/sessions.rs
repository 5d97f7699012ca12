//! The simulated sessions. Each sends its units in order, several at a time. `crate::session`, which real sessions
//! use too, decides which unit can be sent and in which order the client gets its replies.

use std::collections::VecDeque;

use hotrow_lane::answers::{Answers, Next};
use hotrow_lane::key::Key;
use hotrow_lane::lane::Unit;

#[derive(Debug)]
pub struct Session {
    pub gateway: usize,
    /// Number of units under way at one time.
    pub depth: usize,
    pub unsent: VecDeque<usize>,
    sent: VecDeque<UnderWay>,
    answers: Answers<()>,
    /// The units in the order in which they were sent, one byte each.
    in_order: Vec<u8>,
    pub gone: bool,
}

#[derive(Debug)]
struct UnderWay {
    unit: usize,
    /// The place of its answer.
    slot: u64,
    lane: usize,
    state: State,
}

/// The state of a unit.
#[derive(Debug)]
pub enum State {
    InLane,
    /// To be run on the session's own connection.
    Alone(Unit<usize>, Option<Key>),
    /// To be submitted again.
    Returned(Unit<usize>),
    Done,
}

impl Session {
    pub fn new(gateway: usize, depth: usize) -> Self {
        let (unsent, sent) = (VecDeque::new(), VecDeque::new());
        let (answers, in_order) = (Answers::default(), Vec::new());
        Session { gateway, depth, unsent, sent, answers, in_order, gone: false }
    }

    /// The next unit to submit to a lane.
    pub fn next(&self) -> Option<usize> {
        let may_send = match self.answers.next() {
            Next::First => true,
            Next::Follow => self.sent.len() < self.depth,
            Next::Wait => false,
        };
        self.unsent.front().copied().filter(|_| may_send)
    }

    /// The lane that has its units.
    pub fn lane(&self) -> Option<usize> {
        self.sent.back().map(|sent| sent.lane)
    }

    /// The earliest unfinished unit.
    pub fn front(&self) -> Option<(usize, usize, &State)> {
        self.sent.front().map(|sent| (sent.unit, sent.lane, &sent.state))
    }

    /// Submits the next unit to a lane.
    pub fn send(&mut self, lane: usize) {
        if let Some(unit) = self.unsent.pop_front() {
            self.in_order.push(unit as u8);
            let slot = self.answers.reserve();
            self.sent.push_back(UnderWay { unit, slot, lane, state: State::InLane });
        }
    }

    /// Submits the earliest unit to a lane again.
    pub fn send_again(&mut self, lane: usize) {
        if let Some(front) = self.sent.front_mut() {
            front.lane = lane;
        }
    }

    /// Takes the unit that a lane returned, if it is next in the session's order.
    pub fn take_front(&mut self) -> Option<(usize, State)> {
        let front = self.sent.front_mut()?;
        if !matches!(front.state, State::Alone(..) | State::Returned(_)) {
            return None;
        }
        self.answers.take_returned().expect("the earliest unit was returned");
        Some((front.lane, std::mem::replace(&mut front.state, State::InLane)))
    }

    /// Records a unit's state. `false` if it is not under way.
    pub fn note(&mut self, unit: usize, state: State) -> bool {
        let Some(sent) = self.sent.iter_mut().find(|sent| sent.unit == unit) else { return false };
        if !matches!(sent.state, State::InLane) {
            return false;
        }
        match state {
            State::InLane => return false,
            _ if self.gone => {}
            State::Alone(..) | State::Returned(_) => drop(self.answers.give_back(sent.slot, ())),
            State::Done => drop(self.answers.answer(sent.slot, |out| out.extend_from_slice(&[unit as u8]))),
        }
        sent.state = state;
        while self.sent.front().is_some_and(|sent| matches!(sent.state, State::Done)) {
            self.sent.pop_front();
        }
        true
    }

    /// The client has left. Its unsent units are dropped, and those in lanes continue. Nobody gets their answers.
    pub fn leave(&mut self) -> Vec<usize> {
        self.gone = true;
        (self.answers, self.in_order) = (Answers::default(), Vec::new());
        self.unsent.drain(..).collect()
    }

    /// Takes a returned unit that will not run, with the key that the lane waits for.
    pub fn drop_given_back(&mut self) -> Option<(usize, usize, Option<Key>)> {
        let given_back = |sent: &&mut UnderWay| matches!(sent.state, State::Alone(..) | State::Returned(_));
        let sent = self.sent.iter_mut().find(given_back)?;
        match std::mem::replace(&mut sent.state, State::InLane) {
            State::Alone(_, key) => Some((sent.unit, sent.lane, key)),
            _ => Some((sent.unit, sent.lane, None)),
        }
    }

    /// The keys that wait for a unit of this session to run alone, with their lanes.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, Key)> {
        self.sent.iter().filter_map(|sent| match sent.state {
            State::Alone(_, Some(key)) => Some((sent.lane, key)),
            _ => None,
        })
    }

    pub fn is_idle(&self) -> bool {
        self.unsent.is_empty() && self.sent.is_empty()
    }

    /// Whether the client has got all answers, in the order of its units.
    pub fn has_all_answers(&self) -> bool {
        self.answers.pending() == 0 && self.answers.out[..] == self.in_order[..]
    }
}
