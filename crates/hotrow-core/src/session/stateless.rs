//! What pools of connections send before they give a connection to their application: an empty statement, commands that clear
//! the state of the session, or the end of a transaction that there may not be. A session that has no state and holds no
//! connection needs none for them. The server answers each such text once in a pool, and the gateway repeats its reply as long
//! as that is known to be the present one.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_wire::backend::{self, Report, Status, tag};
use hotrow_wire::{Frame, split};

use super::environment::Stop;
use super::executed::Executed;
use super::planning::Planning;
use super::{Environment, Sequences, Session, StatementOf};
use crate::classify::{Effect, Step};
use crate::pack_mode::PackMode;

impl<E: Environment> Session<E> {
    /// The results of a statement that has no effect in this session, if the server is not needed for them. `is_extended` is
    /// whether each statement is executed by a message of its own.
    pub(super) fn answer_without_state(
        &mut self,
        planning: &Planning,
        statement: &E::Statement,
        is_extended: bool,
    ) -> Result<Option<Bytes>, Stop<E>> {
        if self.switches.pack() == PackMode::Off || self.begun_status() == Status::Failed {
            return Ok(None);
        }
        if statement.is_empty() && statement.text.is_ascii() {
            if is_extended && self.phase.begun().is_some() {
                return Ok(None); // its portal can be executed again
            }
            self.catch_up(planning)?;
            self.lanes_done(planning)?;
            return Ok(Some(Bytes::from_static(backend::EMPTY_QUERY)));
        }
        let Some(clears) = statement.clears_only() else { return Ok(None) };
        if self.phase.is_held() || self.phase.begun().is_some() || self.has_state(clears) {
            return Ok(None);
        }
        let reply = self.env.known_reply(statement).filter(|reply| !is_extended || is_command(reply));
        let Some(reply) = reply else { return Ok(None) };
        self.catch_up(planning)?;
        self.lanes_done(planning)?;
        if clears.prepared {
            self.names.retain(|name, _| name.is_empty()); // the server keeps the unnamed one
        }
        if clears.touches_sequence {
            self.sequences = Sequences::Untouched;
        }
        if statement.steps().contains(&Step::ResetAll) {
            self.switches.reset(&mut self.reads);
        }
        Ok(Some(reply))
    }

    /// Whether a statement only clears state, and the server's reply is known.
    pub(super) fn knows_reply(&self, statement: &E::Statement) -> bool {
        statement.clears_only().is_some() && self.env.known_reply(statement).is_some()
    }

    /// Whether the session may have some of this state, or settings that its pool does not have.
    fn has_state(&self, clears: Effect) -> bool {
        let has_name = self.application_name != self.first_name;
        !self.has_settings_of_pool()
            || clears.settings && self.env.has_settings()
            || clears.name && has_name
            || clears.listen && !self.shared_channels().is_empty()
    }

    /// A statement is sent. If it only clears state, and is the first one on its connection, the server's reply is recorded. It may
    /// differ from an earlier one: the server's settings can change, for example the language of its messages.
    pub(super) fn learn_from(&mut self, statement: &StatementOf<E>) {
        let learns = statement.clears_only().is_some_and(|clears| !self.has_state(clears));
        // Replies to earlier messages may be on their way: those of a whole unit, or of the Parse of this statement.
        let is_alone = self.expected().owes_nothing();
        let is_in_first_unit = !self.expected().has_unit_under_way();
        let holding = self.held();
        let is_first = is_in_first_unit
            && matches!(holding.marks.executed(), Executed::Nothing)
            && holding.status == Status::Idle;
        holding.learns = (is_first && learns).then(|| LearnedReply {
            statement: statement.clone(),
            is_alone,
            reply: Some(BytesMut::new()),
        });
    }
}

/// A statement, and the server's reply to it so far.
pub(super) struct LearnedReply<S> {
    statement: Arc<S>,
    /// No other message was sent before in its unit.
    is_alone: bool,
    /// None if it says more than its success.
    reply: Option<BytesMut>,
}

impl<S> LearnedReply<S> {
    /// A message of the reply has come.
    pub(super) fn add(&mut self, frame: Frame<'_>) {
        match frame.tag {
            tag::ROW_DESCRIPTION | tag::DATA_ROW | tag::COMMAND_COMPLETE => {
                self.reply.iter_mut().for_each(|reply| reply.extend_from_slice(frame.bytes));
            }
            tag::NOTICE if warns_of_no_transaction(frame) => {
                self.reply.iter_mut().for_each(|reply| reply.extend_from_slice(frame.bytes));
            }
            tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::PARAMETER_DESCRIPTION | tag::NO_DATA => {}
            // RESET ALL gives the connection the name of its login. The session, which has not changed its name, is not told.
            tag::PARAMETER_STATUS if is_of_name(frame) => {}
            tag::READY if frame.body() == b"I" => {}
            _ => self.reply = None,
        }
    }
}

/// A message has come on the session's connection. With the last one of a reply, that is learned.
pub(super) fn learn_reply<E: Environment>(
    env: &E,
    held: &E::Connection,
    learns: &mut Option<LearnedReply<E::Statement>>,
    frame: Frame<'_>,
) {
    learns.iter_mut().for_each(|learns| learns.add(frame));
    if frame.tag == tag::READY
        && let Some(LearnedReply { statement, is_alone, reply }) = learns.take()
    {
        let reply = reply.filter(|reply| is_alone || is_command(reply));
        env.learn_reply(held, &statement, reply.map(BytesMut::freeze));
    }
}

/// Whether a notice is the warning for COMMIT or ROLLBACK outside a transaction. Its text and its place in the server's code depend
/// on nothing but the server and its settings.
fn warns_of_no_transaction(notice: Frame<'_>) -> bool {
    const NO_ACTIVE_SQL_TRANSACTION: &[u8] = b"25P01";
    Report::read(notice.body()).is_ok_and(|report| report.code == NO_ACTIVE_SQL_TRANSACTION)
}

fn is_of_name(frame: Frame<'_>) -> bool {
    backend::parameter_status(frame.body()).is_ok_and(|(name, _)| name == "application_name")
}

/// Whether a reply is that to one command, which may have warned.
fn is_command(mut reply: &[u8]) -> bool {
    while let Ok(Some(frame)) = split(reply, |_| usize::MAX) {
        reply = &reply[frame.bytes.len()..];
        match frame.tag {
            tag::NOTICE => {}
            last => return last == tag::COMMAND_COMPLETE && reply.is_empty(),
        }
    }
    false
}
