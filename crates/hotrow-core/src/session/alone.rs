//! A unit that cannot run in a lane: it runs on a connection of its own, from its first message to its last
//! ReadyForQuery, before all later units of the session.

use bytes::Bytes;
use hotrow_lane::key::Key;
use hotrow_lane::lane::LaneKind;
use hotrow_lane::row_queue::{QueueId, Request};
use hotrow_wire::SqlState;
use hotrow_wire::backend::{Problem, Status};

use super::begun::Begun;
use super::environment::Stop;
use super::replies::put_ready;
use super::{Envelope, Environment, Need, Sequences, Session, SessionEnd, cancelled};
use crate::unit::{Packed, put_lost};

/// Such a unit.
pub(super) struct Alone<U, P> {
    pub(super) envelope: U,
    /// The number of ReadyForQuery messages for which its client still waits.
    pub(super) owed: usize,
    /// Its messages that are not sent yet; none before it has a connection.
    messages: Option<Bytes>,
    /// Its places among such units of several rows, until it is done.
    turns: Vec<(Key, P)>,
}

impl<U, P> Alone<U, P> {
    /// A unit with this number of ReadyForQuery messages, before it has a connection.
    pub(super) fn new(envelope: U, owed: usize) -> Self {
        Alone { envelope, owed, messages: None, turns: Vec::new() }
    }

    /// It is the unit's turn on this row.
    pub(super) fn placed(&mut self, key: Key, place: P) {
        self.turns.push((key, place));
    }

    /// The next row for whose turn a unit of several rows waits before it gets a connection. Two such units that share rows
    /// would take their locks in orders of their own, and could deadlock. They take their turns in one order.
    fn next_turn<S>(&self, unit: &Packed<S>) -> Option<Request> {
        let rows = unit.claimed.rows();
        if unit.kind() == LaneKind::Read || rows.clone().nth(1).is_none() {
            return None;
        }
        let is_missing = |key: &Key| self.turns.iter().all(|(row, _)| row != key);
        let key = rows.filter(is_missing).min()?;
        Some(Request { queue: QueueId::Alone(key), alone: false })
    }
}

impl<E: Environment> Session<E> {
    /// Continues with this unit.
    pub(super) fn run_alone(&mut self) -> Result<(), Stop<E>> {
        let Some(alone) = &mut self.alone else { return Ok(()) };
        let messages = match &alone.messages {
            Some(messages) => messages.clone(),
            None if self.phase.is_held() => {
                let messages = Bytes::copy_from_slice(alone.envelope.unit().raw());
                if alone.envelope.unit().told().next().is_some() {
                    self.deferred.take_back(alone.envelope.unit());
                    self.phase.begin(Begun::of_unit());
                }
                self.renaming.forget_first(&self.env, &mut self.names);
                messages
            }
            None => {
                let is_cancelled = std::mem::take(&mut self.provided.is_cancelled).then(cancelled);
                let Some(problem) = self.provided.no_connection.take().or(is_cancelled) else {
                    let turn = alone.next_turn(alone.envelope.unit());
                    return Err(Stop::Need(turn.map_or(Need::Connection, |turn| Need::Turn(turn, None))));
                };
                if let Some(alone) = self.alone.take() {
                    self.refuse_returned(&alone.envelope, &problem);
                }
                return Ok(());
            }
        };
        let mut sent = 0;
        let forwarded = self.forward_all(&messages, &mut sent);
        if let Some(alone) = &mut self.alone {
            alone.messages = Some(messages.slice(sent..));
        }
        forwarded?;
        if self.phase.is_held() && !self.is_settled() {
            return Err(Stop::Need(Need::Reply));
        }
        self.finish_alone();
        Ok(())
    }

    /// The unit is done, and with it the answered units directly after it.
    fn finish_alone(&mut self) {
        self.alone = None;
        self.env.answers(|answers| answers.finish_front());
    }

    /// The session ends while a unit runs alone. The client still gets the answers of later units.
    pub(super) fn lose_alone(&mut self) {
        let owed = self.alone.as_ref().filter(|alone| alone.messages.is_some()).map_or(0, |alone| alone.owed);
        if owed > 0 {
            self.lost_while_alone(owed);
        }
    }

    /// Gives up a unit that was sent.
    pub(super) fn drop_alone(&mut self) {
        if self.alone.as_ref().is_some_and(|alone| alone.messages.is_some()) {
            self.finish_alone();
        }
    }

    /// The session's work has failed in this way. If a unit runs alone, only this unit is lost.
    pub fn failed(&mut self, end: SessionEnd) -> Result<(), SessionEnd> {
        let Some(alone) = &self.alone else { return Err(end) };
        if !matches!(end, SessionEnd::Problem(_)) {
            return Err(end);
        }
        let (owed, is_sent) = (alone.owed, alone.messages.is_some());
        let is_lost = owed > 0 && is_sent;
        if is_lost {
            self.lost_while_alone(owed);
        }
        self.finish_alone();
        if is_lost { Ok(()) } else { Err(end) }
    }

    /// The connection was lost under a unit that ran alone. Each unanswered message gets an error. Otherwise the
    /// client would take the answers of later units for this unit's.
    fn lost_while_alone(&mut self, owed: usize) {
        self.disconnect();
        self.phase.take_begun(); // of writes that were not sent yet
        if self.sequences == Sequences::Here {
            self.sequences = Sequences::Elsewhere;
        }
        self.env.outcome_unknown();
        let problem = Problem::error(
            SqlState::TransactionResolutionUnknown,
            "the connection to the server was lost, and the outcome of the statement is unknown",
            "The statement was executed once or not at all. Check before you send it again.",
        );
        let stays_open = self.alone.as_ref().is_some_and(|alone| alone.envelope.unit().may_stay_open());
        if stays_open {
            self.phase.begin(Begun::failed(Bytes::from_static(b"BEGIN"), false));
            self.append(|out| {
                problem.put(out);
                put_ready(Status::Failed, out);
            });
        } else {
            self.append(|out| put_lost(&problem, owed, out));
        }
    }
}
