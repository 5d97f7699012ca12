//! Forwards a client's messages while its session holds a connection. They stay unchanged except for names of
//! statements: upstream connections use the gateway's own names, and each statement is prepared there when it is first
//! needed.

use bytes::Bytes;
use hotrow_wire::backend::Status;
use hotrow_wire::frontend::{self, Bind, Execute, Parse, tag};
use hotrow_wire::{Frame, split};

use super::environment::Stop;
use super::marks::Mark;
use super::names::{newly_named, too_many_statements};
use super::planning::{Handled, Performing, Planning};
use super::prepare::Preparer;
use super::run_deferred::learn;
use super::statement::{OWN_STATEMENT, alias_number, own_statement};
use super::{Connection, Environment, Named, Need, Session, SessionEnd, Statement, StatementOf};
use crate::classify::{Analysis, Effect};
use crate::expect::{InDoubt, Message, PortalChange, Preparation, RunEffects};
use crate::limits;
use crate::unit::param;

/// The change of a portal's record by a Bind.
type PortalRecord<S> = Option<Box<PortalChange<Named<S>>>>;

impl<E: Environment> Session<E> {
    /// Forwards one message on the connection that the session holds. It is written together with other messages when
    /// the session next waits.
    pub(super) fn forward(&mut self, planning: Planning, frame: Frame<'_>) -> Result<(), Stop<E>> {
        if self.expected().skips() && !matches!(frame.tag, tag::SYNC | tag::PASSWORD) {
            return Ok(()); // like the server
        }
        let Handled::Continue(planning) = self.refuse_after_writes(planning, frame) else { return Ok(()) };
        let body = frame.body();
        match frame.tag {
            tag::QUERY => {
                let statement = self.texts.simple(&self.env, frontend::query(body)?);
                self.forward_query(planning, frame, statement)
            }
            tag::PARSE => self.forward_parse(planning, frame, Parse::read(body)?),
            tag::BIND => self.forward_bind(planning, frame, &Bind::read(body)?),
            _ => Ok(self.forward_other(&planning.perform(), frame)?),
        }
    }

    /// Puts what comes before a Query, Parse or Bind. It has all that it needs.
    fn begin_to_send(&mut self, planning: Planning) -> Performing {
        let performing = planning.perform();
        self.preparer(&performing).close_placeholders();
        self.begin_here(&performing);
        performing
    }

    /// Forwards a message that needs nothing.
    fn forward_other(&mut self, performing: &Performing, frame: Frame<'_>) -> Result<(), SessionEnd> {
        self.begin_here(performing);
        if frame.tag != tag::SYNC {
            self.preparer(performing).close_placeholders();
        }
        let body = frame.body();
        match frame.tag {
            tag::DESCRIBE => self.forward_describe(performing, frame, &frontend::ObjectName::read(body)?),
            tag::EXECUTE => self.forward_execute(performing, frame),
            tag::CLOSE => self.forward_close(performing, frame, &frontend::ObjectName::read(body)?),
            tag::SYNC => {
                self.env.unit_passed();
                self.output(performing).extend_from_slice(frame.bytes);
                self.held().expected.sent(Message::Sync);
                self.preparer(performing).close_placeholders();
                self.described();
            }
            tag::FUNCTION_CALL => {
                self.deferred.decline_unless(false);
                let holding = self.held();
                holding.marks.note(Mark::FunctionCall);
                holding.connection.set_moved_sequence();
                self.output(performing).extend_from_slice(frame.bytes);
                self.held().expected.sent(Message::FunctionCall);
            }
            // the server ignores it too
            tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL if !self.expected().is_reading_copy() => {}
            other => {
                self.output(performing).extend_from_slice(frame.bytes);
                if matches!(other, tag::COPY_DONE | tag::COPY_FAIL) {
                    self.held().expected.sent_copy_end();
                }
            }
        }
        Ok(())
    }

    fn forward_describe(
        &mut self,
        performing: &Performing,
        frame: Frame<'_>,
        described: &frontend::ObjectName<'_>,
    ) {
        let named = if described.statement { self.named(described.name) } else { None };
        match named {
            Some(named) => {
                let name = self.preparer(performing).prepare(&named, described.name.is_empty());
                frontend::ObjectName { statement: true, name: &name }
                    .put(tag::DESCRIBE, self.output(performing));
            }
            None => {
                if described.statement {
                    self.preparer(performing).close_own(described.name);
                    self.preparer(performing).close_unnamed(described.name);
                }
                self.output(performing).extend_from_slice(frame.bytes);
            }
        }
        self.held().expected.sent(Message::Describe);
    }

    fn forward_close(&mut self, performing: &Performing, frame: Frame<'_>, close: &frontend::ObjectName<'_>) {
        if close.statement {
            self.preparer(performing).close_own(close.name);
        }
        let named = if close.statement { self.named(close.name) } else { None };
        self.output(performing).extend_from_slice(frame.bytes);
        let name = close.statement.then(|| Bytes::copy_from_slice(close.name));
        self.held().expected.sent(Message::Close(name));
        if let Some(named) = named {
            self.preparer(performing).close_alias(alias_number(named.parsed));
        }
    }

    /// Forwards a Query, whose text is this statement's.
    fn forward_query(
        &mut self,
        planning: Planning,
        frame: Frame<'_>,
        statement: StatementOf<E>,
    ) -> Result<(), Stop<E>> {
        self.before_settings(&planning, &statement)?;
        let Handled::Continue(planning) = self.answer_while_held(planning, &statement)? else {
            return Ok(());
        };
        let performing = &self.begin_to_send(planning);
        if let Some(error) = self.record_or_refuse(&statement) {
            // The server raises the error in its turn, with its effect on a transaction.
            frontend::put_query(self.output(performing), error);
            self.held().expected.sent(Message::Query(RunEffects::default()));
            return Ok(());
        }
        if self.places.counts(&statement)
            && let Ok(text) = str::from_utf8(frontend::query(frame.body())?)
        {
            let shape = self.texts.shape(text);
            self.places.enter_row(&self.env, &statement, |index| shape.param(usize::from(index)));
        }
        if self.learns_outcomes()
            && let Ok(text) = str::from_utf8(frontend::query(frame.body())?)
        {
            let shape = self.texts.shape(text);
            learn(&self.env, &mut self.phase, &statement, |index| shape.param(usize::from(index)));
        }
        self.env.unit_passed();
        let runs = self.preparer(performing).will_run(&statement);
        self.will_clear(Some(&statement));
        self.output(performing).extend_from_slice(frame.bytes);
        self.held().expected.sent(Message::Query(runs));
        if matches!(&statement.analysis, Analysis::Candidate(_)) && !statement.has_credit() {
            self.held().earning_credit = Some(statement);
        }
        Ok(())
    }

    /// Answers a Query that the gateway handles itself, if nothing is under way on the connection.
    fn answer_while_held(
        &mut self,
        planning: Planning,
        statement: &StatementOf<E>,
    ) -> Result<Handled, Stop<E>> {
        if !self.is_settled() {
            return Ok(Handled::Continue(planning));
        }
        if self.phase.begun().is_some() {
            let status = self.begun_status();
            return Ok(self.answer_here(planning, statement, status)?.map_break(|_| {
                self.query_answered(statement);
                self.held().unit_ended = true;
            }));
        }
        let status = self.held().status;
        Ok(self.answer_here(planning, statement, status)?.map_break(|performing| {
            self.renaming.remove(&self.env, &mut self.names, b"");
            self.held().unit_ended = true;
            if status == Status::Transaction {
                // A Query closes the unnamed portal, which stays open until then.
                let out = self.output(&performing);
                frontend::ObjectName { statement: false, name: b"" }.put(tag::CLOSE, out);
                out.extend_from_slice(frontend::FLUSH);
                self.held().expected.sent(Message::OwnClose(None));
            }
        }))
    }

    fn forward_parse(
        &mut self,
        planning: Planning,
        frame: Frame<'_>,
        parse: Parse<'_>,
    ) -> Result<(), Stop<E>> {
        let statement = self.texts.parsed(&self.env, &parse);
        self.before_settings(&planning, &statement)?;
        let performing = &self.begin_to_send(planning);
        let named = newly_named(&self.env, self.parsing(), &statement, parse.text, None);
        let (number, parsed) = (self.preparer(performing).number(&named, &statement), named.parsed);
        let holding = self.held();
        if named.is_pinned {
            holding.marks.note(Mark::Left(Effect { read_here: true, ..Effect::NONE }));
        }
        holding.prepared_anew.remove(&statement.id);
        if !parse.name.is_empty() && self.named(parse.name).is_some() {
            // The server reports this error, after errors in the text.
            self.preparer(performing).put_placeholder(parse.name);
            self.put_as_it_is(performing, frame, parse.name, named, None);
            return Ok(());
        }
        if self.names.len() >= limits::CLIENT_STATEMENTS_MAX {
            return Err(too_many_statements().into());
        }
        if parse.name.is_empty() {
            self.put_as_it_is(
                performing,
                frame,
                parse.name,
                named,
                Some(Preparation::unnamed(number, parsed)),
            );
            self.preparer(performing).learn_types(parse.name, &statement, b"");
        } else if self.left().prepared || self.held().marks.is_unproven() {
            // PREPARE may have taken the name, also in a function. If so, the server reports it.
            self.preparer(performing).close_own(parse.name);
            self.put_as_it_is(performing, frame, parse.name, named.clone(), None);
            self.preparer(performing).close(parse.name, None);
            let own_name = self.preparer(performing).prepare(&named, false);
            self.held().prepared_anew.remove(&statement.id); // the client knows its present columns
            self.preparer(performing).learn_types(parse.name, &statement, &own_name);
        } else {
            // Parsed again even if this connection has the statement, because the client asks whether it is valid now.
            let own_name = Preparer::<E>::own_name(&statement, number);
            self.preparer(performing).make_room(number, &own_name);
            Parse { name: &own_name, ..parse }.put(self.output(performing));
            let (name, preparation) =
                (Bytes::copy_from_slice(parse.name), Preparation::named(number, parsed));
            self.held().expected.sent(Message::Parse(name, Box::new(named), Some(preparation)));
            self.preparer(performing).learn_types(parse.name, &statement, &own_name);
        }
        Ok(())
    }

    fn put_as_it_is(
        &mut self,
        performing: &Performing,
        frame: Frame<'_>,
        name: &[u8],
        named: Named<E::Statement>,
        preparation: Option<Preparation>,
    ) {
        self.output(performing).extend_from_slice(frame.bytes);
        self.held().expected.sent(Message::Parse(Bytes::copy_from_slice(name), Box::new(named), preparation));
    }

    /// The meaning of this name when the next message is run.
    fn named(&self, name: &[u8]) -> Option<Named<E::Statement>> {
        self.expected().meaning(&self.names, name).cloned()
    }

    /// Whether a message has to wait for the answer to an earlier one, because its meaning or the gateway's record of
    /// it depends on that answer. The answer does not need another message of the client.
    pub(super) fn is_in_doubt(&mut self, frame: Frame<'_>) -> bool {
        if self.phase.is_held() && (self.waits_for_description() || self.waits_for_writes(frame)) {
            return true;
        }
        if !self.phase.is_held() || self.expected().skips() || self.expected().is_reading_copy() {
            return false;
        }
        let waits = self.expected().must_wait() || self.depends_on_others(frame);
        if waits && self.held().expected.needs_flush() {
            self.output(&Performing::between_messages()).extend_from_slice(frontend::FLUSH);
        }
        waits
    }

    fn depends_on_others(&mut self, frame: Frame<'_>) -> bool {
        if self.expected().owes_nothing() {
            return false;
        }
        if !self.shared_channels().is_empty() && self.divides_channels(frame) {
            return true;
        }
        let under_way = self.expected().has_unit_under_way();
        let clears = if under_way { self.held().clears } else { Effect::NONE };
        if under_way && self.held().name_reset {
            return true; // the client's name is restored before anything else runs
        }
        let body = frame.body();
        let name = match frame.tag {
            tag::QUERY | tag::BIND if clears != Effect::NONE => return true,
            tag::QUERY => {
                let Ok(text) = frontend::query(body) else { return false };
                let statement = self.texts.simple(&self.env, text);
                let mentions = statement.mentions_name().is_some_and(|name| self.is_name_in_doubt(name));
                // Before a statement that the gateway answers, only its own messages may be unanswered.
                let waits = under_way || statement.is_answered_here() && !self.expected().is_in_unit();
                return mentions || waits && statement.waits_for_all();
            }
            tag::BIND => Bind::read(body).ok().map(|bind| bind.statement),
            tag::PARSE => Parse::read(body).ok().map(|parse| parse.name).filter(|name| !name.is_empty()),
            tag::DESCRIBE => {
                let described = frontend::ObjectName::read(body).ok();
                described.filter(|described| described.statement).map(|described| described.name)
            }
            tag::EXECUTE => {
                let Ok(statement) = self.statement_of_portal(body) else { return true };
                let name = statement.as_ref().and_then(|statement| statement.mentions_name());
                return name.is_some_and(|name| self.expected().is_in_doubt(name));
            }
            _ => None,
        };
        let Some(name) = name else { return false };
        let waits = |named: &Named<E::Statement>| frame.tag == tag::BIND && named.statement.waits_for_all();
        self.is_name_in_doubt(name)
            || under_way && self.expected().meaning(&self.names, name).is_some_and(waits)
    }

    /// Whether a message begins or follows a unit that may change the channels, which the shared connection reports. Such a
    /// unit runs by itself: otherwise it would not be known which notifications came under which channels.
    fn divides_channels(&mut self, frame: Frame<'_>) -> bool {
        let under_way = self.expected().has_unit_under_way();
        if self.channels_in_doubt() {
            return under_way || matches!(frame.tag, tag::QUERY | tag::FUNCTION_CALL);
        }
        match frame.tag {
            tag::QUERY => frontend::query(frame.body()).is_ok_and(|text| {
                let statement = self.texts.simple(&self.env, text);
                self.changes_channels(&statement)
            }),
            tag::BIND if under_way => Bind::read(frame.body()).is_ok_and(|bind| {
                self.named(bind.statement).is_some_and(|named| self.changes_channels(&named.statement))
            }),
            _ => false,
        }
    }

    /// Whether the meaning of a name depends on an unanswered message. A name of the gateway's kind may be that of a
    /// statement that is being prepared.
    fn is_name_in_doubt(&self, name: &[u8]) -> bool {
        let own = own_statement(name).filter(|_| self.left().prepared);
        self.expected().is_in_doubt(name)
            || own.is_some_and(|own| self.expected().is_preparation_in_doubt(own))
    }

    fn forward_bind(&mut self, planning: Planning, frame: Frame<'_>, bind: &Bind<'_>) -> Result<(), Stop<E>> {
        let named = self.named(bind.statement);
        if let Some(named) = &named {
            self.before_settings(&planning, &named.statement)?;
        }
        let performing = &self.begin_to_send(planning);
        let mut record = None;
        match named {
            Some(named) => {
                let statement = &named.statement;
                if let Some(error) = self.record_or_refuse(statement) {
                    // The server gets a statement that fails, so it and the client agree on the following state.
                    self.fail_by(performing, error);
                    return Ok(());
                }
                if self.places.counts(statement) {
                    self.places.enter_row(&self.env, statement, |index| param(bind, index));
                }
                if self.learns_outcomes() {
                    learn(&self.env, &mut self.phase, statement, |index| param(bind, index));
                }
                record = self.record_of_portal(bind.portal, &named)?;
                let name = self.preparer(performing).prepare(&named, bind.statement.is_empty());
                match name.is_empty() {
                    true => self.output(performing).extend_from_slice(frame.bytes),
                    false => bind.put(bind.portal, &name, self.output(performing)),
                }
                if matches!(&statement.analysis, Analysis::Candidate(_)) && !statement.has_credit() {
                    self.held().earning_credit = Some(named.statement);
                }
            }
            None => {
                self.preparer(performing).close_own(bind.statement);
                self.preparer(performing).close_unnamed(bind.statement);
                self.output(performing).extend_from_slice(frame.bytes);
            }
        }
        self.held().expected.sent(Message::Bind(Bytes::copy_from_slice(bind.statement), record));
        Ok(())
    }

    fn forward_execute(&mut self, performing: &Performing, frame: Frame<'_>) {
        let statement = self.statement_of_portal(frame.body()).ok().flatten(); // earlier Binds are answered
        self.will_clear(statement.as_deref());
        let runs =
            statement.map(|statement| self.preparer(performing).will_run(&statement)).unwrap_or_default();
        self.output(performing).extend_from_slice(frame.bytes);
        self.held().expected.sent(Message::Execute(runs));
    }

    /// Ends the unit with the error that this text raises. The server raises it, so it and the client agree on the state of the
    /// transaction.
    fn fail_by(&mut self, performing: &Performing, error: &str) {
        self.preparer(performing).close(OWN_STATEMENT, None);
        Parse { name: OWN_STATEMENT, text: error.as_bytes(), types: &[] }.put(self.output(performing));
        self.held().expected.sent(Message::OwnParse(None));
        frontend::put_bind_text(self.output(performing), OWN_STATEMENT, std::iter::empty());
        self.held().expected.sent(Message::Bind(Bytes::new(), None));
        self.output(performing).extend_from_slice(frontend::EXECUTE);
        self.held().expected.sent(Message::Execute(RunEffects::default()));
    }

    /// Records the state that the next statement clears if its unit succeeds. Only the last statement counts, because a
    /// later one could leave the same state again.
    fn will_clear(&mut self, statement: Option<&E::Statement>) {
        let clears = statement.map_or(Effect::NONE, |statement| statement.clears());
        let holding = self.held();
        holding.clears = clears;
        holding.name_reset |= clears.name;
    }

    /// The record of a portal if its Bind succeeds: its statement, if that may be COPY, concerns names of statements,
    /// savepoints or the gateway's settings, or clears state. None if there is no record to be changed.
    fn record_of_portal(
        &self,
        portal: &[u8],
        named: &Named<E::Statement>,
    ) -> Result<PortalRecord<E::Statement>, Stop<E>> {
        let statement = &named.statement;
        let clears = statement.clears() != Effect::NONE;
        let needs_record =
            clears || statement.may_copy || statement.removes_names() || statement.mentions_name().is_some();
        let needs_record = needs_record || !statement.steps().is_empty();
        let portals = self.expected().portals();
        if needs_record && portals >= limits::CLIENT_STATEMENTS_MAX {
            return Err(too_many_statements().into());
        }
        let changes = needs_record || portals > 0;
        Ok(changes.then(|| Box::new((Bytes::copy_from_slice(portal), needs_record.then(|| named.clone())))))
    }

    /// The recorded statement of an Execute's portal.
    fn statement_of_portal(&self, body: &[u8]) -> Result<Option<StatementOf<E>>, InDoubt> {
        if self.expected().portals() == 0 {
            return Ok(None);
        }
        let Ok(execute) = Execute::read(body) else { return Ok(None) };
        Ok(self.expected().portal(execute.portal)?.map(|named| named.statement.clone()))
    }

    /// Forwards complete messages one by one, each as soon as its meaning is known.
    pub(super) fn forward_all(&mut self, messages: &[u8], sent: &mut usize) -> Result<(), Stop<E>> {
        while let Some(frame) = split(&messages[*sent..], |_| usize::MAX)? {
            if !self.phase.is_held() {
                break;
            }
            if self.is_in_doubt(frame) {
                return Err(Stop::Need(Need::Reply));
            }
            self.forward(Planning::of_message(), frame)?;
            *sent += frame.bytes.len();
        }
        Ok(())
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
}
