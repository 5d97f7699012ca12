//! Extended queries while the session holds no connection: messages are gathered up to Sync, then go to a lane
//! or are passed through together.

use hotrow_wire::Frame;
use hotrow_wire::backend;
use hotrow_wire::frontend::{self, Bind, Parse, tag};

use super::environment::Stop;
use super::names::{self, Unnamed};
use super::plan::{PlanOf, is_transaction};
use super::planning::{Handled, Performing, Planning};
use super::simple::returns_rows;
use super::{Environment, Need, Session, Statement};
use crate::limits;
use crate::unit::gather::{Gather, Gathered, Single};
use crate::unit::{Packed, Plan};

impl<E: Environment> Session<E> {
    /// Handles a Sync: the unit is complete.
    pub(super) fn sync(
        &mut self,
        planning: Planning,
        frame: Frame<'_>,
        behind: &[u8],
    ) -> Result<(), Stop<E>> {
        self.wait_for_blocks(&planning)?;
        let gather = std::mem::take(&mut self.gather);
        // The wait for a connection may have been cancelled, and a verdict may be there by now.
        let handled = match self.provided.no_connection.is_none() {
            true => self.run_unit(planning, &gather, frame),
            false => Ok(Handled::Continue(planning)),
        };
        self.gather = gather;
        let planning = match handled? {
            Handled::Break(()) => {
                self.gather.clear();
                return Ok(());
            }
            Handled::Continue(planning) => planning,
        };
        self.describe_first();
        let problem = self.connect(&planning)?;
        self.refuse_unit(planning, frame, behind, &problem)
    }

    /// Whether this is the first message of a unit, and names a statement that is always passed through.
    pub(super) fn begins_passed(&mut self, frame: Frame<'_>) -> Result<bool, Stop<E>> {
        // The gateway may answer a BEGIN, and the first statement of a transaction may have to wait for its turn.
        if !self.gather.is_empty() || self.phase.begun().is_some() {
            return Ok(false);
        }
        let statement = match frame.tag {
            tag::PARSE => Some(self.texts.parsed(&self.env, &Parse::read(frame.body())?)),
            _ => {
                let named = self.names.get(Bind::read(frame.body())?.statement);
                named.map(|named| named.statement.clone())
            }
        };
        Ok(statement.is_some_and(|statement| {
            let is_answered_here = statement.begins_empty()
                || statement.is_empty()
                || self.knows_reply(&statement)
                || self.keeps_settings(&statement)
                || self.leads_to(&statement).is_some();
            let answers_here = self.sends_to_lanes() && is_answered_here;
            !self.plans_units() || self.env.passes(&statement) && !answers_here
        }))
    }

    /// Answers a unit or sends it to a lane. Otherwise it has to be passed through.
    fn run_unit(&mut self, planning: Planning, gather: &Gather, sync: Frame<'_>) -> Result<Handled, Stop<E>> {
        if self.renaming.concerns(&self.env, &mut self.names, gather) {
            self.lanes_done(&planning)?;
        }
        let (single, several);
        let statements: &[Single<'_>] = match gather.form()? {
            Gathered::Closes(closes) => {
                self.catch_up(&planning)?;
                self.close_all(&planning.perform(), &closes);
                return Ok(Handled::Break(()));
            }
            Gathered::Single(one) => {
                single = [one];
                &single
            }
            Gathered::Several(statements) if self.plans_units() => {
                several = statements;
                &several
            }
            Gathered::Several(_) | Gathered::Other => return Ok(Handled::Continue(planning)),
        };
        let Some(plans) = self.plan_all(&planning, statements, Unnamed::Kept)? else {
            return match statements {
                [single] => self.begin_by(planning, single),
                _ => Ok(Handled::Continue(planning)),
            };
        };
        if !self.packs() {
            let raw = [gather.raw(), sync.bytes];
            let planned = Packed::extended(raw, statements.iter().zip(plans), &mut self.scratch);
            self.shadow(&planned, statements.len());
            return Ok(Handled::Continue(planning));
        }
        let run = statements.iter().zip(plans.iter().map(Plan::statement));
        let changes = self.renaming.changes(&self.env, &self.names, self.parsing(), run)?;
        let raw = [gather.raw(), sync.bytes];
        let packed = Packed::extended(raw, statements.iter().zip(plans), &mut self.scratch);
        self.submit(planning, packed, changes)?;
        Ok(Handled::Break(()))
    }

    /// The plans for running the statements of a unit in a lane; none if they cannot run there.
    pub(super) fn plan_all(
        &mut self,
        planning: &Planning,
        statements: &[Single<'_>],
        unnamed: Unnamed,
    ) -> Result<Option<Vec<PlanOf<E>>>, Stop<E>> {
        let mut plans: Vec<PlanOf<E>> = Vec::with_capacity(statements.len());
        for (place, single) in statements.iter().enumerate() {
            let (names, before) = (&self.names, (&statements[..place], &plans[..]));
            let bound = names::statement_of(&self.env, names, &mut self.texts, single, before, unnamed);
            let Some((statement, resolved)) = bound else { return Ok(None) };
            let Some(plan) = self.plan(planning, &statement)? else { return Ok(None) };
            let types = plan.statement().parameter_types();
            let has_types = resolved.is_none_or(|resolved| types.as_ref() == Some(&resolved.types));
            if !has_types || single.rows_max > 0 && returns_rows(&plan) {
                return Ok(None);
            }
            plans.push(plan);
        }
        Ok(is_transaction(&plans).then_some(plans))
    }

    fn close_all(&mut self, performing: &Performing, closes: &[frontend::ObjectName<'_>]) {
        self.append_in_turn(performing, |out| {
            closes.iter().for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
        });
        self.ready_in_turn(performing);
        if closes.iter().any(|close| !close.statement && close.name.is_empty()) {
            self.close_begun_portal();
        }
        for close in closes.iter().filter(|close| close.statement) {
            self.renaming.remove(&self.env, &mut self.names, close.name);
        }
    }

    /// Makes sure that the statement of a long Query or Parse is known. `offset` is where the message begins,
    /// after the message that is being handled.
    pub(super) fn classify_long(
        &mut self,
        _: &Planning,
        frame: Frame<'_>,
        offset: usize,
    ) -> Result<(), Stop<E>> {
        let end = offset + frame.bytes.len();
        if frame.bytes.len() <= limits::CLASSIFIED_INLINE_BYTES_MAX || self.provided.classified >= end {
            return Ok(());
        }
        let Some(text) = self.texts.unknown_long(&self.env, frame)? else { return Ok(()) };
        self.provided.classified = end;
        Err(Stop::Need(Need::Classified(text)))
    }
}
