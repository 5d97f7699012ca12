//! Whether statements can run in a lane, each alone or as a transaction.

use std::sync::Arc;

use super::environment::Stop;
use super::planning::Planning;
use super::{Environment, Need, Session, Statement, StatementOf, Verdict};
use crate::classify::{Analysis, BlockCommand, Pass};
use crate::pack_mode::PackMode;
use crate::unit::Plan;

/// How a statement can be part of a unit.
pub(super) type PlanOf<E> = Plan<StatementOf<E>>;

/// Whether these are one transaction that a lane can run: statements with BEGIN and COMMIT around them, or
/// without.
pub(super) fn is_transaction<S>(plans: &[Plan<S>]) -> bool {
    let block_command = |plan: Option<&Plan<S>>| match plan {
        Some(Plan::BlockCommand(_, block_command)) => Some(*block_command),
        _ => None,
    };
    let runs = plans.iter().filter(|plan| matches!(plan, Plan::Run(..))).count();
    match block_command(plans.first()) {
        Some(BlockCommand::Begin(_)) => {
            runs > 0 && runs + 2 == plans.len() && block_command(plans.last()) == Some(BlockCommand::Commit)
        }
        _ => runs > 0 && runs == plans.len(),
    }
}

impl<E: Environment> Session<E> {
    /// The plan for running the statement in a lane, if it may run there.
    pub(super) fn run_in_lane(
        &self,
        planning: &Planning,
        statement: &StatementOf<E>,
    ) -> Result<Option<PlanOf<E>>, Stop<E>> {
        if !self.plans_units() || !statement.has_credit() {
            return Ok(None);
        }
        if !statement.is_superseded() {
            if let Verdict::Packed(packing) = self.verdict(planning, statement)? {
                return Ok(Some(Plan::Run(statement.clone(), packing)));
            }
            if !statement.is_superseded() {
                return Ok(None);
            }
        }
        let current = self.env.successor(statement);
        Ok(match self.verdict(planning, &current)? {
            Verdict::Packed(packing) if current.is_described_as(statement) => {
                Some(Plan::Run(current, packing))
            }
            _ => None,
        })
    }

    /// The verdict about a statement. While the catalog is asked about it, the statement is passed through, and does not wait. A
    /// call waits for its verdict in any case: a merge rule may say that it can wait at the server for long. In shadow mode nothing
    /// waits.
    pub(super) fn verdict(&self, _: &Planning, statement: &StatementOf<E>) -> Result<Verdict, Stop<E>> {
        let provided = &self.provided;
        if let Some((_, verdict)) = provided.verdicts.iter().find(|(of, _)| Arc::ptr_eq(of, statement)) {
            return Ok(verdict.clone());
        }
        if self.pack_mode() == PackMode::Shadow {
            return Ok(self.env.early_verdict(statement).unwrap_or(Verdict::Pass));
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
    pub(super) fn plan(
        &self,
        planning: &Planning,
        statement: &StatementOf<E>,
    ) -> Result<Option<PlanOf<E>>, Stop<E>> {
        match &statement.analysis {
            Analysis::Pass(Pass { block_command: Some(block_command), .. }) if self.plans_units() => {
                Ok(Some(Plan::BlockCommand(statement.clone(), *block_command)))
            }
            _ => self.run_in_lane(planning, statement),
        }
    }
}
