//! Sends a session's units to lanes, and takes those that come back. The units keep their order, whichever
//! lanes they use.

use std::sync::Arc;

use hotrow_lane::affinity::LaneId;
use hotrow_lane::answers::Next;

use super::environment::Stop;
use super::names::Change;
use super::{Envelope, Environment, Need, Sequences, Session, Statement, StatementOf, Verdict, cancelled};
use crate::classify::{Analysis, Boundary, Pass};
use crate::unit::{Packed, Plan};

/// How a statement can be part of a unit.
pub(super) type PlanOf<E> = Plan<StatementOf<E>>;

/// Whether these are one transaction that a lane can run: statements with BEGIN and COMMIT around them, or
/// without.
pub(super) fn is_transaction<S>(plans: &[Plan<S>]) -> bool {
    let boundary = |plan: Option<&Plan<S>>| match plan {
        Some(Plan::Boundary(_, boundary)) => Some(*boundary),
        _ => None,
    };
    let runs = plans.iter().filter(|plan| matches!(plan, Plan::Run(..))).count();
    match boundary(plans.first()) {
        Some(Boundary::Begin(_)) => {
            runs > 0 && runs + 2 == plans.len() && boundary(plans.last()) == Some(Boundary::Commit)
        }
        _ => runs > 0 && runs == plans.len(),
    }
}

impl<E: Environment> Session<E> {
    /// The plan for running the statement in a lane, if it may run there.
    pub(super) fn run_in_lane(&self, statement: &StatementOf<E>) -> Result<Option<PlanOf<E>>, Stop<E>> {
        if !self.sends_to_lanes() || !statement.has_credit() {
            return Ok(None);
        }
        if !statement.is_superseded() {
            if let Verdict::Packed(packing) = self.verdict(statement)? {
                return Ok(Some(Plan::Run(statement.clone(), packing)));
            }
            if !statement.is_superseded() {
                return Ok(None);
            }
        }
        let current = self.env.successor(statement);
        Ok(match self.verdict(&current)? {
            Verdict::Packed(packing) if current.is_described_as(statement) => {
                Some(Plan::Run(current, packing))
            }
            _ => None,
        })
    }

    /// The verdict about a statement. While the catalogue is asked about it, the statement is passed through, and does not wait. A
    /// call waits for its verdict in any case: a merge rule may say that it can wait at the server for long.
    pub(super) fn verdict(&self, statement: &StatementOf<E>) -> Result<Verdict, Stop<E>> {
        let provided = &self.provided;
        if let Some((_, verdict)) = provided.verdicts.iter().find(|(of, _)| Arc::ptr_eq(of, statement)) {
            return Ok(verdict.clone());
        }
        match self.env.verdict(statement) {
            Some(verdict) => Ok(verdict),
            None if statement.is_call() || self.env.waits_for_verdicts() => {
                Err(Stop::Need(Need::Verdict(statement.clone())))
            }
            None => Ok(Verdict::Pass),
        }
    }

    /// The plan for the statement as a part of a unit, if it may be one.
    pub(super) fn plan(&self, statement: &StatementOf<E>) -> Result<Option<PlanOf<E>>, Stop<E>> {
        match &statement.analysis {
            Analysis::Pass(Pass { boundary: Some(boundary), .. }) if self.sends_to_lanes() => {
                Ok(Some(Plan::Boundary(statement.clone(), *boundary)))
            }
            _ => self.run_in_lane(statement),
        }
    }

    /// Sends a unit to a lane. It must not overtake the session's earlier units: if they are in another lane,
    /// the unit waits for them. A unit whose rows are under way in different lanes runs alone. `changes` are its
    /// changes of names if a lane runs it.
    pub(super) fn submit(
        &mut self,
        unit: Packed<StatementOf<E>>,
        changes: Vec<Change<E::Statement>>,
    ) -> Result<(), Stop<E>> {
        self.catch_up()?;
        let kind = unit.kind();
        let next = self.env.answers(|answers| answers.next());
        let on_replica = match self.switches.reads_from_replica() && self.holding.is_none() {
            true => self.reads.lane(&self.env, &unit, next)?,
            false => None,
        };
        let (lane, is_first) = match next {
            Next::First if on_replica.is_some() => (on_replica.map(|(lane, _)| lane), true),
            Next::First => (if unit.must_run_alone() { None } else { self.any_lane(&unit) }, true),
            Next::Follow => match self.lane {
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
            self.lanes_done()?;
        }
        if on_replica.is_none() {
            self.reads.leave_replica();
        }
        if unit.touches_sequence() {
            self.sequences = Sequences::Elsewhere;
        }
        let slot = self.env.answers(|answers| answers.reserve());
        let may_stay_open = unit.may_stay_open();
        let mut envelope = self.env.envelope(unit);
        let Some(lane) = lane else {
            self.begin_alone(envelope);
            return Ok(());
        };
        self.lane = Some((kind, lane));
        self.has_block_under_way |= may_stay_open;
        self.env.unit_packed();
        envelope.address(slot, !changes.is_empty());
        if let Some((_, floor)) = on_replica {
            envelope.set_floor(floor);
        }
        self.record_naming(slot, changes);
        self.env.submit(lane, is_first, envelope);
        Ok(())
    }

    /// A lane for a unit without earlier units of the session under way. None if its rows are under way in
    /// different lanes, or if the session has an open transaction in which the unit has to run.
    fn any_lane(&self, unit: &Packed<StatementOf<E>>) -> Option<LaneId> {
        if self.holding.is_some() { None } else { self.env.assign(unit, None) }
    }

    /// A lane has given back the earliest unfinished unit, to be submitted again, unless its client has cancelled it.
    pub fn resubmit(&mut self, envelope: E::Envelope, is_cancelled: bool) {
        if is_cancelled {
            self.refuse_returned(&envelope, &cancelled());
        } else if envelope.has_lost_credit() {
            self.begin_alone(envelope);
        } else {
            self.submit_again(envelope);
        }
    }

    /// Gives the earliest unfinished unit to a lane again.
    pub(super) fn submit_again(&mut self, envelope: E::Envelope) {
        self.reads.leave_replica();
        self.has_returned_units = true;
        let Some(lane) = self.any_lane(envelope.unit()) else { return self.begin_alone(envelope) };
        self.lane = Some((envelope.unit().kind(), lane));
        self.env.submit(lane, true, envelope);
    }

    /// Waits until it is known whether a transaction under way stays open. Called before the gateway gives an
    /// answer of its own that depends on it.
    pub(super) fn wait_for_blocks(&mut self) -> Result<(), Stop<E>> {
        if self.has_block_under_way {
            self.lanes_done()?;
            self.has_block_under_way = false;
        }
        Ok(())
    }
}
