//! Extended queries with no connection held: messages are gathered up to Sync, then go to a lane or are passed
//! through together.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hotrow_core::gather::{Form, Gather};
use hotrow_core::limits;
use hotrow_wire::backend::{self, Problem};
use hotrow_wire::frontend::{self, Named};
use hotrow_wire::{Frame, split};

use super::{End, Session};
use crate::statements::Statement;
use crate::unit::{Packed, Parts};

impl Session {
    /// A Sync: the unit is whole.
    pub(super) async fn sync(&mut self, frame: Frame<'_>, since: Instant) -> Result<(), End> {
        let mut gather = std::mem::take(&mut self.gather);
        if !self.run_unit(&gather, frame, since).await? {
            gather.push(frame);
            self.pass(gather.raw()).await?;
        }
        gather.clear();
        self.gather = gather;
        Ok(())
    }

    /// Answers a unit here or sends it to a lane. False if it has to be passed through.
    async fn run_unit(&mut self, gather: &Gather, sync: Frame<'_>, since: Instant) -> Result<bool, End> {
        let single = match gather.form()? {
            Form::Closes(closes) => {
                self.close_all(&closes);
                return Ok(true);
            }
            Form::Single(single) => single,
            Form::Other => return Ok(false),
        };
        let statement = match &single.parse {
            // A name that is taken is an error that the server has the right words for.
            Some(parse) if !parse.name.is_empty() && self.statements.contains_key(parse.name) => {
                return Ok(false);
            }
            Some(parse) => self.parsed_statement(parse),
            None => match self.statements.get(single.bind.statement) {
                Some(statement) => statement.clone(),
                None => return Ok(false),
            },
        };
        let packing = match self.packing(&statement).await {
            Ok(Some(packing)) => packing,
            Ok(None) => return Ok(false),
            Err(error) => {
                let problem = super::hold::problem(&error, false);
                self.refuse_query(&problem);
                return Ok(true);
            }
        };
        let parts = Parts {
            mailbox: &self.mailbox,
            statement: &statement,
            packing: &packing,
            raw: [gather.raw(), sync.bytes],
            since,
        };
        let packed = Packed::extended(parts, &single, &mut self.scratch);
        let (before, behind) = &single.closes;
        before.iter().for_each(|close| self.forget(close));
        if let Some(parse) = &single.parse {
            self.name_statement(parse.name, statement)?;
        }
        behind.iter().for_each(|close| self.forget(close));
        self.submit(packed).await?;
        Ok(true)
    }

    /// Statements that a lane has not seen fail are known by their names from now on. Should the Parse turn out to
    /// be wrong, the lane gives the unit back, and it is named, or not, by what the server then says.
    fn name_statement(&mut self, name: &[u8], statement: Arc<Statement>) -> Result<(), End> {
        if self.statements.len() >= limits::CLIENT_STATEMENTS_MAX {
            return Err(too_many_statements());
        }
        match self.statements.get_mut(name) {
            Some(there) => *there = statement,
            None => {
                self.statements.insert(Bytes::copy_from_slice(name), statement);
            }
        }
        Ok(())
    }

    fn close_all(&mut self, closes: &[Named<'_>]) {
        closes.iter().for_each(|close| self.forget(close));
        self.mailbox.append_in_turn(|out| {
            closes.iter().for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
            out.extend_from_slice(backend::READY_IDLE);
        });
    }

    /// Takes a connection and forwards what has been gathered so far.
    pub(super) async fn pass_gathered(&mut self) -> Result<(), End> {
        let mut gather = std::mem::take(&mut self.gather);
        self.pass(gather.raw()).await?;
        gather.clear();
        self.gather = gather;
        Ok(())
    }

    /// Takes a connection and forwards these messages; where none can be had the client is told, and what it sends
    /// up to its next Sync is ignored.
    async fn pass(&mut self, messages: &[u8]) -> Result<(), End> {
        match self.hold().await {
            Ok(()) => self.forward_all(messages).await,
            Err(End::Problem(problem)) if !problem.fatal => {
                self.mailbox.append_in_turn(|out| problem.put(out));
                if messages.ends_with(frontend::SYNC) {
                    self.ready_in_turn();
                } else {
                    self.skipping = true;
                }
                Ok(())
            }
            Err(end) => Err(end),
        }
    }

    /// Forwards whole messages one by one.
    pub(super) async fn forward_all(&mut self, messages: &[u8]) -> Result<(), End> {
        let mut rest = messages;
        while let Some(frame) = split(rest, |_| usize::MAX)? {
            self.forward(frame).await?;
            rest = &rest[frame.bytes.len()..];
        }
        Ok(())
    }

    /// A Close: the session doesn't know the statement any more.
    pub(super) fn forget(&mut self, close: &Named<'_>) {
        if close.statement {
            self.statements.remove(close.name);
        }
    }
}

/// One more named statement than a session may have.
pub(super) fn too_many_statements() -> End {
    let message = format!("more than {} prepared statements in one session", limits::CLIENT_STATEMENTS_MAX);
    End::Problem(Problem::fatal("53400", message, "Close statements that are not needed any more."))
}
