//! Extended queries while the session holds no connection: messages are gathered up to Sync, then go to a lane
//! or are passed through together.

use std::sync::Arc;

use bytes::Bytes;
use hotrow_wire::Frame;
use hotrow_wire::backend;
use hotrow_wire::frontend::{self, Bind, Parse, tag};

use super::environment::Stop;
use super::names::Change;
use super::simple::returns_rows;
use super::submit::{PlanOf, is_transaction};
use super::{Environment, Named, Need, Resolved, Session, Statement, StatementOf, too_many_statements};
use crate::limits;
use crate::settings::Reading;
use crate::unit::gather::{Gather, Gathered, Single};
use crate::unit::{Packed, Plan};

/// The statement that a Bind means, and the types that its parameters have to have.
type BoundStatement<S> = (Arc<S>, Option<Arc<Resolved<S>>>);

impl<E: Environment> Session<E> {
    /// Handles a Sync: the unit is complete.
    pub(super) fn sync(&mut self, frame: Frame<'_>, behind: &[u8]) -> Result<(), Stop<E>> {
        self.wait_for_blocks()?;
        let gather = std::mem::take(&mut self.gather);
        // The wait for a connection may have been cancelled, and a verdict may be there by now.
        let handled =
            if self.provided.no_connection.is_none() { self.run_unit(&gather, frame) } else { Ok(false) };
        self.gather = gather;
        let problem = match handled {
            Ok(true) => {
                self.gather.clear();
                return Ok(());
            }
            Ok(false) => {
                self.describe_first();
                self.connect()?
            }
            Err(stop) => return Err(stop),
        };
        self.refuse_unit(frame, behind, &problem)
    }

    /// Whether this is the first message of a unit, and names a statement that is always passed through.
    pub(super) fn begins_passed(&mut self, frame: Frame<'_>) -> Result<bool, Stop<E>> {
        // The gateway may answer a BEGIN, and the first statement of a transaction may have to wait for its turn.
        if !self.gather.is_empty() || self.begun.is_some() {
            return Ok(false);
        }
        let statement = match frame.tag {
            tag::PARSE => Some(self.texts.parsed(&self.env, &Parse::read(frame.body())?)),
            _ => self.statement_now(Bind::read(frame.body())?.statement),
        };
        Ok(statement.is_some_and(|statement| {
            let is_answered_here = statement.begins_empty()
                || statement.is_empty()
                || self.knows_reply(&statement)
                || self.keeps_settings(&statement)
                || self.leads_to(&statement).is_some();
            !self.sends_to_lanes() || self.env.passes(&statement) && !is_answered_here
        }))
    }

    /// Answers a unit or sends it to a lane. False if it has to be passed through.
    fn run_unit(&mut self, gather: &Gather, sync: Frame<'_>) -> Result<bool, Stop<E>> {
        if self.depends_on_lanes(gather) {
            self.lanes_done()?;
        }
        let (single, several);
        let statements: &[Single<'_>] = match gather.form()? {
            Gathered::Closes(closes) => {
                self.catch_up()?;
                self.close_all(&closes);
                return Ok(true);
            }
            Gathered::Single(one) => {
                single = [one];
                &single
            }
            Gathered::Several(statements) if self.sends_to_lanes() => {
                several = statements;
                &several
            }
            Gathered::Several(_) | Gathered::Other => return Ok(false),
        };
        let Some(plans) = self.plan_all(statements)? else {
            return match statements {
                [single] => self.begin_by(single),
                _ => Ok(false),
            };
        };
        let changes = self.changes(statements.iter().zip(plans.iter().map(Plan::statement)))?;
        let raw = [gather.raw(), sync.bytes];
        let packed = Packed::extended(raw, statements.iter().zip(plans), &mut self.scratch);
        self.submit(packed, changes)?;
        Ok(true)
    }

    /// The plans for running the statements of a unit in a lane; none if they cannot run there.
    pub(super) fn plan_all(&mut self, statements: &[Single<'_>]) -> Result<Option<Vec<PlanOf<E>>>, Stop<E>> {
        let mut plans: Vec<PlanOf<E>> = Vec::with_capacity(statements.len());
        for (place, single) in statements.iter().enumerate() {
            let Some((statement, resolved)) = self.statement_of(single, &statements[..place], &plans) else {
                return Ok(None);
            };
            let Some(plan) = self.plan(&statement)? else { return Ok(None) };
            let types = plan.statement().parameter_types();
            let has_types = resolved.is_none_or(|resolved| types.as_ref() == Some(&resolved.types));
            if !has_types || single.rows_max > 0 && returns_rows(&plan) {
                return Ok(None);
            }
            plans.push(plan);
        }
        Ok(is_transaction(&plans).then_some(plans))
    }

    /// The statement that a Bind means after the earlier statements of its unit. None if the server has to report an
    /// error.
    pub(super) fn statement_of(
        &mut self,
        single: &Single<'_>,
        before: &[Single<'_>],
        plans: &[PlanOf<E>],
    ) -> Option<BoundStatement<E::Statement>> {
        let name = single.bind.statement;
        let closes = |closes: &[frontend::ObjectName<'_>]| {
            closes.iter().any(|close| close.statement && close.name == name)
        };
        // The last change of the name in the unit counts.
        let named = self.expected.names.get(name);
        let mut there = named.map(|named| (named.statement.clone(), named.resolved.clone()));
        for (earlier, plan) in before.iter().zip(plans) {
            if closes(&earlier.closes.0) {
                there = None;
            }
            if earlier.parse.as_ref().is_some_and(|parse| parse.name == name) {
                there = Some((plan.statement().clone(), None));
            }
            if closes(&earlier.closes.1) {
                there = None;
            }
        }
        match &single.parse {
            // A name that is in use is an error.
            Some(_) if !name.is_empty() && there.is_some() && !closes(&single.closes.0) => None,
            Some(parse) => Some((self.texts.parsed(&self.env, parse), None)),
            None => there,
        }
    }

    /// The changes of names by a unit that runs in a lane.
    pub(super) fn changes<'s>(
        &self,
        statements: impl Iterator<Item = (&'s Single<'s>, &'s StatementOf<E>)>,
    ) -> Result<Vec<Change<E::Statement>>, Stop<E>>
    where
        E: 's,
    {
        let mut changes = Vec::new();
        let closed = |close: &frontend::ObjectName<'_>| {
            close.statement.then(|| (Bytes::copy_from_slice(close.name), None))
        };
        for (single, statement) in statements {
            changes.extend(single.closes.0.iter().filter_map(closed));
            if let Some(parse) = &single.parse {
                let named = self.newly_named(statement, parse.text, statement.parameter_types());
                changes.push((Bytes::copy_from_slice(parse.name), Some(named)));
                if self.expected.names.len() + self.naming.len() >= limits::CLIENT_STATEMENTS_MAX {
                    return Err(too_many_statements().into());
                }
            }
            changes.extend(single.closes.1.iter().filter_map(closed));
        }
        Ok(changes)
    }

    /// The meaning of a name that the client gives to this statement now, with this text, if its parameters have these types.
    pub(super) fn newly_named(
        &self,
        statement: &StatementOf<E>,
        text: &[u8],
        types: Option<Bytes>,
    ) -> Named<E::Statement> {
        Named {
            statement: statement.clone(),
            text: statement.text_of(text),
            parsed: self.env.next_parse(),
            resolved: types.map(Resolved::new),
            only_here: self.reading() != Reading::AsPool && !statement.is_read_alike,
        }
    }

    fn close_all(&mut self, closes: &[frontend::ObjectName<'_>]) {
        self.append_in_turn(|out| {
            closes.iter().for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
        });
        self.ready_in_turn();
        if closes.iter().any(|close| !close.statement && close.name.is_empty()) {
            self.close_begun_portal();
        }
        closes.iter().filter(|close| close.statement).for_each(|close| self.remove_name(close.name));
    }

    /// Forwards the gathered messages on the connection that the session holds.
    pub(super) fn forward_gathered(&mut self) -> Result<(), Stop<E>> {
        let mut gather = std::mem::take(&mut self.gather);
        let mut sent = 0;
        let forwarded = self.forward_all(gather.raw(), &mut sent);
        gather.drop_first(sent);
        self.gather = gather;
        forwarded
    }

    /// Makes sure that the statement of a long Query or Parse is known. `offset` is where the message begins,
    /// after the message that is being handled.
    pub(super) fn classify_long(&mut self, frame: Frame<'_>, offset: usize) -> Result<(), Stop<E>> {
        let end = offset + frame.bytes.len();
        if frame.bytes.len() <= limits::CLASSIFIED_INLINE_BYTES_MAX || self.provided.classified >= end {
            return Ok(());
        }
        let Some(text) = self.texts.unknown_long(&self.env, frame)? else { return Ok(()) };
        self.provided.classified = end;
        Err(Stop::Need(Need::Classified(text)))
    }
}
