//! Committed batches, and the units that have failed in them without the others.

use super::{Action, Batch, Failure, Lane, Leaving, Refusal};
use crate::key::Key;

impl<P> Lane<P> {
    /// The unit with this index in the earliest batch has failed, and the others go on.
    pub(super) fn leaves(&mut self, place: usize, failure: Failure) {
        if let Some(batch) = self.under_way.front_mut() {
            batch.leaves.push((place, failure));
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
            unit.leaving = failure.into();
            let is_blocked = unit.leaving == Leaving::Blocked;
            if unit.cancelled {
                actions.push(Action::Refuse(vec![unit], Refusal::Cancelled));
            } else if is_blocked && self.blocked.key_of(&unit).is_some() {
                self.place(unit.rerun(), actions);
            } else {
                let at_fault = unit.key_at_fault();
                let key = if is_blocked { self.block(at_fault, failure, actions) } else { None };
                self.set_aside(unit, key, actions);
            }
        }
        later.into_iter().for_each(|unit| self.place(unit, actions));
    }

    /// The units that are parked under this key run next.
    pub(super) fn unblocked(&mut self, key: Key, actions: &mut Vec<Action<P>>) {
        let parked = self.blocked.release(key);
        self.queue.prepend(parked);
        self.send(actions);
    }

    /// The parked units of this session leave the lane. The first one runs alone, and meets the lock itself. The key stays blocked.
    pub(super) fn leave_parking(&mut self, session: u64, actions: &mut Vec<Action<P>>) {
        let Some(mut first) = self.blocked.take_first_of(session) else { return };
        first.leaving = Leaving::Blocked;
        self.set_aside(first, None, actions);
        while let Some(later) = self.blocked.take_first_of(session) {
            actions.push(Action::Return(later));
        }
    }

    /// The batch is committed, which was found out after its connection was lost.
    pub(super) fn answer(&mut self, mut batch: Batch<P>, actions: &mut Vec<Action<P>>) {
        self.part_with_leaving(&mut batch, actions);
        self.keep_waiting_sessions(&batch, actions);
        actions.push(Action::Answer(batch));
    }

    /// A unit is blocked on this key, which can stand for several rows of which the unit takes any. From now on, units of the key are
    /// parked, and later units of their sessions go back to the sessions. Returns the key to release later.
    pub(super) fn block(
        &mut self,
        at_fault: Option<(Key, bool)>,
        failure: Failure,
        actions: &mut Vec<Action<P>>,
    ) -> Option<Key> {
        let culprit = match at_fault {
            Some((key, true)) if failure == Failure::TableBlocked => Some(key.of_table()),
            Some((_, true)) => return None, // the others take other rows
            at_fault => at_fault.map(|(key, _)| key),
        };
        let key = self.blocked.block(culprit);
        for unit in self.queue.take(|_| true) {
            self.place(unit, actions);
        }
        Some(key)
    }
}
