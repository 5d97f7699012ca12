//! Runs the writes that a transaction holds back on the session's connection, and tells the client if they fail.

use hotrow_wire::Frame;
use hotrow_wire::backend::{self, Status};
use hotrow_wire::frontend::{self, Bind, Parse, tag};

use super::begun::Describes;
use super::deferred;
use super::phase::Phase;
use super::planning::{Handled, Performing, Planning};
use super::replies::put_ready;
use super::{Environment, Named, RunOutcome, Session, SessionEnd, Statement, StatementOf};
use crate::expect::Message;
use crate::key::ParamValue;
use crate::pack_mode::PackMode;

impl<E: Environment> Session<E> {
    /// Whether a message waits until the writes before it have run. Sends them if they were not sent.
    pub(super) fn waits_for_writes(&mut self, frame: Frame<'_>) -> bool {
        if self.deferred.is_running() {
            return true;
        }
        let describes = self.phase.begun().is_some_and(|begun| begun.describes != Describes::Nothing);
        let has_no_effect = matches!(frame.tag, tag::SYNC | tag::FLUSH | tag::TERMINATE);
        let runs = matches!(frame.tag, tag::QUERY | tag::BIND | tag::EXECUTE | tag::FUNCTION_CALL);
        if !self.deferred.must_run(runs) || describes || has_no_effect {
            return false;
        }
        if !self.is_settled() {
            return true;
        }
        let performing = &Performing::between_messages();
        self.begin_here(performing);
        let writes = self.deferred.run();
        // All are prepared before the first one runs: the replies to the runs belong to one message.
        writes.iter().for_each(|write| self.prepare_counted(performing, &write.counted));
        for write in &writes {
            write.counted.count(RunOutcome::OwnTransaction);
            self.output(performing).extend_from_slice(&write.frames);
        }
        self.put_own_sync(performing);
        true
    }

    /// Whether the outcomes of the transaction's writes are noted, to be foretold later.
    pub(super) fn learns_outcomes(&self) -> bool {
        let begins = || self.phase.held().is_some_and(|holding| holding.status == Status::Transaction);
        self.pack_mode() == PackMode::Deferred && begins() && !self.expected().has_unit_under_way()
    }

    /// Makes sure that a statement is prepared, under its own name.
    fn prepare_counted(&mut self, performing: &Performing, statement: &StatementOf<E>) {
        let named = Named {
            statement: statement.clone(),
            text: statement.text.clone(),
            parsed: 0,
            resolved: None,
            is_pinned: false,
        };
        let name = self.preparer(performing).prepare(&named, false);
        debug_assert!(name == statement.name, "the connection is not as the pool's others");
    }

    fn put_own_sync(&mut self, performing: &Performing) {
        self.output(performing).extend_from_slice(frontend::SYNC);
        self.held().expected.sent(Message::OwnUnit);
    }

    /// A reply while the server runs the writes, or ends their transaction. Returns whether the client does not get it.
    pub(super) fn take_reply_to_writes(&mut self, frame: Frame<'_>) -> Result<bool, SessionEnd> {
        if !self.deferred.is_running() {
            return Ok(false);
        }
        match frame.tag {
            backend::tag::ERROR => self.deferred.fails(frame.bytes),
            backend::tag::READY => {
                let status = backend::status(frame.body())?;
                self.held().status = status;
                if self.deferred.done() {
                    self.env.foretold_wrong();
                }
                if status != Status::Transaction {
                    self.places.clear();
                }
                if status == Status::Idle {
                    self.deferred.transaction_over();
                    let holding = self.held();
                    holding.marks.end_of_local_settings();
                    holding.expected.clear_portals();
                    self.switches.transaction_over(false, &mut self.reads);
                    self.unit_over(true);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses a message if the writes before it have failed.
    pub(super) fn refuse_after_writes(&mut self, planning: Planning, frame: Frame<'_>) -> Handled {
        let status = match (self.deferred.failure().cloned(), self.deferred.refused()) {
            (Some(error), _) => {
                let statement = self.statement_in(frame);
                let ends = statement.is_some_and(|statement| statement.ends_transaction().is_some());
                self.append(|out| out.extend_from_slice(&error));
                let status = if ends { Status::Idle } else { Status::Failed };
                self.deferred.refuse(status);
                if !matches!(frame.tag, tag::QUERY | tag::FUNCTION_CALL) {
                    return Handled::Break(());
                }
                status
            }
            (None, Some(status)) if frame.tag == tag::SYNC => status,
            (None, Some(_)) => return Handled::Break(()),
            (None, None) => return Handled::Continue(planning),
        };
        self.deferred.refusal_over();
        self.append(|out| put_ready(status, out));
        if let Some(alone) = &mut self.alone {
            alone.owed = alone.owed.saturating_sub(1);
        }
        if status == Status::Idle {
            self.roll_back(&planning.perform());
        }
        Handled::Break(())
    }

    /// Ends the transaction at the server, whose writes have failed.
    fn roll_back(&mut self, performing: &Performing) {
        self.deferred.run();
        let output = self.output(performing);
        Parse { name: b"", text: b"rollback", types: &[] }.put(output);
        frontend::put_bind_text(output, b"", std::iter::empty());
        output.extend_from_slice(frontend::EXECUTE);
        self.put_own_sync(performing);
    }

    /// The statement that a message runs or names, if it is the first of its unit.
    fn statement_in(&mut self, frame: Frame<'_>) -> Option<StatementOf<E>> {
        match frame.tag {
            tag::QUERY => Some(self.texts.simple(&self.env, frontend::query(frame.body()).ok()?)),
            tag::PARSE => Some(self.texts.parsed(&self.env, &Parse::read(frame.body()).ok()?)),
            tag::BIND => {
                let bind = Bind::read(frame.body()).ok()?;
                self.names.get(bind.statement).map(|named| named.statement.clone())
            }
            _ => None,
        }
    }
}

/// Notes the outcome of this statement, which the server runs next on the session's connection.
pub(super) fn learn<'p, E: Environment>(
    env: &E,
    phase: &mut Phase<E>,
    statement: &StatementOf<E>,
    param: impl Fn(u16) -> Option<ParamValue<'p>>,
) {
    let Some(packing) = env.packing(statement) else { return };
    let Some(row) = deferred::row(statement, &packing, param) else { return };
    if let Some(holding) = phase.held_mut() {
        holding.learning.add(statement, row);
    }
}
