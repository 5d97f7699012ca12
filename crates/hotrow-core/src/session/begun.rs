//! A transaction that the client has begun and the server has not. The gateway answers BEGIN, so that a session whose
//! client has not sent a statement yet holds no connection. The server gets BEGIN with the first statement.

use bytes::Bytes;
use hotrow_wire::backend::{self, Problem, Status};
use hotrow_wire::frontend::{self, Named, Parse, tag};

use super::environment::Stop;
use super::{Environment, Session};
use crate::classify::{Analysis, Pass, Transaction};
use crate::expect::{Message, StatementName};
use crate::unit::gather::Single;
use crate::unit::{param, put_command_answer};

/// One format of results. It is valid for any number of columns, also for none.
const FORMAT_BYTES: usize = 2;

/// A transaction without a connection.
pub(super) struct Begun {
    /// The text of its BEGIN.
    text: Bytes,
    /// The unnamed portal is that of its BEGIN, which cannot be run again.
    has_portal: bool,
    /// A statement was refused. Only the end of the transaction succeeds.
    has_failed: bool,
}

impl<E: Environment> Session<E> {
    /// The status of the session's transaction while it holds no connection.
    pub fn begun_status(&self) -> Status {
        match &self.begun {
            None => Status::Idle,
            Some(Begun { has_failed: false, .. }) => Status::Transaction,
            Some(Begun { has_failed: true, .. }) => Status::Failed,
        }
    }

    /// Whether the session is in a transaction that has no connection.
    pub fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// A message of the transaction is refused.
    pub(super) fn fail_begun(&mut self) {
        if let Some(begun) = &mut self.begun {
            begun.has_failed = true;
            self.places.clear();
        }
    }

    /// The client has closed the unnamed portal, or sent a Query, which closes it.
    pub(super) fn close_begun_portal(&mut self) {
        if let Some(begun) = &mut self.begun {
            begun.has_portal = false;
        }
    }

    /// Answers a Query that begins a transaction, or ends one without statements. False if the server has to.
    pub(super) fn begin_by_query(&mut self, statement: &E::Statement) -> Result<bool, Stop<E>> {
        let Some(tag) = self.change_of(statement, false)? else { return Ok(false) };
        self.remove_name(b"");
        self.append_in_turn(|out| backend::put_command_complete(out, tag));
        self.ready_in_turn();
        Ok(true)
    }

    /// The same for an extended query of one statement. If it is a transaction's first statement, it waits for its turn.
    pub(super) fn begin_by(&mut self, single: &Single<'_>) -> Result<bool, Stop<E>> {
        let Some((statement, _)) = self.statement_of(single, &[], &[]) else { return Ok(false) };
        if is_usual(single, &statement.types)
            && let Some(tag) = self.change_of(&statement, true)?
        {
            for (name, meaning) in self.changes([(single, &statement)].into_iter())? {
                self.set_name(name, meaning);
            }
            self.append_in_turn(|out| put_command_answer(single, tag, out));
            self.ready_in_turn();
            return Ok(true);
        }
        self.wait_for_turn(&statement, |index| param(&single.bind, index))?;
        Ok(false)
    }

    /// Begins or ends the transaction with this statement. Returns the command's tag, or none if the server has to run
    /// the statement.
    fn change_of(
        &mut self,
        statement: &E::Statement,
        has_portal: bool,
    ) -> Result<Option<&'static str>, Stop<E>> {
        let Analysis::Pass(Pass { transaction: Some(change), .. }) = &statement.analysis else {
            return Ok(None);
        };
        match (change, &self.begun) {
            // A session that listens has its connection's reports from its first message on.
            (Transaction::Begin(tag), None) if self.packs() && self.shared_channels().is_empty() => {
                self.lanes_done()?;
                self.begun = Some(Begun { text: statement.text.clone(), has_portal, has_failed: false });
                Ok(Some(tag))
            }
            (Transaction::End { commits, chains }, Some(begun)) => {
                let tag = if *commits && !begun.has_failed { "COMMIT" } else { "ROLLBACK" };
                let text = begun.text.clone();
                self.begun = chains.then_some(Begun { text, has_portal: false, has_failed: false });
                Ok(Some(tag))
            }
            _ => Ok(None),
        }
    }

    /// The error for any statement but the transaction's end after a refusal.
    pub(super) fn failure(&self) -> Option<Problem> {
        let message = "current transaction is aborted, commands ignored until end of transaction block";
        (self.begun_status() == Status::Failed).then(|| Problem::error("25P02", message, ""))
    }

    /// Begins the transaction on the connection that the session has got for its first statement.
    pub(super) fn begin_here(&mut self) {
        let Some(Begun { text, has_portal, .. }) = self.begun.take() else { return };
        let out = self.output();
        Parse { name: b"", text: &text, types: &[] }.put(out);
        frontend::put_bind_text(out, b"", std::iter::empty());
        out.extend_from_slice(frontend::EXECUTE);
        // Without a Sync: if BEGIN fails, the server does not run the statement that follows.
        self.expected.sent(Message::OwnBegin);
        if !has_portal {
            let out = self.output();
            Named { statement: false, name: b"" }.put(tag::CLOSE, out);
            Named { statement: true, name: b"" }.put(tag::CLOSE, out);
            self.expected.sent(Message::OwnClose(None));
            self.expected.sent(Message::OwnClose(Some(StatementName::Unnamed)));
        }
        self.held().status = Status::Transaction;
    }
}

/// Whether a statement without parameters is run as drivers do it. The server answers other forms.
fn is_usual(single: &Single<'_>, types: &[u8]) -> bool {
    single.bind.portal.is_empty()
        && single.bind.count() == 0
        && single.bind.results().len() <= FORMAT_BYTES
        && types.is_empty()
}
