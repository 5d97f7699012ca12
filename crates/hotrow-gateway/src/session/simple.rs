//! Simple queries.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hotrow_core::classify::{Analysis, Effect};
use hotrow_core::limits;
use hotrow_wire::backend::{self, Problem, Status};
use hotrow_wire::{Frame, frontend, put_frame};

use super::forward::put_ready;
use super::submit::is_transaction;
use super::{Session, SessionEnd};
use crate::lane::{Packed, Plan};
use crate::server::held;
use crate::statements::Statement;

impl Session {
    /// Handles a Query while no connection is held.
    pub(super) async fn query(&mut self, frame: Frame<'_>, since: Instant) -> Result<(), SessionEnd> {
        if !self.gather.is_empty() {
            // An extended query without its Sync: the server handles the combination.
            return self.pass_gathered_with(frame).await;
        }
        self.wait_for_blocks().await?;
        if self.holding.is_some() {
            return self.forward(frame).await;
        }
        let statement = self.simple_statement(frontend::query(frame.body())?);
        if matches!(&statement.analysis, Analysis::Deallocate(_)) {
            self.drain_lanes().await?;
            if self.holding.is_some() {
                return self.forward(frame).await;
            }
        }
        if self.answer_here(&statement, Status::Idle) {
            self.remove_name(b""); // like the server at every Query
            return Ok(());
        }
        if frame.bytes.len() <= limits::UNIT_BYTES_MAX {
            match self.plan_query(&statement).await {
                Ok(Some(plans)) => {
                    let mut normaliser = std::mem::take(&mut self.normaliser);
                    let text = str::from_utf8(frontend::query(frame.body())?).unwrap_or_default();
                    let shape = normaliser.run(text);
                    let packed = Packed::simple([frame.bytes, &[]], plans, &shape, &mut self.scratch);
                    self.normaliser = normaliser;
                    let changes = self.unnamed_removal();
                    return self.submit(self.envelope(packed, since), changes).await;
                }
                Ok(None) => {}
                Err(error) => {
                    let problem = super::hold::problem(&error, false);
                    return self.refuse_statement(&statement, problem).await;
                }
            }
        }
        match self.acquire_connection().await {
            Ok(()) => self.forward_query(frame, statement).await,
            Err(SessionEnd::Problem(problem)) if !problem.fatal => {
                self.refuse_statement(&statement, problem).await
            }
            Err(end) => Err(end),
        }
    }

    async fn refuse_statement(&mut self, statement: &Statement, problem: Problem) -> Result<(), SessionEnd> {
        self.end_if_begin_failed(statement.leaves_open() == Some(true), &problem).await?;
        self.refuse_query(&problem);
        Ok(())
    }

    /// Called before an error of the gateway. If the error replaces the beginning of a transaction and the client has
    /// sent more, the session ends. Otherwise the later statements would run outside any transaction.
    pub(super) async fn end_if_begin_failed(
        &mut self,
        begins: bool,
        problem: &Problem,
    ) -> Result<(), SessionEnd> {
        if begins && (self.has_more || self.has_more_input().await) {
            return Err(SessionEnd::Problem(Problem { fatal: true, ..problem.clone() }));
        }
        Ok(())
    }

    /// Whether the client has sent more. Does not wait.
    async fn has_more_input(&mut self) -> bool {
        tokio::select! {
            biased;
            count = self.read.fill(&mut self.input) => matches!(count, Ok(1..)),
            () = std::future::ready(()) => false,
        }
    }

    /// The plans for running the statements of a text in a lane, with the ranges of their literals. None if they cannot
    /// run there.
    async fn plan_query(
        &self,
        statement: &Arc<Statement>,
    ) -> Result<Option<Vec<(Plan, Range<usize>)>>, held::Error> {
        if statement.pieces.is_empty() {
            return Ok(self.run_in_lane(statement).await?.map(|plan| vec![(plan, 0..usize::MAX)]));
        }
        if !self.packs() || statement.pieces.len() > limits::UNIT_STATEMENTS_MAX {
            return Ok(None);
        }
        let mut plans = Vec::with_capacity(statement.pieces.len());
        for (piece, literals) in &statement.pieces {
            let Some(plan) = self.plan(piece).await? else { return Ok(None) };
            plans.push((plan, literals.clone()));
        }
        Ok(is_transaction(plans.iter().map(|(plan, _)| plan)).then_some(plans))
    }

    /// The statement of a text. Clients often repeat a shape, so the last one is cached.
    pub(super) fn simple_statement(&mut self, text: &[u8]) -> Arc<Statement> {
        let Ok(text) = str::from_utf8(text) else {
            return self.pool.context.statements.extended(text, b"");
        };
        let shape = self.normaliser.run(text);
        if let Some((signature, statement)) = &self.last_simple
            && signature[..] == *shape.signature
            && statement.is_current()
        {
            return statement.clone();
        }
        let statement = self.pool.context.statements.simple(&shape);
        self.last_simple = Some((Bytes::copy_from_slice(shape.signature), statement.clone()));
        statement
    }

    /// Answers the commands that the gateway handles itself, in their turn. `status` is the session's.
    pub(super) fn answer_here(&mut self, statement: &Statement, status: Status) -> bool {
        let command = match &statement.analysis {
            Analysis::SetPack(on) => {
                self.set_pack(*on);
                "SET"
            }
            Analysis::ResetPack => {
                self.set_pack(true);
                "RESET"
            }
            Analysis::ShowPack => {
                self.show_pack(status);
                return true;
            }
            Analysis::Deallocate(name)
                if status != Status::Failed && self.expected.names.contains_key(name.as_bytes()) =>
            {
                self.expected.names.remove(name.as_bytes());
                "DEALLOCATE"
            }
            _ => return false,
        };
        self.mailbox.append_in_turn(|out| {
            backend::put_command_complete(out, command);
            put_ready(status, out);
        });
        true
    }

    /// Switches packing on or off for this session. If it is off, the session holds a connection from its next
    /// statement on.
    pub(super) fn set_pack(&mut self, on: bool) {
        self.pack = on;
    }

    /// Answers `show hotrow.pack`.
    fn show_pack(&self, status: Status) {
        let value = if self.packs() { "on" } else { "off" };
        self.mailbox.append_in_turn(|out| {
            put_frame(out, backend::tag::ROW_DESCRIPTION, |out| {
                out.extend_from_slice(b"\0\x01hotrow.pack\0");
                // No table, no column; text, variable length, no modifier, text format.
                out.extend_from_slice(&[
                    0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0,
                ]);
            });
            put_frame(out, backend::tag::DATA_ROW, |out| {
                out.extend_from_slice(&[0, 1, 0, 0, 0, value.len() as u8]);
                out.extend_from_slice(value.as_bytes());
            });
            backend::put_command_complete(out, "SHOW");
            put_ready(status, out);
        });
    }

    /// Answers a simple query with an error of the gateway, in its turn.
    pub(super) fn refuse_query(&mut self, problem: &Problem) {
        self.mailbox.append_in_turn(|out| {
            problem.put(out);
            out.extend_from_slice(backend::READY_IDLE);
        });
    }

    /// Answers ReadyForQuery in its turn.
    pub(super) fn ready_in_turn(&mut self) {
        self.mailbox.append_in_turn(|out| out.extend_from_slice(backend::READY_IDLE));
    }

    /// The state that a statement may leave on a held connection.
    pub(super) fn effect_of(statement: &Statement) -> Effect {
        match &statement.analysis {
            Analysis::Pass(pass) => pass.effect,
            // A statement that may share a connection leaves no state there, whatever its text suggests.
            Analysis::Candidate(_) => match statement.packing() {
                Some(packing) => Effect { touches_sequence: packing.touches_sequence, ..Effect::NONE },
                None => statement.effect,
            },
            // The gateway follows its own switch, even if the server answers the client.
            Analysis::SetPack(_) | Analysis::ResetPack | Analysis::ShowPack | Analysis::Deallocate(_) => {
                Effect::NONE
            }
        }
    }
}
