//! What the server says on a connection that a session holds goes on to the client, but for answers to the gateway's
//! own messages.

use bytes::{Buf, BytesMut};
use hotrow_core::classify::Effect;
use hotrow_core::expect::{Owed, Reply};
use hotrow_core::limits;
use hotrow_wire::backend::{self, Problem, Report, Status, tag};
use hotrow_wire::{Frame, HEADER_BYTES, put_frame, split};

use super::{End, Session, stopping};
use crate::net::{ReadHalf, WriteHalf};
use crate::stop::Stage;
use crate::upstream::Upstream;

/// What woke the session.
enum Woken {
    Server(std::io::Result<usize>),
    Client(std::io::Result<usize>),
    ServerTakes,
    ClientTakes,
    Mailbox,
}

/// What becomes of a reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    /// The client gets it.
    AsItIs,
    /// It answers the gateway.
    Swallowed,
    /// A notification that the session has sent itself: clients tell those by the process id that they know as theirs.
    OwnNotification,
    /// An error about a statement that the client prepared before its result changed.
    ChangedResult,
}

/// What the server says of such a statement on the connection where it was prepared. Drivers prepare it anew.
const CHANGED_RESULT: &[u8] =
    b"SERROR\0VERROR\0C0A000\0Mcached plan must not change result type\0Fplancache.c\0RRevalidateCachedQuery\0\0";

/// Which function of the server says that a Bind asks for fewer or more columns than there are.
const WRONG_COLUMNS: &[u8] = b"\0RPortalSetResultFormat\0";

impl Session {
    /// Waits for one thing to happen while a connection is held, and deals with it.
    pub(super) async fn relay_once(&mut self, unread: usize) -> Result<(), End> {
        if self.stop.stage() == Stage::Leaving {
            self.stop_if_idle()?;
        }
        let woken = self.wait_held(unread, true).await;
        match woken {
            Woken::Server(Ok(1..)) => self.relay().await,
            Woken::Server(_) => Err(self.server_gone()),
            Woken::Client(count) => {
                if count? == 0 {
                    self.finish().await; // it may have closed its own side only
                    Err(End::Client)
                } else {
                    Ok(())
                }
            }
            Woken::ServerTakes | Woken::ClientTakes | Woken::Mailbox => Ok(()),
        }
    }

    /// The same for a unit that runs alone: the client is not read.
    pub(super) async fn relay_alone(&mut self, unread: usize) -> Result<(), End> {
        match self.wait_held(unread, false).await {
            Woken::Server(Ok(1..)) => self.relay().await,
            Woken::Server(_) => Err(self.server_gone()),
            _ => Ok(()),
        }
    }

    async fn wait_held(&mut self, unread: usize, client: bool) -> Woken {
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        let active = !holding.is_settled();
        self.control.doing.holds(active, holding.status, self.pack, self.left);
        let was_full = holding.is_full();
        holding.write();
        let full = holding.is_full();
        if was_full && !full {
            return Woken::ServerTakes; // messages of the client may be here already and have only waited for room
        }
        let Upstream { read, write, input, output, .. } = &mut *holding.held.upstream;
        let (read, write): (&mut ReadHalf, &WriteHalf) = (read, write);
        tokio::select! {
            biased;
            count = read.fill(input), if unread < limits::UNREAD_BYTES_MAX => Woken::Server(count),
            count = self.read.fill(&mut self.input), if client && !full => Woken::Client(count),
            _ = write.writable(), if !output.is_empty() => Woken::ServerTakes,
            _ = self.mailbox.write.writable(), if unread > 0 => Woken::ClientTakes,
            () = self.mailbox.wake.woken() => Woken::Mailbox,
        }
    }

    /// The gateway stops: a session without a transaction ends now, one with a transaction when it is over.
    fn stop_if_idle(&mut self) -> Result<(), End> {
        let holding = self.held();
        let idle = holding.is_settled() && holding.status == Status::Idle;
        if idle && self.stop.stage() == Stage::Leaving { Err(End::Problem(stopping())) } else { Ok(()) }
    }

    fn server_gone(&mut self) -> End {
        let is_told = self.held().spoilt && self.held().failed && self.alone.is_none(); // it has said goodbye itself
        if is_told || self.held().rest > 0 {
            return End::Server; // within a message: whatever followed would be taken for a part of it
        }
        End::Problem(Problem::fatal(
            "08006",
            "the server closed the connection unexpectedly",
            "What was under way may or may not have been executed.",
        ))
    }

    /// Passes on what the server has said.
    async fn relay(&mut self) -> Result<(), End> {
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
        if ready? {
            self.let_go().await;
            if self.holding.is_some() {
                self.note_cancel_target();
            }
            if self.stop.stage() == Stage::Leaving && self.holding.is_some() && self.mailbox.pending() == 0 {
                self.stop_if_idle()?;
            }
        }
        Ok(())
    }

    /// Looks at whole messages, and at the beginnings of large rows, and gives the client what is its. True if a
    /// ReadyForQuery was among them.
    fn take_replies(&mut self, input: &[u8], taken: &mut usize) -> Result<bool, End> {
        let mut ready = false;
        let mut begin = 0; // of what goes to the client in one piece
        let result = loop {
            let rest = &input[*taken..];
            let holding = self.held();
            if holding.rest > 0 {
                let count = holding.rest.min(rest.len());
                holding.rest -= count;
                *taken += count;
                if count == 0 || holding.rest > 0 {
                    break Ok(());
                }
                continue;
            }
            let frame = match split(rest, |_| usize::MAX) {
                Ok(Some(frame)) => frame,
                Ok(None) => match begins_large(rest) {
                    Some(bytes) => {
                        holding.rest = bytes;
                        continue;
                    }
                    None => break Ok(()),
                },
                Err(error) => break Err(error.into()),
            };
            let end = *taken + frame.bytes.len();
            if frame.tag == tag::DATA_ROW {
                *taken = end; // nothing follows from it
                continue;
            }
            ready |= frame.tag == tag::READY;
            match self.take_reply(frame) {
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

    /// Notes what a reply means; whether it is the client's.
    fn take_reply(&mut self, frame: Frame<'_>) -> Result<Passing, End> {
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        match frame.tag {
            tag::ERROR => {
                holding.failed = true;
                let report = Report::read(frame.body())?;
                if !report.is_error() {
                    holding.spoilt = true;
                    if self.alone.is_some() {
                        // The end of that connection is not the end of the session: the client gets an error in the
                        // unit's place, with a ReadyForQuery, and then what belongs to the units behind it.
                        tracing::warn!(message = %String::from_utf8_lossy(report.message), "the server ends a connection");
                        return Ok(Passing::Swallowed);
                    }
                }
            }
            tag::COMMAND_COMPLETE => match frame.body() {
                b"DISCARD ALL\0" | b"DEALLOCATE ALL\0" => {
                    holding.held.upstream.prepared.clear();
                    holding.held.set_name(None);
                    holding.name_reset = frame.body() == b"DISCARD ALL\0";
                    self.statements.retain(|name, _| name.is_empty()); // as the server does
                }
                b"RESET\0" => {
                    holding.held.set_name(None);
                    holding.name_reset = true;
                }
                _ => {}
            },
            tag::PARAMETER_STATUS => {
                let (name, value) = backend::parameter_status(frame.body())?;
                if name == "application_name" {
                    // After a reset it is the name the connection began with, which may be that of another client.
                    let own = !holding.name_reset;
                    holding.held.set_name(own.then(|| value.to_owned()));
                    self.application_name = if own { value } else { &self.first_name }.to_owned();
                    self.control.doing.rename(&self.application_name);
                }
            }
            tag::READY => {
                holding.status = backend::status(frame.body())?;
                holding.name_reset = false;
                self.alone = self.alone.map(|owed| owed.saturating_sub(1));
            }
            _ => {}
        }
        let reply = holding.held.upstream.expected.received(frame.tag);
        if matches!(frame.tag, tag::ERROR | tag::READY) {
            self.undo_skipped();
        }
        let holding = self.held();
        match reply {
            Reply::Forward => {}
            Reply::Closed => {
                holding.closing.pop_front();
            }
            Reply::Swallow => return Ok(Passing::Swallowed),
            Reply::Prepared(_) => {
                if let Some((Some(name), statement)) = holding.naming.pop_front() {
                    self.statements.insert(name, statement);
                }
            }
            Reply::Unexpected => {
                return Err(End::Problem(Problem::fatal(
                    "08P01",
                    format!("the server sent message {:?} that it was not asked for", char::from(frame.tag)),
                    "",
                )));
            }
        }
        if frame.tag == tag::READY {
            self.unit_over();
        }
        let own = self.held().held.upstream.process_id.to_be_bytes();
        if frame.tag == tag::NOTIFICATION && frame.body().starts_with(&own) {
            return Ok(Passing::OwnNotification);
        }
        // Prepared anew here, it has the columns of today, and the client asks for those it was told of.
        let is_wrong_columns = || frame.body().windows(WRONG_COLUMNS.len()).any(|part| part == WRONG_COLUMNS);
        if frame.tag == tag::ERROR && !self.statements.is_empty() && is_wrong_columns() {
            return Ok(Passing::ChangedResult);
        }
        Ok(Passing::AsItIs)
    }

    /// Takes back what was noted of messages that the server has skipped.
    fn undo_skipped(&mut self) {
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        let skipped = holding.held.upstream.expected.take_skipped();
        for owed in &skipped {
            match *owed {
                Owed::Parse(id) => {
                    holding.naming.pop_front();
                    holding.held.upstream.prepared.forget(id);
                }
                Owed::OwnParse(id) => holding.held.upstream.prepared.forget(id),
                Owed::Close => {
                    if let Some((name, statement)) = holding.closing.pop_front().flatten()
                        && !skipped.contains(&Owed::Parse(statement.id))
                    {
                        self.statements.insert(name, statement);
                    }
                }
                _ => {}
            }
        }
    }

    /// A unit is over: what it clears is cleared if it has succeeded.
    fn unit_over(&mut self) {
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        let failed = std::mem::take(&mut holding.failed);
        let clears = std::mem::replace(&mut holding.clears, Effect::NONE);
        if let Some(statement) = holding.on_trial.take()
            && !failed
        {
            statement.succeeded();
        }
        if !failed && holding.status == Status::Idle {
            self.left = self.left.without(clears);
        }
    }
}

/// How many bytes a message has that has begun and is worth relaying in pieces.
fn begins_large(input: &[u8]) -> Option<usize> {
    let (header, _) = input.split_first_chunk::<HEADER_BYTES>()?;
    let [tag, length @ ..] = *header;
    let total = u32::from_be_bytes(length) as usize + 1;
    let in_pieces = matches!(tag, tag::DATA_ROW | tag::COPY_DATA) && total > limits::SESSION_BUFFER_BYTES;
    in_pieces.then_some(total)
}
