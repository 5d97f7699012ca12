//! Extended queries while the session holds no connection: messages are gathered up to Sync, then go to a lane or are
//! passed through together.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hotrow_core::limits;
use hotrow_core::unit::gather::{Gather, Gathered, Single};
use hotrow_wire::backend::{self, Problem};
use hotrow_wire::frontend::{self, Bind, Named, Parse, tag};
use hotrow_wire::{Frame, split};

use super::names::Change;
use super::submit::is_transaction;
use super::{Session, SessionEnd};
use crate::lane::{Packed, Plan};
use crate::server::held;
use crate::statements::Statement;

impl Session {
    /// Handles a Sync: the unit is complete.
    pub(super) async fn sync(&mut self, frame: Frame<'_>, since: Instant) -> Result<(), SessionEnd> {
        self.wait_for_blocks().await?;
        let mut gather = std::mem::take(&mut self.gather);
        if self.depends_on_lanes(&gather) {
            self.drain_lanes().await?;
        }
        if self.holding.is_some() || !self.run_unit(&gather, frame, since).await? {
            gather.push(frame);
            self.pass(gather.raw()).await?;
        }
        gather.clear();
        self.gather = gather;
        Ok(())
    }

    /// Whether this is the first message of a unit, and names a statement that is always passed through.
    pub(super) fn begins_passed(&mut self, frame: Frame<'_>, now: Instant) -> Result<bool, SessionEnd> {
        if !self.gather.is_empty() {
            return Ok(false);
        }
        let statement = match frame.tag {
            tag::PARSE => Some(self.parsed_statement(&Parse::read(frame.body())?)),
            _ => self.statement_now(Bind::read(frame.body())?.statement),
        };
        Ok(statement.is_some_and(|statement| !self.packs() || self.pool.passes(&statement, now)))
    }

    /// Answers a unit or sends it to a lane. False if it has to be passed through.
    async fn run_unit(
        &mut self,
        gather: &Gather,
        sync: Frame<'_>,
        since: Instant,
    ) -> Result<bool, SessionEnd> {
        let (single, several);
        let statements: &[Single<'_>] = match gather.form()? {
            Gathered::Closes(closes) => {
                self.close_all(&closes);
                return Ok(true);
            }
            Gathered::Single(one) => {
                single = [one];
                &single
            }
            Gathered::Several(statements) if self.packs() => {
                several = statements;
                &several
            }
            Gathered::Several(_) | Gathered::Other => return Ok(false),
        };
        let plans = match self.plan_all(statements).await {
            Ok(Some(plans)) => plans,
            Ok(None) => return Ok(false),
            Err(error) => {
                let problem = super::hold::problem(&error, false);
                let (begins, _) = self.leave_open(gather.raw(), false);
                self.end_if_begin_failed(begins, &problem).await?;
                self.refuse_query(&problem);
                return Ok(true);
            }
        };
        let changes = self.changes(statements, &plans)?;
        let raw = [gather.raw(), sync.bytes];
        let packed = Packed::extended(raw, statements.iter().zip(plans), &mut self.scratch);
        self.submit(self.envelope(packed, since), changes).await?;
        Ok(true)
    }

    /// The plans for running the statements of a unit in a lane; none if they cannot run there.
    pub(super) async fn plan_all(
        &mut self,
        statements: &[Single<'_>],
    ) -> Result<Option<Vec<Plan>>, held::Error> {
        let mut plans: Vec<Plan> = Vec::with_capacity(statements.len());
        for (place, single) in statements.iter().enumerate() {
            let Some(statement) = self.statement_of(single, &statements[..place], &plans) else {
                return Ok(None);
            };
            match self.plan(&statement).await? {
                Some(Plan::Run(_, packing)) if single.rows_max > 0 && packing.returns_rows => {
                    return Ok(None);
                }
                Some(plan) => plans.push(plan),
                None => return Ok(None),
            }
        }
        Ok(is_transaction(plans.iter()).then_some(plans))
    }

    /// The statement that a Bind means, after the earlier statements of its unit. None if the server has to report an
    /// error.
    fn statement_of(
        &mut self,
        single: &Single<'_>,
        before: &[Single<'_>],
        plans: &[Plan],
    ) -> Option<Arc<Statement>> {
        let name = single.bind.statement;
        let closes = |closes: &[Named<'_>]| closes.iter().any(|close| close.statement && close.name == name);
        // The last change of the name in the unit counts.
        let mut there = self.statement_now(name);
        for (earlier, plan) in before.iter().zip(plans) {
            if closes(&earlier.closes.0) {
                there = None;
            }
            if earlier.parse.as_ref().is_some_and(|parse| parse.name == name) {
                there = Some(plan.statement().clone());
            }
            if closes(&earlier.closes.1) {
                there = None;
            }
        }
        match &single.parse {
            // A name that is in use is an error.
            Some(_) if !name.is_empty() && there.is_some() && !closes(&single.closes.0) => None,
            Some(parse) => Some(self.parsed_statement(parse)),
            None => there,
        }
    }

    /// The present meaning of the client's name.
    fn statement_now(&self, name: &[u8]) -> Option<Arc<Statement>> {
        self.expected.names.get(name).map(|named| named.statement.clone())
    }

    /// The changes of names by a unit that runs in a lane.
    fn changes(&self, statements: &[Single<'_>], plans: &[Plan]) -> Result<Vec<Change>, SessionEnd> {
        let mut changes = Vec::new();
        let closed = |close: &Named<'_>| close.statement.then(|| (Bytes::copy_from_slice(close.name), None));
        for (single, plan) in statements.iter().zip(plans) {
            changes.extend(single.closes.0.iter().filter_map(closed));
            if let Some(parse) = &single.parse {
                let named = self.pool.context.statements.named(plan.statement().clone());
                changes.push((Bytes::copy_from_slice(parse.name), Some(named)));
                if self.expected.names.len() + self.naming.len() >= limits::CLIENT_STATEMENTS_MAX {
                    return Err(too_many_statements());
                }
            }
            changes.extend(single.closes.1.iter().filter_map(closed));
        }
        Ok(changes)
    }

    fn close_all(&mut self, closes: &[Named<'_>]) {
        self.mailbox.append_in_turn(|out| {
            closes.iter().for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
            out.extend_from_slice(backend::READY_IDLE);
        });
        closes.iter().filter(|close| close.statement).for_each(|close| self.remove_name(close.name));
    }

    /// Acquires a connection and forwards the gathered messages.
    pub(super) async fn pass_gathered(&mut self) -> Result<(), SessionEnd> {
        let mut gather = std::mem::take(&mut self.gather);
        self.pass(gather.raw()).await?;
        gather.clear();
        self.gather = gather;
        Ok(())
    }

    /// The same with one more message. If there is no connection, the client gets an error, and its messages up to the
    /// next Sync are ignored.
    pub(super) async fn pass_gathered_with(&mut self, frame: Frame<'_>) -> Result<(), SessionEnd> {
        self.pass_gathered().await?;
        if self.holding.is_some() { self.forward_all(frame.bytes).await } else { Ok(()) }
    }

    /// Forwards the first message of a complete unit, if nothing is gathered. The caller forwards the messages behind
    /// it.
    pub(super) async fn pass_first(&mut self, frame: Frame<'_>, behind: &[u8]) -> Result<(), SessionEnd> {
        match self.acquire_connection().await {
            Ok(()) => self.forward(frame).await,
            Err(SessionEnd::Problem(problem)) if !problem.fatal => {
                let (begins, _) = self.leave_open(frame.bytes, false);
                let (begins, next) = self.leave_open(behind, begins);
                self.has_more = !next.is_empty();
                self.refuse_unit(begins, false, &problem).await
            }
            Err(end) => Err(end),
        }
    }

    /// Acquires a connection and forwards these messages. If there is no connection, the client gets an error, and its
    /// messages up to the next Sync are ignored.
    pub(super) async fn pass(&mut self, messages: &[u8]) -> Result<(), SessionEnd> {
        match self.acquire_connection().await {
            Ok(()) => self.forward_all(messages).await,
            Err(SessionEnd::Problem(problem)) if !problem.fatal => {
                let (begins, _) = self.leave_open(messages, false);
                self.refuse_unit(begins, messages.ends_with(frontend::SYNC), &problem).await
            }
            Err(end) => Err(end),
        }
    }

    /// Reports to the client that its unit gets no connection. Messages of the unit that have not arrived are ignored.
    async fn refuse_unit(
        &mut self,
        begins: bool,
        is_whole: bool,
        problem: &Problem,
    ) -> Result<(), SessionEnd> {
        self.end_if_begin_failed(begins, problem).await?;
        self.mailbox.append_in_turn(|out| problem.put(out));
        if is_whole {
            self.ready_in_turn();
        } else {
            self.skipping = true;
        }
        Ok(())
    }

    /// Whether a transaction is open after these messages up to their first Sync, if one is open before them or not.
    /// Also returns the messages after that Sync.
    fn leave_open<'m>(&mut self, mut messages: &'m [u8], mut open: bool) -> (bool, &'m [u8]) {
        while let Ok(Some(frame)) = split(messages, |_| usize::MAX) {
            messages = &messages[frame.bytes.len()..];
            let statement = match frame.tag {
                tag::PARSE => Parse::read(frame.body()).ok().map(|parse| self.parsed_statement(&parse)),
                tag::BIND => {
                    let bind = Bind::read(frame.body()).ok();
                    bind.and_then(|bind| self.statement_now(bind.statement))
                }
                tag::SYNC => break,
                _ => None,
            };
            open = statement.and_then(|statement| statement.leaves_open()).unwrap_or(open);
        }
        (open, messages)
    }
}

/// The error for a session with too many named statements.
pub(super) fn too_many_statements() -> SessionEnd {
    let message = format!("more than {} prepared statements in one session", limits::CLIENT_STATEMENTS_MAX);
    SessionEnd::Problem(Problem::fatal("53400", message, "Close statements that are not needed any more."))
}
