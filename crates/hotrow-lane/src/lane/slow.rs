//! Slow batches, and units that clients cancel while the server runs them.

use std::collections::{HashMap, HashSet};

use super::{Action, Lane, Refusal, Unit, Xid};
use crate::key::Key;

impl<P> Lane<P> {
    /// The earliest batch takes long. Queued units that another lane can run go back to their sessions, which
    /// submit them again. Units that would return to this lane stay: units of a session or a row that is
    /// under way. Units of a session with several queued units stay too, because the session would have to
    /// submit them one at a time. While the server commits, no unit moves, because commits of other lanes
    /// wait for the same disk.
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

    /// The client of this session cancels its earliest unit. A unit under way shares a transaction with other
    /// units. If that transaction is rolled back, the unit is refused. If it is committed, the unit is
    /// answered.
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
}
