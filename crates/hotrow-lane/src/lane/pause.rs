//! A paused lane: batches under way are finished, the connection is closed, and new units wait.

use super::{Action, ConnectionState, Lane, Refusal, Unit};

impl<P> Lane<P> {
    /// Whether the lane is paused, nothing is under way or in doubt, and it has no connection.
    pub fn is_at_rest(&self) -> bool {
        self.paused && self.connection == ConnectionState::Down
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

    /// Refuses units that have waited too long in a paused lane. Parked units wait for a lock and stay.
    pub fn expire(&mut self, is_due: impl FnMut(&Unit<P>) -> bool, actions: &mut Vec<Action<P>>) {
        let due = if self.paused { self.queue.take(is_due) } else { Vec::new() };
        if !due.is_empty() {
            actions.push(Action::Refuse(due, Refusal::Paused));
        }
    }
}
