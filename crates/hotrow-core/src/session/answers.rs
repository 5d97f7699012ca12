//! The gateway's own replies to the client, and the waits for earlier ones.

use bytes::BytesMut;
use hotrow_wire::backend::Problem;

use super::environment::Stop;
use super::planning::{Performing, Planning};
use super::replies::put_ready;
use super::{Environment, Need, Session};

impl<E: Environment> Session<E> {
    /// Appends a part of the reply to the earliest unit.
    pub(super) fn append(&self, write: impl FnOnce(&mut BytesMut)) {
        self.env.answers(|answers| answers.append(write));
    }

    /// Appends a reply of the gateway after the replies to all earlier units.
    pub(super) fn append_in_turn(&self, _: &Performing, write: impl FnOnce(&mut BytesMut)) {
        self.env.answers(|answers| answers.append_in_turn(write));
    }

    /// Answers ReadyForQuery in its turn.
    pub(super) fn ready_in_turn(&self, performing: &Performing) {
        let status = self.begun_status();
        self.append_in_turn(performing, |out| put_ready(status, out));
    }

    /// Whether all units in lanes are answered.
    pub(super) fn has_no_units(&self) -> bool {
        self.env.answers(|answers| answers.pending()) == 0
    }

    /// Waits until all units in lanes are answered. After that the meaning of all names is known.
    pub(super) fn lanes_done(&mut self, _: &Planning) -> Result<(), Stop<E>> {
        if !self.has_no_units() {
            return Err(Stop::Need(Need::Lanes));
        }
        self.renaming.settle(&self.env, &mut self.names);
        Ok(())
    }

    /// Asks for a connection. Returns the reason if there is none. With a connection the message is forwarded
    /// instead of handled here.
    pub(super) fn connect(&mut self, planning: &Planning) -> Result<Problem, Stop<E>> {
        if let Some(problem) = self.provided.no_connection.clone() {
            return Ok(self.failure().unwrap_or(problem));
        }
        self.lanes_done(planning)?;
        Err(Stop::Need(Need::Connection))
    }

    /// Waits until it is known whether a transaction under way stays open. Called before the gateway gives an
    /// answer of its own that depends on it.
    pub(super) fn wait_for_blocks(&mut self, planning: &Planning) -> Result<(), Stop<E>> {
        if self.in_lanes.has_block {
            self.lanes_done(planning)?;
            self.in_lanes.has_block = false;
        }
        Ok(())
    }

    /// The earliest unfinished unit, which a lane has given back, gets these replies of the gateway.
    pub(super) fn answer_returned(&mut self, replies: &[u8]) {
        self.in_lanes.has_returned = true;
        self.append(|out| out.extend_from_slice(replies));
        self.env.answers(|answers| answers.finish_front());
    }
}
