//! A transaction that the client has begun and the server has not. The gateway answers BEGIN, so that a session whose
//! client has not sent a statement yet holds no connection. The server gets BEGIN with the first statement.

use bytes::{Bytes, BytesMut};
use hotrow_wire::backend::{self, Status};
use hotrow_wire::frontend::{self, ObjectName, Parse, tag};

use super::environment::Stop;
use super::names::{self, Unnamed};
use super::planning::{Handled, Performing, Planning};
use super::{Environment, Need, Parameters, Session, StatementOf, Verdict};
use crate::classify::{Analysis, Pass, Transaction};
use crate::expect::{Message, StatementName};
use crate::pack_mode::PackMode;
use crate::settings::PlainSet;
use crate::unit::gather::Single;
use crate::unit::{param, put_command_answer};

/// The gateway's answer to a message of which the server learns later, or never.
pub(super) struct Answer {
    outcome: Outcome,
    /// The settings of the server that have changed for the client.
    parameters: Parameters,
}

enum Outcome {
    /// The success of a command with this tag.
    Tag(&'static str),
    /// Of several commands.
    Tags(Vec<&'static str>),
    /// The frames of the server's reply.
    Reply(Bytes),
}

impl From<&'static str> for Answer {
    fn from(tag: &'static str) -> Self {
        Answer { outcome: Outcome::Tag(tag), parameters: Vec::new() }
    }
}

impl From<Bytes> for Answer {
    fn from(frames: Bytes) -> Self {
        Answer { outcome: Outcome::Reply(frames), parameters: Vec::new() }
    }
}

impl Answer {
    fn to_sets(sets: &[PlainSet], parameters: Parameters) -> Self {
        Answer { outcome: Outcome::Tags(sets.iter().map(|set| set.tag).collect()), parameters }
    }

    /// Puts the result of each statement.
    pub(super) fn put_result(&self, out: &mut BytesMut) {
        match &self.outcome {
            Outcome::Tag(tag) => backend::put_command_complete(out, tag),
            Outcome::Tags(tags) => tags.iter().for_each(|tag| backend::put_command_complete(out, tag)),
            Outcome::Reply(frames) => out.extend_from_slice(frames),
        }
    }

    fn put_parameters(&self, out: &mut BytesMut) {
        self.parameters.iter().for_each(|(name, value)| backend::put_parameter_status(out, name, value));
    }
}

/// One format of results. It is valid for any number of columns, also for none.
const FORMAT_BYTES: usize = 2;

/// A placeholder text, not a statement. It appears in the server's log.
pub(in crate::session) const FAILING: &[u8] = b"hotrow_has_refused_an_earlier_statement_of_this_transaction";

/// A transaction without a connection.
pub(super) struct Begun {
    /// The text of its BEGIN.
    text: Bytes,
    /// The unnamed portal is that of its BEGIN, which cannot be run again.
    has_portal: bool,
    /// Its statements all see the state of the first one.
    pub(super) keeps_snapshot: bool,
    /// Its BEGIN names modes.
    pub(super) has_modes: bool,
    /// A statement was refused. Only the end of the transaction succeeds.
    pub(super) has_failed: bool,
    /// A connection describes statements before the transaction begins there.
    pub(super) describes: Describes,
}

/// A unit that prepares and describes statements before the first one runs. It does not need the transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Describes {
    /// There is none.
    Nothing,
    /// Its messages are sent to the server.
    Sends,
    /// The server has not answered it. Until then no other message is sent.
    Waits,
}

impl Begun {
    /// A transaction that a lane has not run.
    pub(super) fn of_unit() -> Self {
        Begun::new(Bytes::from_static(b"BEGIN"), false)
    }

    /// A transaction with this BEGIN, of which a later statement was refused.
    pub(super) fn failed(text: Bytes, has_modes: bool) -> Self {
        Begun { has_modes, has_failed: true, ..Begun::new(text, false) }
    }

    /// A transaction whose BEGIN names no modes.
    fn new(text: Bytes, has_portal: bool) -> Self {
        Begun {
            text,
            has_portal,
            keeps_snapshot: false,
            has_modes: false,
            has_failed: false,
            describes: Describes::Nothing,
        }
    }
}

impl<E: Environment> Session<E> {
    /// A message of the transaction is refused.
    pub(super) fn fail_begun(&mut self) {
        if let Some(begun) = self.phase.begun_mut() {
            (begun.has_failed, begun.describes) = (true, Describes::Nothing);
            self.places.clear();
            self.deferred.clear();
        }
    }

    /// The client has closed the unnamed portal, or its Query has. A Query that fails before it runs leaves the portal.
    pub(super) fn close_begun_portal(&mut self) {
        if let Some(begun) = self.phase.begun_mut() {
            begun.has_portal = false;
        }
    }

    /// Answers a Query that begins a transaction, ends one without statements, or has an outcome that is known. Otherwise the
    /// server has to.
    pub(super) fn begin_by_query(
        &mut self,
        planning: Planning,
        statement: &E::Statement,
    ) -> Result<Handled, Stop<E>> {
        let Some(answer) = self.change_of(&planning, statement, false)? else {
            return Ok(Handled::Continue(planning));
        };
        let performing = planning.perform();
        self.append_in_turn(&performing, |out| {
            answer.put_result(out);
            answer.put_parameters(out);
        });
        self.ready_in_turn(&performing);
        Ok(Handled::Break(()))
    }

    /// The same for an extended query of one statement. If it is a transaction's first statement, it waits for its turn.
    pub(super) fn begin_by(&mut self, planning: Planning, single: &Single<'_>) -> Result<Handled, Stop<E>> {
        let names = &self.names;
        let bound = names::statement_of(&self.env, names, &mut self.texts, single, (&[], &[]), Unnamed::Kept);
        let Some((statement, _)) = bound else { return Ok(Handled::Continue(planning)) };
        if is_usual(single, &statement.types)
            && let Some(answer) = self.change_of(&planning, &statement, true)?
        {
            let parsing = self.parsing();
            let names = &mut self.names;
            let statements = [(single, &statement)].into_iter();
            let changes = self.renaming.changes(&self.env, names, parsing, statements)?;
            changes.into_iter().for_each(|change| names::apply(names, change));
            let performing = planning.perform();
            self.append_in_turn(&performing, |out| {
                put_command_answer(single, |out| answer.put_result(out), out);
                answer.put_parameters(out);
            });
            self.ready_in_turn(&performing);
            return Ok(Handled::Break(()));
        }
        if let Some(verdict) = self.waits_for_turn(&planning, &statement)? {
            let param = |index| param(&single.bind, index);
            return Err(self.places.turn(&planning, statement.id, &verdict, self.works_alone(), param));
        }
        Ok(Handled::Continue(planning))
    }

    /// The verdict about the first statement of a transaction, if the statement waits for its turn. Later statements do not,
    /// because the transaction may hold locks when they come.
    pub(super) fn waits_for_turn(
        &self,
        planning: &Planning,
        statement: &StatementOf<E>,
    ) -> Result<Option<Verdict>, Stop<E>> {
        let is_first = self.begun_status() == Status::Transaction && !self.places.has_begun();
        if !is_first || self.switches.pack() < PackMode::On || self.provided.no_connection.is_some() {
            return Ok(None);
        }
        self.verdict(planning, statement).map(Some)
    }

    /// Begins or ends the transaction with this statement, or sets settings. Returns no answer if the server has to run the
    /// statement.
    fn change_of(
        &mut self,
        planning: &Planning,
        statement: &E::Statement,
        has_portal: bool,
    ) -> Result<Option<Answer>, Stop<E>> {
        if let Some(frames) = self.answer_without_state(planning, statement, has_portal)? {
            return Ok(Some(Answer::from(frames)));
        }
        let sets = statement.sets();
        match &mut self.provided.entered {
            Some(Some(parameters)) => {
                return Ok(Some(Answer::to_sets(sets, std::mem::take(parameters))));
            }
            Some(None) => {}
            None => self.enter_pool(planning, statement)?,
        }
        if self.keeps_settings(statement) && self.begun_status() != Status::Failed {
            self.catch_up(planning)?;
            self.lanes_done(planning)?;
            if let Some(begun) = self.phase.begun_mut() {
                begun.has_portal |= has_portal;
            }
            return Ok(Some(Answer::to_sets(sets, Vec::new())));
        }
        let Analysis::Pass(Pass { transaction: Some(change), .. }) = &statement.analysis else {
            return Ok(None);
        };
        match (change, self.phase.begun()) {
            // A session that listens has its connection's reports from its first message on.
            (&Transaction::Begin { tag, on_standbys, .. }, None)
                if self.answers_begin(on_standbys) && self.shared_channels().is_empty() =>
            {
                self.lanes_done(planning)?;
                self.begin(statement, has_portal);
                Ok(Some(Answer::from(tag)))
            }
            // The next transaction has the modes of this one, unless it fails. If that one then fails, the modes stay: they
            // are not those of its BEGIN. Only the server can do that.
            // Writes that are held back run before a COMMIT.
            (&Transaction::End { commits: true, .. }, Some(_)) if !self.deferred.is_empty() => Ok(None),
            (&Transaction::End { commits, chains }, Some(begun)) if !(chains && begun.has_modes) => {
                self.deferred.transaction_over();
                let commits = commits && !begun.has_failed;
                let text = begun.text.clone();
                self.phase.take_begun();
                if chains {
                    self.phase.begin(Begun::new(text, false));
                }
                self.switches.transaction_over(commits, &mut self.reads);
                Ok(Some(Answer::from(if commits { "COMMIT" } else { "ROLLBACK" })))
            }
            _ => Ok(None),
        }
    }

    /// Begins the transaction of this BEGIN without a connection.
    pub(super) fn begin(&mut self, statement: &E::Statement, has_portal: bool) {
        debug_assert!(self.has_no_units(), "the transaction begins before earlier units");
        if let Analysis::Pass(Pass { transaction: Some(begin), .. }) = &statement.analysis
            && let Transaction::Begin { keeps_snapshot, has_modes, .. } = *begin
        {
            let begun = Begun::new(statement.text.clone(), has_portal);
            self.phase.begin(Begun { keeps_snapshot, has_modes, ..begun });
        }
    }

    /// Asks for the pool to which a text of SETs leads, if that is known.
    fn enter_pool(&mut self, planning: &Planning, statement: &E::Statement) -> Result<(), Stop<E>> {
        let Some(settings) = self.leads_to(statement) else { return Ok(()) };
        self.catch_up(planning)?;
        self.lanes_done(planning)?;
        Err(Stop::Need(Need::Enter(settings.clone())))
    }

    /// Drivers prepare a statement in a unit of its own before they run it for the first time. If this is such a unit, and
    /// the transaction has no connection, the next one runs the unit without a BEGIN and is given back. So the transaction's
    /// first statement still waits for its turn.
    pub(super) fn describe_first(&mut self) {
        let describes = self.gather.messages().all(|(tag, body)| match tag {
            tag::PARSE => Parse::read(body).is_ok_and(|parse| !parse.name.is_empty()),
            tag::DESCRIBE | tag::CLOSE => {
                ObjectName::read(body).is_ok_and(|named| named.statement && !named.name.is_empty())
            }
            _ => false,
        });
        let describes = describes && !self.gather.is_empty();
        if let Some(begun) = self.phase.begun_mut().filter(|begun| describes && !begun.has_failed) {
            begun.describes = Describes::Sends;
        }
    }

    /// Such a unit is sent.
    pub(super) fn described(&mut self) {
        if let Some(begun) = self.phase.begun_mut().filter(|begun| begun.describes == Describes::Sends) {
            begun.describes = Describes::Waits;
        }
    }

    /// The server has answered such a unit. If it has failed, the transaction begins and fails there too, because only
    /// the server knows the errors of later messages. Returns the status of the client's transaction.
    pub(super) fn end_description(&mut self, has_failed: bool) -> Status {
        if let Some(begun) = self.phase.begun_mut() {
            begun.describes = Describes::Nothing;
            begun.has_failed |= has_failed;
        }
        let status = self.begun_status();
        if has_failed {
            self.begin_here(&Performing::between_messages());
        }
        status
    }

    /// Begins the transaction on the connection that the session has got for its first statement. If a message of the
    /// transaction was refused, the transaction fails there too.
    pub(super) fn begin_here(&mut self, performing: &Performing) {
        if self.phase.begun().is_some_and(|begun| begun.describes != Describes::Nothing) {
            return;
        }
        let Some(begun) = self.phase.take_begun() else { return };
        let Begun { text, has_portal, has_failed, has_modes, keeps_snapshot, .. } = begun;
        self.deferred.decline_unless(!has_modes && !keeps_snapshot);
        let out = self.output(performing);
        Parse { name: b"", text: &text, types: &[] }.put(out);
        frontend::put_bind_text(out, b"", std::iter::empty());
        out.extend_from_slice(frontend::EXECUTE);
        // Without a Sync: if BEGIN fails, the server does not run the statement that follows.
        self.held().expected.sent(Message::OwnBegin);
        if !has_portal {
            let out = self.output(performing);
            ObjectName { statement: false, name: b"" }.put(tag::CLOSE, out);
            ObjectName { statement: true, name: b"" }.put(tag::CLOSE, out);
            self.held().expected.sent(Message::OwnClose(None));
            self.held().expected.sent(Message::OwnClose(Some(StatementName::Unnamed)));
        }
        self.held().status = if has_failed { Status::Failed } else { Status::Transaction };
        if has_failed {
            self.deferred.clear();
            let out = self.output(performing);
            Parse { name: b"", text: FAILING, types: &[] }.put(out);
            out.extend_from_slice(frontend::SYNC);
            self.held().expected.sent(Message::OwnUnit);
        }
    }
}

/// Whether a statement without parameters is run as drivers do it. The server answers other forms.
pub(super) fn is_usual(single: &Single<'_>, types: &[u8]) -> bool {
    is_bound_as_usual(single) && single.bind.count() == 0 && types.is_empty()
}

/// Whether a statement without rows runs in the unnamed portal, with a format of results that fits any number of columns.
pub(super) fn is_bound_as_usual(single: &Single<'_>) -> bool {
    single.bind.portal.is_empty() && single.bind.results().len() <= FORMAT_BYTES
}
