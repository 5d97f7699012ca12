//! The simulated sessions. Each sends its units in order, several at a time, and keeps its order if a lane
//! returns some of them. It knows nothing of the units' effects.

use std::collections::VecDeque;

use crate::key::Key;
use crate::lane::Unit;

#[derive(Debug)]
pub struct Session {
    pub gateway: usize,
    /// Number of units under way at one time.
    pub depth: usize,
    pub unsent: VecDeque<usize>,
    sent: VecDeque<OnItsWay>,
    /// It has handled a returned unit, and others are still under way. A lane may not know yet that they have
    /// to be returned too, and no new unit may follow them.
    sorting_out: bool,
    pub gone: bool,
}

#[derive(Debug)]
struct OnItsWay {
    unit: usize,
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
        Session { gateway, depth, unsent, sent, sorting_out: false, gone: false }
    }

    /// The next unit to submit to a lane.
    pub fn next(&self) -> Option<usize> {
        let given_back = |sent: &OnItsWay| matches!(sent.state, State::Alone(..) | State::Returned(_));
        let held_up = self.sorting_out || self.sent.len() >= self.depth || self.sent.iter().any(given_back);
        if held_up && !self.sent.is_empty() { None } else { self.unsent.front().copied() }
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
            self.sorting_out &= !self.sent.is_empty();
            self.sent.push_back(OnItsWay { unit, lane, state: State::InLane });
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
        self.sorting_out = true;
        Some((front.lane, std::mem::replace(&mut front.state, State::InLane)))
    }

    /// Records a unit's state. `false` if it is not under way.
    pub fn note(&mut self, unit: usize, state: State) -> bool {
        let Some(sent) = self.sent.iter_mut().find(|sent| sent.unit == unit) else { return false };
        if !matches!(sent.state, State::InLane) {
            return false;
        }
        sent.state = state;
        while self.sent.front().is_some_and(|sent| matches!(sent.state, State::Done)) {
            self.sent.pop_front();
        }
        true
    }

    /// The client has left. Its unsent units are dropped, and those in lanes continue.
    pub fn leave(&mut self) -> Vec<usize> {
        self.gone = true;
        self.unsent.drain(..).collect()
    }

    /// Takes a returned unit that will not run, with the key that the lane waits for.
    pub fn drop_given_back(&mut self) -> Option<(usize, usize, Option<Key>)> {
        let given_back = |sent: &&mut OnItsWay| matches!(sent.state, State::Alone(..) | State::Returned(_));
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
}
