//! Sends a session's units to lanes and handles those that come back. The units keep their order, whichever lanes they
//! use.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_core::classify::{Analysis, Boundary, Pass};
use hotrow_core::limits;
use hotrow_core::session::Next;

use super::names::Change;
use super::{Sequences, Session, SessionEnd};
use crate::lane::Returned;
use crate::lane::Unblock;
use crate::lane::{Envelope, Packed, Plan};
use crate::server::held;
use crate::statements::{Statement, Verdict};

/// Whether these are one transaction that a lane can run: statements with BEGIN and COMMIT around them, or without.
pub(super) fn is_transaction<'p>(plans: impl Iterator<Item = &'p Plan> + Clone) -> bool {
    let boundary = |plan: Option<&Plan>| match plan {
        Some(Plan::Boundary(_, boundary)) => Some(*boundary),
        _ => None,
    };
    let count = plans.clone().count();
    let runs = plans.clone().filter(|plan| matches!(plan, Plan::Run(..))).count();
    match boundary(plans.clone().next()) {
        Some(Boundary::Begin(_)) => {
            runs > 0 && runs + 2 == count && boundary(plans.last()) == Some(Boundary::Commit)
        }
        _ => runs > 0 && runs == count,
    }
}

impl Session {
    /// The plan for running the statement in a lane, if it may run there.
    pub(super) async fn run_in_lane(&self, statement: &Arc<Statement>) -> Result<Option<Plan>, held::Error> {
        if !self.packs() || !statement.has_credit() {
            return Ok(None);
        }
        if !statement.is_superseded() {
            if let Verdict::Packed(packing) = self.pool.verdict(statement).await? {
                return Ok(Some(Plan::Run(statement.clone(), packing)));
            }
            if !statement.is_superseded() {
                return Ok(None);
            }
        }
        let current = self.pool.context.statements.successor(statement);
        Ok(match self.pool.verdict(&current).await? {
            Verdict::Packed(packing) if current.is_described_as(statement) => {
                Some(Plan::Run(current, packing))
            }
            _ => None,
        })
    }

    /// The plan for the statement as a part of a unit, if it may be one.
    pub(super) async fn plan(&self, statement: &Arc<Statement>) -> Result<Option<Plan>, held::Error> {
        match &statement.analysis {
            Analysis::Pass(Pass { boundary: Some(boundary), .. }) if self.packs() => {
                Ok(Some(Plan::Boundary(statement.clone(), *boundary)))
            }
            _ => self.run_in_lane(statement).await,
        }
    }

    /// An envelope for a unit that arrived at this time.
    pub(super) fn envelope(&self, unit: Packed, came: Instant) -> Envelope {
        Envelope::new(unit, self.mailbox.clone(), came)
    }

    /// Sends a unit to a lane. It must not overtake the session's earlier units: if they are in another lane, the unit
    /// waits for them. A unit whose rows are under way in different lanes runs alone. `changes` are its changes of
    /// names if a lane runs it.
    pub(super) async fn submit(
        &mut self,
        mut packed: Envelope,
        changes: Vec<Change>,
    ) -> Result<(), SessionEnd> {
        let kind = packed.unit.kind();
        if packed.unit.touches_sequence() {
            self.sequences = Sequences::Elsewhere;
        }
        if packed.unit.must_run_alone() {
            self.drain_lanes().await?;
            self.mailbox.reserve();
            return self.run_alone_and_finish(&packed).await;
        }
        packed.cancels = self.control.cancels();
        let (lane, first) = loop {
            match self.mailbox.next() {
                Next::First => {
                    let Some(lane) = self.any_lane(&packed) else {
                        self.mailbox.reserve();
                        return self.run_alone_and_finish(&packed).await;
                    };
                    break (lane, true);
                }
                Next::Follow => {
                    if let Some((under_way, lane)) = self.lane
                        && under_way == kind
                        && self.pool.context.assign(&packed.unit, Some(lane)).is_some()
                    {
                        break (lane, false);
                    }
                }
                Next::Wait => {}
            }
            self.drain_lanes().await?;
        };
        self.lane = Some((kind, lane));
        self.has_block_under_way |= packed.unit.may_stay_open();
        self.control.activity.count_packed();
        packed.slot = self.mailbox.reserve();
        packed.changes_names = !changes.is_empty();
        self.record_naming(packed.slot, changes);
        self.pool.submit(lane, self.mailbox.session, first, packed);
        Ok(())
    }

    /// A lane for a unit without earlier units of the session under way. None if its rows are under way in different
    /// lanes, or if the session has an open transaction in which the unit has to run.
    fn any_lane(&self, packed: &Envelope) -> Option<usize> {
        if self.holding.is_some() { None } else { self.pool.context.assign(&packed.unit, None) }
    }

    /// Waits until it is known whether a transaction under way stays open. Called before the gateway gives an answer of
    /// its own that depends on it.
    pub(super) async fn wait_for_blocks(&mut self) -> Result<(), SessionEnd> {
        if std::mem::take(&mut self.has_block_under_way) { self.drain_lanes().await } else { Ok(()) }
    }

    /// Runs the earliest unfinished unit on a connection of the session.
    async fn run_alone_and_finish(&mut self, packed: &Envelope) -> Result<(), SessionEnd> {
        let result = self.run_alone(packed).await;
        if !matches!(result, Err(SessionEnd::Server)) {
            // otherwise nothing may follow the part of the answer that the client has
            self.mailbox.finish_front();
        }
        result
    }

    /// Handles a unit that a lane has given back. It is the earliest unfinished unit.
    pub(super) async fn handle_returned(&mut self, slot: u64, returned: Returned) -> Result<(), SessionEnd> {
        self.has_returned_units = true;
        match returned {
            Returned::Resubmit(packed) => {
                // the lane may have given it back because the client does not read
                self.wait_for_room().await?;
                if packed.has_lost_credit() {
                    return self.run_alone_and_finish(&packed).await;
                }
                self.submit_again(slot, packed).await
            }
            Returned::Wait(packed, wait) => self.wait_with_call(slot, packed, wait).await,
            Returned::RunAlone(packed, unblock) => {
                let result = if packed.unit.may_wait() && unblock.is_some() {
                    self.alone_unless_long(&packed, unblock).await
                } else {
                    let result = self.run_alone_and_finish(&packed).await;
                    drop(unblock);
                    result
                };
                result?;
                self.mailbox.try_write()?; // the client gets its answer even if later units still wait
                Ok(())
            }
        }
    }

    /// Runs a call that may wait alone. If it takes long, it has the lock and waits, and other calls no longer wait for
    /// it.
    async fn alone_unless_long(
        &mut self,
        packed: &Envelope,
        unblock: Option<Unblock>,
    ) -> Result<(), SessionEnd> {
        let alone = self.run_alone_and_finish(packed);
        tokio::pin!(alone);
        let limit = Duration::from_millis(limits::WAITING_ALONE_MS_MAX);
        let in_time = tokio::time::timeout(limit, &mut alone).await;
        drop(unblock);
        match in_time {
            Ok(result) => result,
            Err(_) => alone.await,
        }
    }

    /// Gives the earliest unfinished unit to a lane again.
    pub(super) async fn submit_again(&mut self, slot: u64, mut packed: Envelope) -> Result<(), SessionEnd> {
        let Some(lane) = self.any_lane(&packed) else {
            return self.run_alone_and_finish(&packed).await;
        };
        self.lane = Some((packed.unit.kind(), lane));
        packed.slot = slot;
        self.pool.submit(lane, self.mailbox.session, true, packed);
        Ok(())
    }
}
