//! Where a session stands: facts on which its handlers decide. Nothing here changes anything.

use hotrow_wire::backend::{Problem, Status};

use super::begun::{Begun, Describes};
use super::holding::Holding;
use super::{Environment, Session};
use crate::classify::Effect;
use crate::pack_mode::PackMode;
use crate::unit::aborted;

impl<E: Environment> Session<E> {
    /// The status of the session's transaction while it holds no connection.
    pub fn begun_status(&self) -> Status {
        match self.phase.begun() {
            None => Status::Idle,
            Some(Begun { has_failed: false, .. }) => Status::Transaction,
            Some(Begun { has_failed: true, .. }) => Status::Failed,
        }
    }

    /// Whether the session is in a transaction that has no connection.
    pub fn has_begun(&self) -> bool {
        self.phase.begun().is_some()
    }

    /// Whether the transaction works alone on its row.
    pub(super) fn works_alone(&self) -> bool {
        self.phase.begun().is_some_and(|begun| begun.keeps_snapshot)
    }

    /// The error for any statement but the transaction's end after a refusal, if the session gets no connection.
    pub(super) fn failure(&self) -> Option<Problem> {
        (self.begun_status() == Status::Failed).then(aborted)
    }

    /// Whether the next message waits for the answer to such a unit.
    pub(super) fn waits_for_description(&self) -> bool {
        self.phase.begun().is_some_and(|begun| begun.describes == Describes::Waits)
    }

    /// No reply is missing on the connection, and no message is incomplete.
    pub fn is_settled(&self) -> bool {
        let is_settled =
            |holding: &Holding<E>| holding.expected.is_settled() && holding.message_bytes_left == 0;
        self.phase.held().is_none_or(is_settled)
    }

    /// Whether the connection is in the middle of a message, after which the client can be told nothing.
    pub fn is_in_message(&self) -> bool {
        self.phase.held().is_some_and(|holding| holding.message_bytes_left > 0)
    }

    /// Whether the session can end without loss: it is in no transaction.
    pub fn is_idle(&self) -> bool {
        self.is_settled()
            && self.phase.begun().is_none()
            && self.phase.held().is_none_or(|holding| holding.status == Status::Idle)
    }

    /// What happens with the session's units that can be packed.
    pub(super) fn pack_mode(&self) -> PackMode {
        self.switches.pack().min(self.env.pack_mode())
    }

    /// Whether units are planned for lanes: to run there, or to be counted.
    pub(super) fn plans_units(&self) -> bool {
        self.pack_mode() >= PackMode::Shadow && self.phase.begun().is_none() && self.is_as_pool()
    }

    /// Whether the session's statements are packed outside of transactions.
    pub(super) fn packs(&self) -> bool {
        self.pack_mode() >= PackMode::On && self.is_as_pool()
    }

    /// Whether the gateway answers a BEGIN that a standby does not refuse, or refuses.
    pub(super) fn answers_begin(&self, on_standbys: bool) -> bool {
        self.packs() && (on_standbys || self.env.is_primary())
    }

    /// Whether the session has the state of its pool's clients, as its lanes have it.
    pub(super) fn is_as_pool(&self) -> bool {
        !self.left().pins()
    }

    /// Whether the session may send anything to a lane now.
    pub(super) fn sends_to_lanes(&self) -> bool {
        self.phase.begun().is_none() && self.packs()
    }

    /// What the console shows of the session: whether it is at work, the status of its transaction, whether it has not switched
    /// packing off, and the state that is left on its connection.
    pub fn held_state(&self) -> (bool, Status, bool, Effect) {
        let held = self.phase.held().filter(|_| self.phase.begun().is_none());
        let status = held.map_or(self.begun_status(), |holding| holding.status);
        (!self.is_settled(), status, self.switches.pack() != PackMode::Off, self.left())
    }
}
