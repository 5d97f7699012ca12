//! Units that leave the lane: answered, refused, or back to their sessions.

use super::{Action, Batch, Failure, Lane, Refusal, Unit};
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

    /// Units that have failed by themselves leave a committed batch. If several have hit the lock of one outsider, the first one
    /// waits for it, and the others wait for that one.
    pub(super) fn part_with_leaving(&mut self, batch: &mut Batch<P>, actions: &mut Vec<Action<P>>) {
        if batch.leaves.is_empty() {
            return;
        }
        debug_assert!(batch.waits.is_empty(), "indexes of waiting units would be wrong");
        let mut leaves = std::mem::take(&mut batch.leaves).into_iter().peekable();
        let (mut left, mut others) = (Vec::new(), Vec::new());
        for (place, unit) in std::mem::take(&mut batch.units).into_iter().enumerate() {
            match leaves.next_if(|(next, _)| *next == place) {
                Some((_, failure)) => left.push((unit, failure)),
                None => others.push(unit),
            }
        }
        batch.units = others;
        let later = self.queue.take(|unit| left.iter().any(|(one, _)| one.session == unit.session));
        for (mut unit, failure) in left {
            unit.blocked = matches!(failure, Failure::Blocked | Failure::TableBlocked);
            if unit.cancelled {
                actions.push(Action::Refuse(vec![unit], Refusal::Cancelled));
            } else if unit.blocked && self.blocked.key_of(&unit).is_some() {
                self.place(unit.rerun(), actions);
            } else {
                let at_fault = unit.key_at_fault();
                let key = if unit.blocked { self.block(at_fault, failure, actions) } else { None };
                self.set_aside(unit, key, actions);
            }
        }
        later.into_iter().for_each(|unit| self.place(unit, actions));
    }

    /// The batch is committed, which was found out after its connection was lost.
    pub(super) fn answer(&mut self, mut batch: Batch<P>, actions: &mut Vec<Action<P>>) {
        self.part_with_leaving(&mut batch, actions);
        self.keep_waiting_sessions(&batch, actions);
        actions.push(Action::Answer(batch));
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
