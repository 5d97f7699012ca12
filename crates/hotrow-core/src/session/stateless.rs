//! What pools of connections send before they give a connection to their application: an empty statement, or commands that clear
//! the state of the session. A session that has no state and holds no connection needs none for them. The server answers each
//! such text once in a pool, and the gateway repeats its reply from then on.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_wire::backend::{self, Status, tag};
use hotrow_wire::{Frame, split};

use super::environment::Stop;
use super::ran::Ran;
use super::{Environment, Sequences, Session, Statement, StatementOf};
use crate::classify::{Effect, Step};

impl<E: Environment> Session<E> {
    /// The results of a statement that has no effect in this session, if the server is not needed for them. `is_extended` is
    /// whether each statement is executed by a message of its own.
    pub(super) fn answer_without_state(
        &mut self,
        statement: &E::Statement,
        is_extended: bool,
    ) -> Result<Option<Bytes>, Stop<E>> {
        if !self.switches.pack() || self.begun_status() == Status::Failed {
            return Ok(None);
        }
        if statement.is_empty() && statement.text.is_ascii() {
            if is_extended && self.begun.is_some() {
                return Ok(None); // its portal can be executed again
            }
            self.catch_up()?;
            self.lanes_done()?;
            return Ok(Some(Bytes::from_static(backend::EMPTY_QUERY)));
        }
        let (Some(clears), Some(answer)) = (statement.clears_only(), statement.answer()) else {
            return Ok(None);
        };
        if self.has_state(clears) || is_extended && !is_command(answer) {
            return Ok(None);
        }
        self.catch_up()?;
        self.lanes_done()?;
        if clears.prepared {
            self.expected.names.clear();
        }
        if clears.touches_sequence {
            self.sequences = Sequences::Untouched;
        }
        if statement.steps().contains(&Step::ResetAll) {
            self.reset_switches();
        }
        Ok(Some(answer.clone()))
    }

    /// Whether the session may have some of this state, which only the server can clear.
    fn has_state(&self, clears: Effect) -> bool {
        let has_name = self.application_name != self.first_name;
        self.holding.is_some()
            || self.begun.is_some()
            || clears.settings && self.has_settings()
            || clears.name && has_name
            || clears.listen && !self.shared_channels().is_empty()
    }

    /// A statement is sent. If it only clears state, and is the first one on its connection, the server's reply is recorded.
    pub(super) fn learn_from(&mut self, statement: &StatementOf<E>) {
        let is_known = statement.clears_only().is_none() || statement.answer().is_some();
        // Replies to earlier messages may be on their way: those of a whole unit, or of the Parse of this statement.
        let is_alone = self.expected.owes_nothing();
        let is_in_first_unit = !self.expected.has_unit_under_way();
        let holding = self.held();
        let is_first =
            is_in_first_unit && matches!(holding.ran, Ran::Nothing) && holding.status == Status::Idle;
        holding.learns = (is_first && !is_known).then(|| LearnedReply {
            statement: statement.clone(),
            is_alone,
            reply: BytesMut::new(),
        });
    }
}

/// A statement, and the server's reply to it so far.
pub(super) struct LearnedReply<S> {
    statement: Arc<S>,
    /// No other message was sent before in its unit.
    is_alone: bool,
    reply: BytesMut,
}

/// Records a message of the reply to a statement, if it is learned. A reply that says more than its success is not repeated.
pub(super) fn learn_reply<S: Statement>(learns: &mut Option<LearnedReply<S>>, frame: Frame<'_>) {
    let Some(LearnedReply { reply, .. }) = learns else { return };
    match frame.tag {
        tag::ROW_DESCRIPTION | tag::DATA_ROW | tag::COMMAND_COMPLETE => reply.extend_from_slice(frame.bytes),
        tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::PARAMETER_DESCRIPTION | tag::NO_DATA => {}
        tag::READY => {
            let learned = learns.take().filter(|learned| learned.is_alone || is_command(&learned.reply));
            if let Some(LearnedReply { statement, reply, .. }) = learned.filter(|_| frame.body() == b"I") {
                statement.learn_answer(reply.freeze());
            }
        }
        _ => *learns = None,
    }
}

/// Whether a reply is that to one command.
fn is_command(reply: &[u8]) -> bool {
    let frame = split(reply, |_| usize::MAX).ok().flatten();
    frame.is_some_and(|frame| frame.tag == tag::COMMAND_COMPLETE && frame.bytes.len() == reply.len())
}
