//! Batches that take long, and units whose clients want them cancelled while they are with the server.

use std::collections::{HashMap, HashSet};

use super::{Action, Lane, Refusal, Unit, Xid};
use crate::key::Key;

impl<P> Lane<P> {
    /// The earliest batch takes long: queued units that another lane can run go back to their sessions, which hand them
    /// over again. What would come back to this lane stays: units of a session or of a row that is under way. So does a
    /// session with several units: they would have to be handed over one at a time. While the server commits, nothing
    /// moves: other lanes' commits wait for the same disk.
    pub(super) fn make_way(&mut self, actions: &mut Vec<Action<P>>) {
        if self.queue.is_empty() || self.under_way.front().is_none_or(|batch| batch.xid != Xid::Missing) {
            return;
        }
        let under_way = || self.under_way.iter().flat_map(|batch| &batch.units);
        let keys: HashSet<Key> = under_way().flat_map(Unit::keys).collect();
        let mut sessions: HashMap<u64, usize> = HashMap::new();
        for unit in under_way().chain(self.queue.iter()) {
            *sessions.entry(unit.session).or_default() += 1;
        }
        let moves =
            |unit: &Unit<P>| sessions[&unit.session] == 1 && !unit.keys().any(|key| keys.contains(&key));
        for unit in self.queue.take(moves) {
            self.give_back(unit, actions);
        }
    }

    /// The client of this session wants its earliest unit cancelled. A unit under way is in one transaction with units
    /// of others: it is refused if that is rolled back, and answered if that is committed.
    pub(super) fn cancel(&mut self, session: u64, actions: &mut Vec<Action<P>>) {
        let under_way = self.under_way.iter_mut().flat_map(|batch| &mut batch.units);
        if let Some(unit) = self.again.iter_mut().chain(under_way).find(|unit| unit.session == session) {
            unit.cancelled = true;
            return;
        }
        if let Some(unit) = self.queue.take_first_of(session).or_else(|| self.blocked.take_first_of(session))
        {
            actions.push(Action::Refuse(vec![unit], Refusal::Cancelled));
        }
    }

    /// Refuses those of these units, which left nothing behind, that were cancelled. Returns the others.
    pub(super) fn refuse_cancelled(&self, units: Vec<Unit<P>>, actions: &mut Vec<Action<P>>) -> Vec<Unit<P>> {
        if !units.iter().any(|unit| unit.cancelled) {
            return units;
        }
        let (cancelled, others) = units.into_iter().partition(|unit| unit.cancelled);
        actions.push(Action::Refuse(cancelled, Refusal::Cancelled));
        others
    }
}
