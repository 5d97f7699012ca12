//! Extended queries with no connection held: messages are gathered up to Sync, then go to a lane or are passed
//! through together.

use std::time::Instant;

use bytes::Bytes;
use hotrow_core::gather::Form;
use hotrow_core::limits;
use hotrow_wire::backend::{self, Problem};
use hotrow_wire::frontend::Named;
use hotrow_wire::{Frame, split};

use super::{End, Session};
use crate::unit::{Packed, Parts};

impl Session {
    /// A Sync: the unit is whole.
    pub(super) async fn sync(&mut self, frame: Frame<'_>, since: Instant) -> Result<(), End> {
        let packed = match self.gather.form()? {
            Form::Closes(closes) => {
                let closes: Vec<_> = closes
                    .into_iter()
                    .map(|close| (close.statement, Bytes::copy_from_slice(close.name)))
                    .collect();
                self.gather.clear();
                self.close_all(closes);
                return Ok(());
            }
            Form::Single(single) => {
                let statement = match &single.parse {
                    // A name that is taken is an error that the server has the right words for.
                    Some(parse) if !parse.name.is_empty() && self.statements.contains_key(parse.name) => None,
                    Some(parse) => Some(self.pool.statements.extended(parse.text, parse.types)),
                    None => self.statements.get(single.bind.statement).cloned(),
                };
                match statement {
                    None => None,
                    Some(statement) => match self.pool.verdict(&statement).await {
                        Ok(crate::statements::Verdict::Packed(packing))
                            if self.packs() && statement.has_credit() =>
                        {
                            let parts = Parts {
                                mailbox: &self.mailbox,
                                statement: &statement,
                                packing: &packing,
                                raw: [self.gather.raw(), frame.bytes],
                                since,
                            };
                            let packed = Packed::extended(parts, &single, &mut self.scratch);
                            let named = single.parse.as_ref().map(|parse| Bytes::copy_from_slice(parse.name));
                            let closed: Vec<_> = [&single.closes.0, &single.closes.1]
                                .into_iter()
                                .flatten()
                                .filter(|close| close.statement)
                                .map(|close| Bytes::copy_from_slice(close.name))
                                .collect();
                            Some((packed, named, statement, closed))
                        }
                        Ok(_) => None,
                        Err(error) => {
                            self.gather.clear();
                            return self.cannot_hold(&error, true);
                        }
                    },
                }
            }
            Form::Other => None,
        };
        match packed {
            Some((packed, named, statement, closed)) => {
                self.gather.clear();
                if let Some(name) = named {
                    self.name_statement(name, statement)?;
                }
                closed.iter().for_each(|name| {
                    self.statements.remove(name);
                });
                self.submit(packed).await
            }
            None => {
                self.gather.push(frame);
                self.pass_gathered().await
            }
        }
    }

    /// Statements that a lane has not seen fail are known by their names from now on. Should the Parse turn out to
    /// be wrong, the lane gives the unit back, and it is named, or not, by what the server then says.
    fn name_statement(
        &mut self,
        name: Bytes,
        statement: std::sync::Arc<crate::statements::Statement>,
    ) -> Result<(), End> {
        if self.statements.len() >= limits::CLIENT_STATEMENTS_MAX {
            return Err(End::Problem(Problem::fatal(
                "53400",
                format!("more than {} prepared statements in one session", limits::CLIENT_STATEMENTS_MAX),
                "Close statements that are not needed any more.",
            )));
        }
        self.statements.insert(name, statement);
        Ok(())
    }

    fn close_all(&mut self, closes: Vec<(bool, Bytes)>) {
        for (statement, name) in &closes {
            if *statement {
                self.statements.remove(name);
            }
        }
        self.mailbox.append_in_turn(|out| {
            closes.iter().for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
            out.extend_from_slice(backend::READY_IDLE);
        });
    }

    /// Takes a connection and forwards what has been gathered.
    pub(super) async fn pass_gathered(&mut self) -> Result<(), End> {
        let messages = self.gather.take();
        let ends_here = messages.len() >= 5 && messages[messages.len() - 5..] == *hotrow_wire::frontend::SYNC;
        match self.hold().await {
            Ok(()) => self.forward_all(&messages).await,
            Err(End::Problem(problem)) if !problem.fatal => {
                self.mailbox.append_in_turn(|out| problem.put(out));
                if ends_here {
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

    /// No connection could be had: the client is told, and goes on.
    pub(super) fn cannot_hold(&mut self, error: &crate::held::Error, whole: bool) -> Result<(), End> {
        let problem = super::hold::problem(error, false);
        self.mailbox.append_in_turn(|out| problem.put(out));
        if whole {
            self.ready_in_turn();
        } else {
            self.skipping = true;
        }
        Ok(())
    }

    /// Whether a Close names a statement.
    pub(super) fn forget(&mut self, close: &Named<'_>) {
        if close.statement {
            self.statements.remove(close.name);
        }
    }
}
