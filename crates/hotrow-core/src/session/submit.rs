//! Sends a session's units to lanes, and takes those that come back. The units keep their order, whichever
//! lanes they use.

use hotrow_lane::affinity::LaneId;
use hotrow_lane::answers::Next;
use hotrow_lane::lane::LaneKind;

use super::alone::Alone;
use super::environment::Stop;
use super::names::Change;
use super::planning::Planning;
use super::{Envelope, Environment, Sequences, Session, StatementOf, cancelled};
use crate::traceparent;
use crate::unit::Packed;

/// What a session knows of its units in lanes.
#[derive(Debug, Default)]
pub(super) struct InLanes {
    /// The lane that has them.
    lane: Option<(LaneKind, LaneId)>,
    /// A transaction with BEGIN and COMMIT was sent to a lane, and its end may be unknown.
    pub(super) has_block: bool,
    /// A lane has given a unit back.
    pub(super) has_returned: bool,
}

impl<E: Environment> Session<E> {
    /// Sends a unit to a lane. It must not overtake the session's earlier units: if they are in another lane, the unit waits
    /// for them. `changes` are its changes of names if a lane runs it.
    pub(super) fn submit(
        &mut self,
        planning: Planning,
        mut unit: Packed<StatementOf<E>>,
        changes: Vec<Change<E::Statement>>,
    ) -> Result<(), Stop<E>> {
        self.catch_up(&planning)?;
        let kind = unit.kind();
        let next = self.env.answers(|answers| answers.next());
        let on_replica = match self.switches.reads_from_replica() && !self.phase.is_held() {
            true => self.reads.lane(&planning, &self.env, &unit, next)?,
            false => None,
        };
        let (lane, is_first) = match next {
            Next::First if on_replica.is_some() => (on_replica.map(|(lane, _)| lane), true),
            Next::First => (if unit.must_run_alone() { None } else { self.any_lane(&unit) }, true),
            Next::Follow => match self.in_lanes.lane {
                Some((under_way, lane))
                    if under_way == kind && lane.replica.is_none() && !unit.must_run_alone() =>
                {
                    (self.env.assign(&unit, Some(lane)), false)
                }
                _ => (None, false),
            },
            Next::Wait => (None, false),
        };
        if lane.is_none() && !is_first {
            self.lanes_done(&planning)?;
        }
        if on_replica.is_none() {
            self.reads.leave_replica();
        }
        if unit.touches_sequence() {
            self.sequences = Sequences::Elsewhere;
        }
        let slot = self.env.answers(|answers| answers.reserve());
        let may_stay_open = unit.may_stay_open();
        if self.env.traces() && lane.is_some() {
            let text_of = |name: &[u8]| self.names.get(name).map(|named| &named.text[..]);
            unit.parent = traceparent::of_messages(unit.raw(), text_of).map(Box::new);
        }
        let mut envelope = self.env.envelope(unit);
        let Some(lane) = lane else {
            self.begin_alone(envelope);
            return Ok(());
        };
        debug_assert!(self.phase.is_free(), "a unit leaves its transaction or its connection");
        self.in_lanes.lane = Some((kind, lane));
        self.in_lanes.has_block |= may_stay_open;
        self.env.unit_packed();
        envelope.address(slot, !changes.is_empty());
        if let Some((_, bound)) = on_replica {
            envelope.set_lsn_bound(bound);
        }
        self.renaming.record(slot, changes);
        self.env.submit(lane, is_first, envelope);
        Ok(())
    }

    /// A lane for a unit without earlier units of the session under way. None if no lane can run it, or if the session has
    /// an open transaction in which the unit has to run.
    fn any_lane(&self, unit: &Packed<StatementOf<E>>) -> Option<LaneId> {
        if self.phase.is_held() { None } else { self.env.assign(unit, None) }
    }

    /// A lane has given back the earliest unfinished unit, to be submitted again, unless its client has cancelled it.
    pub fn resubmit(&mut self, envelope: E::Envelope, is_cancelled: bool) {
        if is_cancelled {
            self.refuse_returned(&envelope, &cancelled());
        } else if envelope.must_leave_lanes() {
            self.begin_alone(envelope);
        } else {
            self.submit_again(envelope);
        }
    }

    /// Gives the earliest unfinished unit to a lane again.
    pub(super) fn submit_again(&mut self, envelope: E::Envelope) {
        self.reads.leave_replica();
        self.in_lanes.has_returned = true;
        let Some(lane) = self.any_lane(envelope.unit()) else { return self.begin_alone(envelope) };
        debug_assert!(self.phase.is_free(), "a unit leaves its transaction or its connection");
        self.in_lanes.lane = Some((envelope.unit().kind(), lane));
        self.env.submit(lane, true, envelope);
    }

    /// Runs the earliest unfinished unit alone. If an earlier unit has left a failed transaction open, it runs
    /// in that transaction.
    pub fn begin_alone(&mut self, envelope: E::Envelope) {
        self.reads.leave_replica();
        self.in_lanes.has_returned = true;
        let owed = envelope.unit().readies();
        self.alone = Some(Alone::new(envelope, owed));
    }
}
