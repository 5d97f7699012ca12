//! A transaction that the client has begun and the server has not. The gateway answers BEGIN, so that a session whose
//! client has not sent a statement yet holds no connection. The server gets BEGIN with the first statement.

use bytes::Bytes;
use hotrow_wire::backend::{self, Problem, Status};
use hotrow_wire::frontend::{self, Parse};

use super::environment::Stop;
use super::submit::PlanOf;
use super::{Environment, Need, Session, StatementOf, Verdict};
use crate::classify::{Analysis, Pass, Transaction};
use crate::expect::Message;
use crate::lane::LaneKind;
use crate::unit::gather::Single;
use crate::unit::{Packed, Plan, put_command_answer};

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
            self.row_place = None;
        }
    }

    /// The transaction has a place among those that work on the row of its first statement.
    pub fn row_taken(&mut self, place: E::RowPlace) {
        self.row_place = Some(place);
    }

    /// The client has closed the unnamed portal, or sent a Query, which closes it.
    pub(super) fn close_begun_portal(&mut self) {
        if let Some(begun) = &mut self.begun {
            begun.has_portal = false;
        }
    }

    /// The plan for the first statement of a transaction that changes or locks a row by key. Later statements have none,
    /// because the transaction may hold locks when they come.
    pub(super) fn plan_of_first(&self, statement: &StatementOf<E>) -> Result<Option<PlanOf<E>>, Stop<E>> {
        let is_first = self.begun_status() == Status::Transaction && self.row_place.is_none();
        if !is_first || !self.pack || self.provided.no_connection.is_some() {
            return Ok(None);
        }
        let packing = match self.verdict(statement) {
            Ok(Verdict::Packed(packing)) if packing.kind == LaneKind::Write && !packing.in_key_space => {
                packing
            }
            Ok(Verdict::Locks(packing)) => packing,
            // Without a verdict the server gets the statement.
            Ok(Verdict::Packed(_) | Verdict::Pass) | Err(Stop::Refused(_)) => return Ok(None),
            Err(stop) => return Err(stop),
        };
        Ok(Some(Plan::Run(statement.clone(), packing)))
    }

    /// Waits for a place among the transactions that work on the row of a first statement.
    pub(super) fn wait_for_row(first: &Packed<StatementOf<E>>) -> Result<(), Stop<E>> {
        let mut keys = first.keys();
        match (keys.next(), keys.next()) {
            (Some(key), None) => Err(Stop::Need(Need::Row(key, first.name_of(key).map(Box::new)))),
            _ => Ok(()), // a list of rows has no place among those of one row
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

    /// The same for an extended query of one statement. If it is a transaction's first statement, it waits for its row.
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
        if let Some(plan) = self.plan_of_first(&statement)? {
            let first = Packed::extended([&[], &[]], [(single, plan)].into_iter(), &mut self.scratch);
            Self::wait_for_row(&first)?;
        }
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
            (Transaction::Commit | Transaction::Rollback, Some(begun)) => {
                let commits = *change == Transaction::Commit && !begun.has_failed;
                self.begun = None;
                Ok(Some(if commits { "COMMIT" } else { "ROLLBACK" }))
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
        if has_portal {
            Parse { name: b"", text: &text, types: &[] }.put(out);
            frontend::put_bind_text(out, b"", std::iter::empty());
            out.extend_from_slice(frontend::EXECUTE);
            out.extend_from_slice(frontend::SYNC);
        } else {
            frontend::put_query(out, str::from_utf8(&text).unwrap_or("begin"));
        }
        self.expected.sent(Message::OwnBegin);
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
