//! What a client sends while its session holds a connection goes on to the server: unchanged, but for the names of
//! statements, which are the gateway's own on upstream connections, and which are prepared there when they are first
//! needed.

use std::sync::Arc;

use bytes::Bytes;
use hotrow_core::classify::{Analysis, Effect};
use hotrow_core::expect::Owed;
use hotrow_core::limits;
use hotrow_wire::Frame;
use hotrow_wire::backend::Status;
use hotrow_wire::frontend::{self, Bind, Named, Parse, tag};

use super::extended::too_many_statements;
use super::hold::Holding;
use super::{End, Sequences, Session};
use crate::counts::Became;
use crate::metrics::METRICS;
use crate::statements::Statement;

impl Session {
    /// Forwards one message on the connection that the session holds; it is written with all others that are there
    /// when the session next waits.
    pub(super) async fn forward(&mut self, frame: Frame<'_>) -> Result<(), End> {
        let body = frame.body();
        match frame.tag {
            tag::QUERY => {
                let statement = self.simple_statement(frontend::query(body)?);
                return self.forward_query(frame, statement).await;
            }
            tag::PARSE => return self.forward_parse(frame, Parse::read(body)?),
            tag::BIND => return self.forward_bind(frame, &Bind::read(body)?).await,
            tag::DESCRIBE => {
                let named = Named::read(body)?;
                let statement = if named.statement { self.named(named.name) } else { None };
                let holding = self.held();
                match statement {
                    Some(statement) => {
                        let name = holding.prepare(&statement, named.name.is_empty());
                        Named { statement: true, name: &name }.put(tag::DESCRIBE, holding.output());
                    }
                    None => {
                        if named.statement {
                            holding.close_unnamed(named.name);
                        }
                        holding.output().extend_from_slice(frame.bytes);
                    }
                }
                holding.sent(Owed::Describe);
            }
            tag::CLOSE => {
                let close = Named::read(body)?;
                let statement = if close.statement { self.named(close.name) } else { None };
                self.forget(&close);
                let holding = self.held();
                if close.statement {
                    holding.unname(close.name);
                }
                let name = Bytes::copy_from_slice(close.name);
                holding.closing.push_back(statement.map(|statement| (name, statement)));
                holding.output().extend_from_slice(frame.bytes);
                holding.sent(Owed::Close);
            }
            other => {
                let holding = self.held();
                holding.output().extend_from_slice(frame.bytes);
                match other {
                    tag::EXECUTE => holding.sent(Owed::Execute),
                    tag::SYNC => {
                        METRICS.passed_through.inc();
                        self.control.doing.passes();
                        let holding = self.held();
                        holding.sent(Owed::Sync);
                    }
                    tag::FUNCTION_CALL => holding.sent(Owed::Query),
                    tag::COPY_DONE | tag::COPY_FAIL => holding.held.upstream.expected.sent(Owed::CopyEnd),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The client has said goodbye: what it has sent before is run and answered all the same.
    pub(super) async fn finish(&mut self) {
        let Some(holding) =
            self.holding.as_mut().filter(|holding| !holding.held.upstream.expected.is_settled())
        else {
            return;
        };
        holding.spoilt = true;
        holding.output().extend_from_slice(frontend::TERMINATE);
        // Until the last answer, or until the server closes the connection, or the client its own.
        while self.holding.is_some() {
            let Ok(left) = self.mailbox.try_write() else { return };
            if self.relay_alone(left.unread).await.is_err() {
                return;
            }
        }
    }

    /// The connection that is held.
    pub(super) fn held(&mut self) -> &mut Holding {
        self.holding.as_mut().expect("messages are forwarded only while a connection is held")
    }

    /// Forwards a Query, whose text is this statement's.
    pub(super) async fn forward_query(
        &mut self,
        frame: Frame<'_>,
        statement: Arc<Statement>,
    ) -> Result<(), End> {
        let status = self.held().status;
        if self.held().is_settled() && self.answer_here(&statement, status) {
            self.let_go().await;
            self.note_cancel_target();
            return Ok(());
        }
        if !self.note_effect(&statement).await? {
            // The server raises it, in its turn and with what it does to a transaction.
            let holding = self.held();
            frontend::put_query(holding.output(), include_str!("../../sql/no_sequence_values.sql"));
            holding.unname(b"");
            holding.sent(Owed::Query);
            return Ok(());
        }
        METRICS.passed_through.inc();
        self.control.doing.passes();
        self.statements.remove(&b""[..]);
        let holding = self.held();
        holding.unname(b""); // the server drops it at every simple query
        if matches!(&statement.analysis, Analysis::Candidate(_)) && !statement.has_credit() {
            holding.on_trial = Some(statement);
        }
        holding.output().extend_from_slice(frame.bytes);
        holding.sent(Owed::Query);
        Ok(())
    }

    /// Notes what a statement may leave behind. False if it must not be run: it would read another session's
    /// sequence values.
    async fn note_effect(&mut self, statement: &Arc<Statement>) -> Result<bool, End> {
        match &statement.analysis {
            Analysis::SetPack(on) => self.set_pack(*on),
            Analysis::ResetPack => self.set_pack(true),
            _ => {}
        }
        statement.counts.add(self.why_passed(statement));
        let effect = Self::effect_of(statement);
        if effect.needs_sequence_state && !self.prepare_sequences().await? {
            return Ok(false);
        }
        if effect.touches_sequence {
            self.sequences = Sequences::Here;
            let session = self.mailbox.session;
            self.held().held.sequences = Some(session);
        }
        let holding = self.held();
        if let Analysis::Pass(pass) = &statement.analysis {
            holding.clears = pass.clears;
            if pass.ddl {
                self.pool.catalogue_changed();
            }
        }
        let effect =
            effect.without(Effect { touches_sequence: true, needs_sequence_state: true, ..Effect::NONE });
        self.left = self.left.union(effect);
        Ok(true)
    }

    /// Why a statement is run on the session's own connection.
    fn why_passed(&self, statement: &Statement) -> Became {
        let in_transaction = self.holding.as_ref().is_some_and(|holding| holding.status != Status::Idle);
        if self.alone.is_some() {
            Became::GivenBack
        } else if statement.is_passed() {
            Became::NotPackable
        } else if in_transaction {
            Became::OwnTransaction
        } else if self.left.pins() {
            Became::Pinned
        } else if !self.pack || !self.pool.packs() {
            Became::SwitchedOff
        } else if !statement.has_credit() {
            Became::NoCredit
        } else {
            Became::LargerUnit
        }
    }

    fn forward_parse(&mut self, frame: Frame<'_>, parse: Parse<'_>) -> Result<(), End> {
        let taken = !parse.name.is_empty()
            && (self.statements.contains_key(parse.name) || self.held().naming(parse.name).is_some());
        let statement = self.parsed_statement(&parse);
        let holding = self.held();
        if taken {
            // The server has the right words for that: it is shown the client's name twice.
            Parse { name: parse.name, text: b"", types: &[] }.put(holding.output());
            holding.sent(Owed::OwnParse(0));
            Parse { name: parse.name, text: b"", types: &[] }.put(holding.output());
            holding.sent(Owed::Parse(0));
            holding.naming.push_back((None, statement));
            holding.spoilt = true;
            return Ok(());
        }
        if self.statements.len() >= limits::CLIENT_STATEMENTS_MAX {
            return Err(too_many_statements());
        }
        let holding = self.held();
        let id = statement.id;
        if parse.name.is_empty() {
            holding.output().extend_from_slice(frame.bytes);
            holding.held.upstream.prepared.unnamed = Some(id);
        } else {
            // Parsed anew, whether or not this connection has it: the client wants to know whether it is right now.
            holding.close(&statement.name);
            Parse { name: &statement.name, ..parse }.put(holding.output());
        }
        holding.naming.push_back((Some(Bytes::copy_from_slice(parse.name)), statement));
        holding.sent(Owed::Parse(id));
        if !parse.name.is_empty() {
            holding.note_prepared(id); // may close another, which is answered after the Parse
        }
        Ok(())
    }

    /// The statement of this name, also if its Parse is not answered yet.
    fn named(&self, name: &[u8]) -> Option<Arc<Statement>> {
        let naming = self.holding.as_ref().and_then(|holding| holding.naming(name));
        naming.or_else(|| self.statements.get(name)).cloned()
    }

    /// Whether a message depends on what becomes of an earlier unit, which is not answered. Such a message waits: it
    /// names a statement that was parsed there, so that it is there or not; or it takes away what is left behind on the
    /// connection, or the earlier unit does; or the gateway answers it itself.
    pub(super) fn is_in_doubt(&mut self, frame: Frame<'_>) -> bool {
        let Some(holding) =
            self.holding.as_ref().filter(|holding| holding.held.upstream.expected.has_unit_under_way())
        else {
            return false;
        };
        let is_clearing = holding.clears != Effect::NONE;
        let body = frame.body();
        let name = match frame.tag {
            tag::QUERY if is_clearing => return true,
            tag::QUERY => {
                let Ok(text) = frontend::query(body) else { return false };
                return waits_for_all(&self.simple_statement(text).analysis);
            }
            tag::BIND if is_clearing => return true,
            tag::BIND => Bind::read(body).ok().map(|bind| bind.statement),
            tag::PARSE => Parse::read(body).ok().map(|parse| parse.name).filter(|name| !name.is_empty()),
            tag::DESCRIBE | tag::CLOSE => {
                Named::read(body).ok().filter(|named| named.statement).map(|named| named.name)
            }
            _ => None,
        };
        let Some(statement) = name.and_then(|name| self.named(name)) else { return false };
        self.held().held.upstream.expected.is_in_doubt(statement.id)
            || frame.tag == tag::BIND && waits_for_all(&statement.analysis)
    }

    async fn forward_bind(&mut self, frame: Frame<'_>, bind: &Bind<'_>) -> Result<(), End> {
        match self.named(bind.statement) {
            Some(statement) => {
                if !self.note_effect(&statement).await? {
                    // The server is asked for something that fails, so that it and the client agree on what follows.
                    return self.fail_sequence_read();
                }
                let holding = self.held();
                let name = holding.prepare(&statement, bind.statement.is_empty());
                match bind.statement.is_empty() {
                    true => holding.output().extend_from_slice(frame.bytes),
                    false => bind.put(bind.portal, &name, holding.output()),
                }
                if matches!(&statement.analysis, Analysis::Candidate(_)) && !statement.has_credit() {
                    holding.on_trial = Some(statement);
                }
            }
            None => {
                let holding = self.held();
                holding.close_unnamed(bind.statement);
                holding.output().extend_from_slice(frame.bytes);
            }
        }
        let holding = self.held();
        holding.sent(Owed::Bind);
        Ok(())
    }

    /// Ends the unit with the error that belongs to a sequence read that has no right answer: the server is made to
    /// raise it, so that it and the client agree on the state of the transaction.
    fn fail_sequence_read(&mut self) -> Result<(), End> {
        let holding = self.held();
        let text = include_bytes!("../../sql/no_sequence_values.sql");
        Parse { name: b"", text, types: &[] }.put(holding.output());
        holding.held.upstream.prepared.unnamed = None;
        holding.sent(Owed::OwnParse(0));
        frontend::put_bind_text(holding.output(), b"", std::iter::empty());
        holding.sent(Owed::Bind);
        holding.output().extend_from_slice(frontend::EXECUTE);
        holding.sent(Owed::Execute);
        Ok(())
    }
}

impl Holding {
    /// The statement that gets this name if its Parse succeeds.
    fn naming(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        let naming = self.naming.iter().rev().find(|(other, _)| other.as_deref() == Some(name));
        naming.map(|(_, statement)| statement)
    }

    /// Takes the name away from statements whose Parse is not answered yet.
    fn unname(&mut self, name: &[u8]) {
        if name.is_empty() {
            self.held.upstream.prepared.unnamed = None;
        }
        for (other, _) in &mut self.naming {
            if other.as_deref() == Some(name) {
                *other = None;
            }
        }
    }

    /// The client has no statement of this name. The unnamed one that is on the connection is another's, or one that the
    /// client has closed while it held none.
    fn close_unnamed(&mut self, name: &[u8]) {
        if name.is_empty() {
            self.close(name);
            self.held.upstream.prepared.unnamed = None;
        }
    }

    /// Closes a statement of the connection's; the client hears nothing of it.
    fn close(&mut self, name: &[u8]) {
        Named { statement: true, name }.put(tag::CLOSE, self.output());
        self.sent(Owed::OwnClose);
    }

    fn output(&mut self) -> &mut bytes::BytesMut {
        &mut self.held.upstream.output
    }

    /// Notes a message that will be answered.
    fn sent(&mut self, owed: Owed) {
        self.open = !matches!(owed, Owed::Sync | Owed::Query);
        self.held.upstream.expected.sent(owed);
    }

    /// Makes sure that the statement is prepared; the name it has on the connection.
    fn prepare(&mut self, statement: &Arc<Statement>, unnamed: bool) -> Bytes {
        let prepared = &self.held.upstream.prepared;
        if unnamed {
            if prepared.unnamed != Some(statement.id) {
                statement.put_parse(b"", self.output());
                self.held.upstream.prepared.unnamed = Some(statement.id);
                self.sent(Owed::OwnParse(statement.id));
            }
            return Bytes::new();
        }
        if !prepared.has(statement.id) {
            // Closed first: after a Parse of the same text that failed or was skipped it may be there all the same.
            self.close(&statement.name);
            statement.put_parse(&statement.name, self.output());
            self.sent(Owed::OwnParse(statement.id));
            self.note_prepared(statement.id);
        }
        statement.name.clone()
    }

    fn note_prepared(&mut self, statement: u64) {
        if let Some(oldest) = self.held.upstream.prepared.add(statement) {
            self.close(crate::upstream::statement_name(oldest).as_bytes());
        }
    }

    /// Writes what the server takes now. An error shows again when the connection is read, with what the server
    /// had to say.
    pub(super) fn write(&mut self) {
        let upstream = &mut self.held.upstream;
        if upstream.write.try_drain(&mut upstream.output).is_err() {
            // A broken socket is always writable: with bytes left the session would spin and never get to read the end.
            upstream.output.clear();
        }
    }
}

/// Whether a statement runs only when all before it are answered.
fn waits_for_all(analysis: &Analysis) -> bool {
    match analysis {
        Analysis::SetPack(_) | Analysis::ResetPack | Analysis::ShowPack | Analysis::Deallocate(_) => true,
        Analysis::Pass(pass) => pass.clears != Effect::NONE,
        Analysis::Candidate(_) => false,
    }
}

/// ReadyForQuery with this status.
pub fn put_ready(status: Status, out: &mut bytes::BytesMut) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5]);
    out.extend_from_slice(match status {
        Status::Idle => b"I",
        Status::Transaction => b"T",
        Status::Failed => b"E",
    });
}
