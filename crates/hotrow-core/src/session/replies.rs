//! Forwards the server's messages on a held connection to the client, except for replies to the gateway's own messages.

use bytes::{Bytes, BytesMut};
use hotrow_wire::backend::{self, Notification, Problem, Report, Status, tag};
use hotrow_wire::{Frame, HEADER_BYTES, SqlState, frontend, put_frame, split};

use super::foretold::Learning;
use super::marks::Mark;
use super::stateless::learn_reply;
use super::{Connection, Environment, OWN_NAMES, Resolved, Session, SessionEnd, statement_name};
use crate::classify::{Alters, Step};
use crate::expect::Reply;
use crate::limits;

/// The handling of a reply.
enum Passing {
    /// The client gets it unchanged.
    AsItIs,
    /// It is a reply to the gateway.
    Swallowed,
    /// A ReadyForQuery with another status: the client's transaction has not begun on the connection.
    Ready(Status),
    /// A notification that the session has sent itself. Clients recognise such notifications by the process ID that
    /// they were told.
    OwnNotification,
    /// An error about a statement that the client prepared before its result changed.
    ChangedResult,
    /// An error that mentions the gateway's name of a statement. This is the client's name.
    Mentions(Bytes),
}

/// The server's error for such a statement on the connection where it was prepared. Drivers then prepare it again.
const CHANGED_RESULT: &[u8] =
    b"SERROR\0VERROR\0C0A000\0Mcached plan must not change result type\0Fplancache.c\0RRevalidateCachedQuery\0\0";

/// The function of the server that reports a Bind with a wrong number of columns.
const WRONG_COLUMNS: &[u8] = b"\0RPortalSetResultFormat\0";

impl<E: Environment> Session<E> {
    /// The server has closed the connection.
    pub fn server_gone(&mut self) -> Result<(), SessionEnd> {
        let is_alone = self.alone.is_some();
        let holding = self.held();
        // It has reported the reason itself. Or the client would take later bytes for a part of the message.
        let is_told = holding.marks.is_closing() && holding.failed && !is_alone;
        if is_told || holding.message_bytes_left > 0 {
            return Err(SessionEnd::Server);
        }
        self.failed(SessionEnd::Problem(Problem::fatal(
            SqlState::ConnectionFailure,
            "the server closed the connection unexpectedly",
            "Statements under way may or may not have been executed. Check before you send them again.",
        )))
    }

    /// The client has sent Terminate: its earlier messages are still run and answered. Returns whether there are
    /// any.
    pub fn terminate(&mut self) -> bool {
        let holding = self.phase.held_mut().filter(|holding| !holding.expected.is_settled());
        let Some(holding) = holding else { return false };
        holding.marks.note(Mark::Closing);
        holding.connection.output().extend_from_slice(frontend::TERMINATE);
        true
    }

    /// Forwards the server's messages at the beginning of `input` to the client. Adds the number of handled bytes
    /// to `taken`.
    pub fn replies(&mut self, input: &[u8], taken: &mut usize) -> Result<(), SessionEnd> {
        match self.take_replies(input, taken) {
            Ok(true) => self.held().unit_ended = true,
            Ok(false) => {}
            Err(end) => self.failed(end)?,
        }
        Ok(())
    }

    /// Reads complete messages and the beginnings of large rows, and forwards the client's. True if a ReadyForQuery was
    /// among them.
    fn take_replies(&mut self, input: &[u8], taken: &mut usize) -> Result<bool, SessionEnd> {
        let mut ready = false;
        if self.stops_reading() {
            return Ok(ready);
        }
        let mut begin = 0; // start of the bytes that go to the client in one piece
        let result = loop {
            let rest = &input[*taken..];
            let holding = self.held();
            if holding.message_bytes_left > 0 {
                let count = holding.message_bytes_left.min(rest.len());
                holding.message_bytes_left -= count;
                *taken += count;
                if count == 0 || holding.message_bytes_left > 0 {
                    break Ok(());
                }
                continue;
            }
            let frame = match split(rest, |_| usize::MAX) {
                Ok(Some(frame)) => frame,
                Ok(None) => match begins_large(rest) {
                    Some(bytes) => {
                        holding.message_bytes_left = bytes;
                        continue;
                    }
                    None => break Ok(()),
                },
                Err(error) => break Err(error.into()),
            };
            let end = *taken + frame.bytes.len();
            if frame.tag == tag::DATA_ROW {
                holding.learns.iter_mut().for_each(|learns| learns.add(frame));
                *taken = end; // it has no other effect here
                continue;
            }
            let passing = self.take_reply(frame);
            // The last reply to the gateway's own messages may follow it.
            ready |= frame.tag == tag::READY || frame.tag == tag::CLOSE_COMPLETE && self.is_settled();
            match passing {
                Ok(Passing::AsItIs) => {}
                Ok(passing) => {
                    self.append(|out| {
                        out.extend_from_slice(&input[begin..*taken]);
                        match passing {
                            Passing::AsItIs | Passing::Swallowed => {}
                            Passing::Ready(status) => put_ready(status, out),
                            Passing::OwnNotification => {
                                let process_id = self.env.process_id().to_be_bytes();
                                out.extend_from_slice(&frame.bytes[..HEADER_BYTES]);
                                out.extend_from_slice(&process_id);
                                out.extend_from_slice(&frame.body()[process_id.len()..]);
                            }
                            Passing::Mentions(name) => put_with_name(frame.body(), &name, out),
                            Passing::ChangedResult => {
                                put_frame(out, tag::ERROR, |out| out.extend_from_slice(CHANGED_RESULT));
                            }
                        }
                    });
                    begin = end;
                }
                Err(end) => break Err(end),
            }
            *taken = end;
            if self.stops_reading() {
                break Ok(());
            }
        };
        self.append(|out| out.extend_from_slice(&input[begin..*taken]));
        result.map(|()| ready)
    }

    /// Records the meaning of a reply. Returns how it is handled.
    fn take_reply(&mut self, frame: Frame<'_>) -> Result<Passing, SessionEnd> {
        let mut lost_name = false;
        let bound = if frame.tag == tag::ERROR { self.expected().bound().cloned() } else { None };
        if frame.tag == tag::PARAMETER_DESCRIPTION
            && let Some(name) = self.phase.held().and_then(|holding| holding.expected.described())
            && let Some(named) = self.names.get_mut(name)
        {
            let types = frame.body().get(2..).map(Bytes::copy_from_slice);
            named.resolved = types.map(Resolved::new);
        }
        let step = match frame.tag {
            tag::COMMAND_COMPLETE => self.held().expected.step_done(command_tag(frame.body())),
            _ => None,
        };
        let holding = self.phase.held_mut().expect("called only while a connection is held");
        let prepared = holding.connection.prepared_mut();
        let reply = holding.expected.received(&mut self.names, prepared, frame.tag, frame.body());
        match reply {
            Reply::Forward | Reply::Swallow => {}
            Reply::ForwardAndAsk => put_question(holding.connection.output()),
            Reply::NotBegun => return Err(not_begun(Report::read(frame.body())?.message)),
            Reply::Unexpected => return Err(unexpected(frame.tag)),
        }
        let is_fatal = frame.tag == tag::ERROR && !Report::read(frame.body())?.is_error();
        if !is_fatal && (self.take_reply_to_writes(frame)? || reply == Reply::Swallow) {
            return Ok(Passing::Swallowed);
        }
        let holding = self.phase.held_mut().expect("called only while a connection is held");
        if matches!(frame.tag, tag::ERROR | tag::NOTICE) {
            holding.marks.note(Mark::Failure); // an error also undoes what has succeeded before in the unit
        }
        learn_reply(&self.env, &holding.connection, &mut holding.learns, frame);
        let is_own = match frame.tag {
            tag::ERROR => self.handle_error(frame.body(), bound.as_ref())?,
            tag::PARAMETER_STATUS => self.handle_setting(frame.body())?,
            tag::READY => {
                holding.learning = Learning::Nothing;
                lost_name = self.handle_ready(frame.body())?;
                false
            }
            tag::NOTIFICATION => return self.take_notification(frame.body()),
            tag::COMMAND_COMPLETE => {
                self.command_completed(frame.body(), step)?;
                false
            }
            _ => false,
        };
        if is_own {
            return Ok(Passing::Swallowed);
        }
        // Earlier facts of the catalog are dropped before the client learns that its change is complete.
        let holding = self.held();
        if holding.alters > Alters::Nothing && matches!(frame.tag, tag::COMMAND_COMPLETE | tag::READY) {
            let is_over = frame.tag == tag::READY && holding.status == Status::Idle;
            let alters = if is_over { std::mem::take(&mut holding.alters) } else { holding.alters };
            self.env.catalog_changed(alters);
        }
        if frame.tag == tag::READY
            && let Some(passing) = self.end_unit(lost_name)
        {
            return Ok(passing);
        }
        // The statement was prepared again here and has its present columns, but the client expects the earlier ones.
        let is_wrong_columns = || frame.body().windows(WRONG_COLUMNS.len()).any(|part| part == WRONG_COLUMNS);
        let is_anew = || bound.as_ref().is_some_and(|name| self.is_prepared_anew(name));
        if frame.tag == tag::ERROR && is_anew() && is_wrong_columns() {
            return Ok(Passing::ChangedResult);
        }
        Ok(bound.map_or(Passing::AsItIs, Passing::Mentions))
    }

    /// Records the success of a command, which was this step of its transaction.
    fn command_completed(&mut self, body: &[u8], step: Option<Step>) -> Result<(), SessionEnd> {
        let holding = self.held();
        holding.marks.completed(body);
        if let Learning::One(statement, row) = &holding.learning {
            statement.foretold.ran(*row, matches!(body, b"UPDATE 1\0" | b"INSERT 0 1\0"));
        }
        holding.name_reset |= matches!(body, b"DISCARD ALL\0" | b"RESET\0");
        if matches!(body, b"COMMIT\0" | b"ROLLBACK\0") {
            self.places.clear(); // with AND CHAIN the next transaction has begun
        }
        self.switches.succeeded(command_tag(body), step, &mut self.reads)
    }

    /// A unit is over. Returns how its ReadyForQuery is handled, if the client does not get it unchanged.
    fn end_unit(&mut self, lost_name: bool) -> Option<Passing> {
        let holding = self.held();
        let (status, failed) = (holding.status, holding.failed);
        if self.waits_for_description() {
            self.unit_over(false);
            return Some(Passing::Ready(self.end_description(failed)));
        }
        self.unit_over(status == Status::Idle);
        if lost_name {
            self.held().delayed_ready = Some(status);
            return Some(Passing::Swallowed);
        }
        self.delay_ready().then_some(Passing::Swallowed)
    }

    fn take_notification(&mut self, body: &[u8]) -> Result<Passing, SessionEnd> {
        let notification = Notification::read(body)?;
        let is_own = notification.process_id == self.held().connection.process_id();
        Ok(match self.keeps(&notification, body)? {
            true => Passing::Swallowed,
            false if is_own => Passing::OwnNotification,
            false => Passing::AsItIs,
        })
    }

    /// Whether the gateway has prepared the statement with this name again on the connection.
    fn is_prepared_anew(&self, name: &[u8]) -> bool {
        let (Some(named), Some(holding)) = (self.names.get(name), self.phase.held()) else {
            return false;
        };
        let typed = named.resolved.as_ref().and_then(|resolved| resolved.statement.get());
        let mut both = [Some(&named.statement), typed].into_iter().flatten();
        both.any(|statement| holding.prepared_anew.contains(&statement.id))
    }

    /// Records an error. Returns whether the client does not get it.
    fn handle_error(&mut self, body: &[u8], bound: Option<&Bytes>) -> Result<bool, SessionEnd> {
        let report = Report::read(body)?;
        // The client has this name, so the statement on the connection is gone, and maybe others too.
        let is_known = bound.is_some_and(|name| self.names.contains_key(&name[..]));
        let closes = !report.is_error();
        if closes {
            self.held().marks.note(Mark::Closing);
        }
        // The client would take it for an error of the next statement, which runs on another connection.
        let is_given_back = closes && self.is_given_back();
        // The client gets an error and a ReadyForQuery for the unit, and then the answers of the later units.
        let ends_alone = closes && self.alone.is_some();
        let holding = self.held();
        holding.failed |= !is_given_back;
        if report.code == SqlState::UndefinedPreparedStatement.code().as_bytes() && is_known {
            holding.marks.note(Mark::Missing);
        }
        // The session continues without this connection.
        let is_swallowed = is_given_back || ends_alone;
        if is_swallowed {
            self.env.server_closes(report.message);
        }
        Ok(is_swallowed)
    }

    /// Records a setting that the server reports. Returns whether the client does not get it.
    fn handle_setting(&mut self, body: &[u8]) -> Result<bool, SessionEnd> {
        let (name, value) = backend::parameter_status(body)?;
        let holding = self.phase.held_mut().expect("called only while a connection is held");
        holding.connection.setting_changed(name, value);
        if name == "client_encoding" && self.listening.listens() {
            holding.marks.note(Mark::Channels); // the shared connection has one encoding
        }
        if name != "application_name" {
            self.env.setting_reported(name, value);
            return Ok(false);
        }
        if holding.has_lost_name(&self.first_name) {
            return Ok(true);
        }
        self.application_name = value.to_owned();
        self.env.client_renamed(value);
        Ok(false)
    }

    /// Records the end of a unit. Returns whether the server has to be told the client's name again.
    fn handle_ready(&mut self, body: &[u8]) -> Result<bool, SessionEnd> {
        let is_settled = self.expected().is_settled();
        let holding = self.phase.held_mut().expect("called only while a connection is held");
        holding.status = backend::status(body)?;
        // Later messages may be answered already. Then the next connection gets the name.
        let lost_name =
            holding.has_lost_name(&self.first_name) && holding.status != Status::Failed && is_settled;
        holding.name_reset = false;
        if let Some(alone) = &mut self.alone {
            alone.owed = alone.owed.saturating_sub(1);
        }
        if holding.status != Status::Transaction {
            self.places.clear(); // its locks are released, also if it has failed
            if holding.begun.is_none() {
                let is_lost = holding.status == Status::Idle && !holding.failed && !self.deferred.is_empty();
                debug_assert!(!is_lost, "a transaction is committed without its writes");
                match holding.status {
                    Status::Idle => self.deferred.transaction_over(),
                    _ => self.deferred.clear(),
                }
            }
        }
        if holding.status == Status::Idle && is_settled {
            holding.marks.end_of_local_settings();
        }
        let (is_idle, failed) = (holding.status == Status::Idle, holding.failed);
        if is_idle && is_settled {
            self.held().expected.clear_portals();
        }
        // The server does not know a transaction that only the gateway has begun.
        if is_idle && self.phase.begun().is_none() {
            self.switches.transaction_over(!failed, &mut self.reads);
        }
        Ok(lost_name)
    }
}

fn command_tag(body: &[u8]) -> &[u8] {
    body.strip_suffix(b"\0").unwrap_or(body)
}

/// The end of a session whose transaction the server could not begin, with this message.
fn not_begun(message: &[u8]) -> SessionEnd {
    SessionEnd::Problem(Problem::fatal(
        SqlState::ConnectionFailure,
        format!("the server could not begin the transaction: {}", String::from_utf8_lossy(message)),
        "Nothing of the transaction was executed. Connect again.",
    ))
}

fn unexpected(tag: u8) -> SessionEnd {
    SessionEnd::Problem(Problem::fatal(
        SqlState::ProtocolViolation,
        format!("the server sent an unexpected message of type {:?}", char::from(tag)),
        "Connect again. If the error returns, check that the upstream URL names a PostgreSQL server.",
    ))
}

/// Appends an error about a Bind. An error about the number of parameters contains the statement's name.
fn put_with_name(body: &[u8], name: &[u8], out: &mut BytesMut) {
    let own = OWN_NAMES.as_bytes();
    let quoted = [b"\"", own].concat();
    let start = body.windows(quoted.len()).position(|part| part == quoted).map(|at| at + 1);
    let end = start.and_then(|start| Some(start + body[start..].iter().position(|byte| *byte == b'"')?));
    put_frame(out, tag::ERROR, |out| match start.zip(end) {
        Some((start, end)) if body[start + own.len()..end].iter().all(u8::is_ascii_digit) => {
            [&body[..start], name, &body[end..]].iter().for_each(|part| out.extend_from_slice(part));
        }
        _ => out.extend_from_slice(body),
    });
}

/// The length of an incomplete message that is large enough to be relayed in pieces.
fn begins_large(input: &[u8]) -> Option<usize> {
    let (header, _) = input.split_first_chunk::<HEADER_BYTES>()?;
    let [tag, length @ ..] = *header;
    let total = u32::from_be_bytes(length) as usize + 1;
    let in_pieces = matches!(tag, tag::DATA_ROW | tag::COPY_DATA) && total > limits::SESSION_BUFFER_BYTES;
    in_pieces.then_some(total)
}

/// Appends ReadyForQuery with this status.
pub fn put_ready(status: Status, out: &mut BytesMut) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5]);
    out.extend_from_slice(match status {
        Status::Idle => b"I",
        Status::Transaction => b"T",
        Status::Failed => b"E",
    });
}

/// Asks the server which Syncs a COPY has read: a Sync, a Close of a statement that does not exist, and a Flush.
fn put_question(out: &mut BytesMut) {
    out.extend_from_slice(frontend::SYNC);
    let unused = statement_name(0);
    frontend::ObjectName { statement: true, name: unused.as_bytes() }.put(frontend::tag::CLOSE, out);
    out.extend_from_slice(frontend::FLUSH);
}
