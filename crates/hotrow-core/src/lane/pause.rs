//! A lane at rest: what is under way is finished, the connection is closed, and what comes in the meantime waits.

use super::{Action, ConnectionState, Lane, Refusal, Unit};

impl<P> Lane<P> {
    /// Whether it was told to pause, nothing is under way or in doubt any more, and it has no connection.
    pub fn is_at_rest(&self) -> bool {
        self.paused && self.connection == ConnectionState::Down
    }

    /// Whether anything needs a connection although the lane pauses: a commit in doubt does.
    pub(super) fn may_rest(&self) -> bool {
        self.paused && self.under_way.is_empty() && self.again.is_empty()
    }

    pub(super) fn pause(&mut self, actions: &mut Vec<Action<P>>) {
        self.paused = true;
        self.rest(actions);
    }

    pub(super) fn resume(&mut self, actions: &mut Vec<Action<P>>) {
        self.paused = false;
        self.send(actions);
    }

    /// Closes the connection once nothing is under way on it.
    pub(super) fn rest(&mut self, actions: &mut Vec<Action<P>>) {
        if self.connection == ConnectionState::Up && self.may_rest() {
            self.connection = ConnectionState::Down;
            actions.push(Action::Disconnect);
        }
    }

    /// Refuses what waits in a lane that pauses and has waited for too long. Parked units wait for something else.
    pub fn expire(&mut self, is_due: impl FnMut(&Unit<P>) -> bool, actions: &mut Vec<Action<P>>) {
        let due = if self.paused { self.queue.take(is_due) } else { Vec::new() };
        if !due.is_empty() {
            actions.push(Action::Refuse(due, Refusal::Paused));
        }
    }
}
