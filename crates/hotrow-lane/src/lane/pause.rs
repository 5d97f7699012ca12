//! A paused lane: batches under way are finished, the connection is closed, and new units wait.

use super::{Action, ConnectionState, Lane, Refusal, Unit};

impl<P> Lane<P> {
    /// Whether the lane is paused, nothing is under way or in doubt, and it has no connection.
    pub fn is_at_rest(&self) -> bool {
        self.paused && self.connection == ConnectionState::Down
    }

    /// Whether nothing needs a connection while the lane pauses. A commit in doubt needs one.
    pub(super) fn may_rest(&self) -> bool {
        self.paused && self.under_way.is_empty() && self.again.is_empty()
    }

    pub(super) fn pause(&mut self, actions: &mut Vec<Action<P>>) {
        self.paused = true;
        self.hold.cancel();
        self.rest(actions);
    }

    pub(super) fn resume(&mut self, actions: &mut Vec<Action<P>>) {
        self.paused = false;
        self.send(actions);
    }

    /// Closes the connection when nothing is under way on it.
    pub(super) fn rest(&mut self, actions: &mut Vec<Action<P>>) {
        if self.connection == ConnectionState::Up && self.may_rest() {
            self.connection = ConnectionState::Down;
            actions.push(Action::Disconnect);
        }
    }

    /// Refuses units that have waited too long in a paused lane. Parked units wait for a lock and stay.
    pub fn expire(&mut self, is_due: impl FnMut(&Unit<P>) -> bool, actions: &mut Vec<Action<P>>) {
        let due = if self.paused { self.queue.take(is_due) } else { Vec::new() };
        if !due.is_empty() {
            actions.push(Action::Refuse(due, Refusal::Paused));
        }
    }
}
