//! Units that leave the lane: answered, refused, or back to their sessions.

use super::{Action, Batch, Lane, Refusal, Unit};
use crate::key::Key;

impl<P> Lane<P> {
    pub(super) fn give_back(&mut self, unit: Unit<P>, actions: &mut Vec<Action<P>>) {
        self.returned.insert(unit.session);
        actions.push(Action::Return(unit));
    }

    /// Units that sessions sent after a waiting unit of a committed batch go back to their sessions.
    pub(super) fn keep_waiting_sessions(&mut self, batch: &Batch<P>, actions: &mut Vec<Action<P>>) {
        for place in &batch.waits {
            let session = batch.units[*place].session;
            self.returned.insert(session);
            self.return_followers(session, actions);
        }
    }

    /// Returns a unit to its session to run it alone. Later units of the session go back too and wait for it.
    pub(super) fn set_aside(&mut self, unit: Unit<P>, key: Option<Key>, actions: &mut Vec<Action<P>>) {
        let session = unit.session;
        self.returned.insert(session);
        actions.push(Action::Alone(unit, key));
        self.return_followers(session, actions);
    }

    pub(super) fn return_followers(&mut self, session: u64, actions: &mut Vec<Action<P>>) {
        actions.extend(self.queue.take_all_of(session).into_iter().map(Action::Return));
    }
    /// Refuses the cancelled ones of these units, which left nothing behind. Returns the others.
    pub(super) fn refuse_cancelled(&self, units: Vec<Unit<P>>, actions: &mut Vec<Action<P>>) -> Vec<Unit<P>> {
        if !units.iter().any(|unit| unit.cancelled) {
            return units;
        }
        let (cancelled, others) = units.into_iter().partition(|unit| unit.cancelled);
        actions.push(Action::Refuse(cancelled, Refusal::Cancelled));
        others
    }
}
