//! Forwards the server's messages on a held connection to the client, except for replies to the gateway's own messages.

use bytes::{Buf, Bytes, BytesMut};
use hotrow_core::classify::Effect;
use hotrow_core::expect::Reply;
use hotrow_core::limits;
use hotrow_wire::backend::{self, Problem, Report, Status, tag};
use hotrow_wire::{Frame, HEADER_BYTES, frontend, put_frame, split};

use super::hold::Holding;
use super::{Sequences, Session, SessionEnd, put_ready, stopping};
use crate::net::{ReadHalf, WriteHalf};
use crate::server::held;
use crate::server::upstream::{self, Upstream};
use crate::session::stop::Stage;

/// The event that woke the session.
enum Woken {
    Server(std::io::Result<usize>),
    Client(std::io::Result<usize>),
    ServerTakes,
    ClientTakes,
    Mailbox,
}

/// The handling of a reply.
enum Passing {
    /// The client gets it unchanged.
    AsItIs,
    /// It is a reply to the gateway.
    Swallowed,
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

impl Session {
    /// Waits for one event while a connection is held, and handles it.
    pub(super) async fn relay_once(&mut self, unread: usize) -> Result<(), SessionEnd> {
        if self.stop.stage() == Stage::Leaving {
            self.stop_if_idle()?;
        }
        let woken = self.wait_held(unread, true).await;
        match woken {
            Woken::Server(Ok(1..)) => self.relay().await,
            Woken::Server(_) => Err(self.server_gone()),
            Woken::Client(count) => {
                if count? == 0 {
                    // The client may have closed only its sending side: its messages are run, also those that wait for
                    // an answer.
                    while self.holding.is_some() && matches!(split(&self.input, |_| usize::MAX), Ok(Some(_)))
                    {
                        let left = self.mailbox.try_write()?;
                        self.relay_alone(left.unread).await?;
                        self.take_frames().await?;
                    }
                    self.finish().await;
                    Err(SessionEnd::Client)
                } else {
                    Ok(())
                }
            }
            Woken::ServerTakes | Woken::ClientTakes | Woken::Mailbox => Ok(()),
        }
    }

    /// The same for a unit that runs alone: the client is not read.
    pub(super) async fn relay_alone(&mut self, unread: usize) -> Result<(), SessionEnd> {
        match self.wait_held(unread, false).await {
            Woken::Server(Ok(1..)) => self.relay().await,
            Woken::Server(_) => Err(self.server_gone()),
            _ => Ok(()),
        }
    }

    async fn wait_held(&mut self, unread: usize, client: bool) -> Woken {
        let active = !self.is_settled();
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        self.control.activity.set_held(active, holding.status, self.pack, self.left);
        let was_full = holding.is_full();
        holding.write();
        let full = holding.is_full();
        if was_full && !full {
            // the client's messages may be there already and have only waited for room
            return Woken::ServerTakes;
        }
        let Upstream { read, write, input, output, .. } = &mut *holding.held.upstream;
        let (read, write): (&mut ReadHalf, &WriteHalf) = (read, write);
        tokio::select! {
            biased;
            count = read.fill(input), if unread < limits::UNREAD_BYTES_MAX => Woken::Server(count),
            count = self.read.fill(&mut self.input), if client && !full => Woken::Client(count),
            _ = write.writable(), if !output.is_empty() => Woken::ServerTakes,
            _ = self.mailbox.write.writable(), if unread > 0 => Woken::ClientTakes,
            () = self.mailbox.task_notify.notified() => Woken::Mailbox,
        }
    }

    /// The gateway stops: a session without a transaction ends now, others after their transaction.
    fn stop_if_idle(&mut self) -> Result<(), SessionEnd> {
        let is_settled = self.is_settled();
        let idle = is_settled && self.held().status == Status::Idle;
        if idle && self.stop.stage() == Stage::Leaving {
            Err(SessionEnd::Problem(stopping()))
        } else {
            Ok(())
        }
    }

    fn server_gone(&mut self) -> SessionEnd {
        // it has reported the reason itself
        let is_told = self.held().must_close && self.held().failed && self.alone.is_none();
        if is_told || self.held().message_bytes_left > 0 {
            return SessionEnd::Server; // in a message: the client would take later bytes for a part of it
        }
        SessionEnd::Problem(Problem::fatal(
            "08006",
            "the server closed the connection unexpectedly",
            "Statements under way may or may not have been executed. Check before you send them again.",
        ))
    }

    /// Forwards the server's messages.
    async fn relay(&mut self) -> Result<(), SessionEnd> {
        let mut input = std::mem::take(&mut self.held().held.upstream.input);
        let mut taken = 0;
        let ready = self.take_replies(&input, &mut taken);
        if taken == input.len() {
            input.clear();
        } else {
            input.advance(taken);
        }
        if input.is_empty() && input.capacity() > limits::SESSION_BUFFER_BYTES {
            input = BytesMut::new();
        }
        self.held().held.upstream.input = input;
        let ready = ready?;
        if let Some(status) = self.held().delayed_ready.take() {
            self.restore_name(status).await?;
        }
        if ready {
            self.release_connection().await;
            if self.holding.is_some() {
                self.update_cancel_target();
            }
            if self.stop.stage() == Stage::Leaving && self.holding.is_some() && self.mailbox.pending() == 0 {
                self.stop_if_idle()?;
            }
        }
        Ok(())
    }

    /// The server has reset the client's name to the default: sets the client's own name again before the client is
    /// told that the unit is over. If more is under way already, the next connection gets the name.
    async fn restore_name(&mut self, status: Status) -> Result<(), SessionEnd> {
        let name = self.first_name.clone();
        if self.is_settled() {
            let renamed = self.held().held.rename(&name).await;
            renamed.map_err(|error| SessionEnd::from(held::Error::from(error)))?;
        }
        let is_new = self.application_name != name;
        self.mailbox.append(|out| {
            if is_new {
                backend::put_parameter_status(out, "application_name", &name);
            }
            put_ready(status, out);
        });
        self.control.activity.rename(&name);
        self.application_name = name;
        Ok(())
    }

    /// Reads complete messages and the beginnings of large rows, and forwards the client's. True if a ReadyForQuery was
    /// among them.
    fn take_replies(&mut self, input: &[u8], taken: &mut usize) -> Result<bool, SessionEnd> {
        let mut ready = false;
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
                *taken = end; // it has no effect here
                continue;
            }
            let passing = self.take_reply(frame);
            // The last reply to the gateway's own messages may follow it.
            ready |= frame.tag == tag::READY || frame.tag == tag::CLOSE_COMPLETE && self.is_settled();
            match passing {
                Ok(Passing::AsItIs) => {}
                Ok(passing) => {
                    self.mailbox.append(|out| {
                        out.extend_from_slice(&input[begin..*taken]);
                        match passing {
                            Passing::AsItIs | Passing::Swallowed => {}
                            Passing::OwnNotification => {
                                let process_id = self.control.process_id.to_be_bytes();
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
        };
        self.mailbox.append(|out| out.extend_from_slice(&input[begin..*taken]));
        result.map(|()| ready)
    }

    /// Notes the meaning of a reply. Returns how it is handled.
    fn take_reply(&mut self, frame: Frame<'_>) -> Result<Passing, SessionEnd> {
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        let mut lost_name = false;
        let bound = if frame.tag == tag::ERROR { self.expected.bound().cloned() } else { None };
        match self.expected.received(&mut holding.held.upstream.prepared, frame.tag, frame.body()) {
            Reply::Forward => {}
            Reply::Swallow => return Ok(Passing::Swallowed),
            Reply::ForwardAndAsk => {
                let out = &mut holding.held.upstream.output;
                out.extend_from_slice(frontend::SYNC);
                let nobody = upstream::statement_name(0);
                frontend::Named { statement: true, name: nobody.as_bytes() }.put(frontend::tag::CLOSE, out);
                out.extend_from_slice(frontend::FLUSH);
            }
            Reply::Unexpected => {
                return Err(SessionEnd::Problem(Problem::fatal(
                    "08P01",
                    format!("the server sent an unexpected message of type {:?}", char::from(frame.tag)),
                    "Connect again. If the error returns, check that the upstream URL names a PostgreSQL server.",
                )));
            }
        }
        let is_own = match frame.tag {
            tag::ERROR => self.handle_error(frame.body(), bound.as_ref())?,
            tag::PARAMETER_STATUS => self.handle_setting(frame.body())?,
            tag::READY => {
                lost_name = self.handle_ready(frame.body())?;
                false
            }
            tag::COMMAND_COMPLETE => {
                holding.name_reset |= matches!(frame.body(), b"DISCARD ALL\0" | b"RESET\0");
                false
            }
            _ => false,
        };
        if is_own {
            return Ok(Passing::Swallowed);
        }
        // Earlier facts of the catalogue are dropped before the client learns that its change is complete.
        if self.changes_catalogue && matches!(frame.tag, tag::COMMAND_COMPLETE | tag::READY) {
            self.pool.catalogue_changed();
            self.changes_catalogue = frame.tag != tag::READY || self.held().status != Status::Idle;
        }
        if frame.tag == tag::READY {
            self.unit_over();
            if lost_name {
                let holding = self.held();
                holding.delayed_ready = Some(holding.status);
                return Ok(Passing::Swallowed);
            }
        }
        let own = self.held().held.upstream.process_id.to_be_bytes();
        if frame.tag == tag::NOTIFICATION && frame.body().starts_with(&own) {
            return Ok(Passing::OwnNotification);
        }
        // The statement was prepared again here and has its present columns, but the client expects the earlier ones.
        let is_wrong_columns = || frame.body().windows(WRONG_COLUMNS.len()).any(|part| part == WRONG_COLUMNS);
        if frame.tag == tag::ERROR && self.held().prepared_anew && is_wrong_columns() {
            return Ok(Passing::ChangedResult);
        }
        Ok(bound.filter(|name| !name.is_empty()).map_or(Passing::AsItIs, Passing::Mentions))
    }

    /// Notes an error. Returns whether the client does not get it.
    fn handle_error(&mut self, body: &[u8], bound: Option<&Bytes>) -> Result<bool, SessionEnd> {
        let report = Report::read(body)?;
        // The client has this name, so the statement on the connection is gone, and maybe others too.
        let is_known = bound.is_some_and(|name| self.expected.names.contains_key(&name[..]));
        let ends_alone = !report.is_error() && self.alone.is_some();
        let holding = self.held();
        holding.failed = true;
        holding.must_close |= report.code == b"26000" && is_known || !report.is_error();
        if ends_alone {
            // The session continues without this connection: the client gets an error and a ReadyForQuery for the unit, and
            // then the answers of the later units.
            tracing::warn!(message = %String::from_utf8_lossy(report.message), "the server closes a connection");
        }
        Ok(ends_alone)
    }

    /// Notes a setting that the server reports. Returns whether the client does not get it.
    fn handle_setting(&mut self, body: &[u8]) -> Result<bool, SessionEnd> {
        let (name, value) = backend::parameter_status(body)?;
        if name != "application_name" {
            return Ok(false);
        }
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        holding.held.name_changed(value);
        if holding.has_lost_name(&self.first_name) {
            return Ok(true);
        }
        self.application_name = value.to_owned();
        self.control.activity.rename(value);
        Ok(false)
    }

    /// Notes the end of a unit. Returns whether the server has to be told the client's name again.
    fn handle_ready(&mut self, body: &[u8]) -> Result<bool, SessionEnd> {
        let is_settled = self.expected.is_settled();
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        holding.status = backend::status(body)?;
        // Later messages may be answered already. Then the next connection gets the name.
        let lost_name =
            holding.has_lost_name(&self.first_name) && holding.status != Status::Failed && is_settled;
        holding.name_reset = false;
        self.alone = self.alone.map(|owed| owed.saturating_sub(1));
        if holding.status == Status::Idle && is_settled {
            self.portals.clear();
        }
        Ok(lost_name)
    }

    /// A unit is over: its cleared state is removed if it has succeeded.
    fn unit_over(&mut self) {
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        let failed = std::mem::take(&mut holding.failed);
        let clears = std::mem::replace(&mut holding.clears, Effect::NONE);
        if let Some(statement) = holding.earning_credit.take()
            && !failed
        {
            statement.succeeded();
        }
        if !failed && holding.status == Status::Idle {
            self.left = self.left.without(clears);
            if clears.touches_sequence {
                self.sequences = Sequences::Untouched;
            }
        }
    }
}

impl Holding {
    /// Whether the server has reset the client's name, and the present name differs from the name at log-in.
    fn has_lost_name(&self, first_name: &str) -> bool {
        let held = &self.held;
        self.name_reset && held.name() == held.default_name() && held.name() != first_name
    }
}

/// Appends an error about a Bind. An error about the number of parameters contains the statement's name.
fn put_with_name(body: &[u8], name: &[u8], out: &mut BytesMut) {
    let own = upstream::OWN_NAMES.as_bytes();
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
