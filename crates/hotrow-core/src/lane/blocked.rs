//! Keys whose row an outsider has locked: one unit waits for the lock on a connection of its own, the other units
//! of that key are parked here until it has got through, and the lane goes on with everything else.

use std::collections::{HashMap, VecDeque};

use super::Unit;
use crate::key::Key;
use crate::limits;

/// The parked units by key. A whole table has the key with this hash.
const WHOLE_TABLE: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Blocked<P> {
    keys: HashMap<Key, VecDeque<Unit<P>>>,
    sessions: HashMap<u64, usize>,
    units: usize,
}

impl<P> Default for Blocked<P> {
    fn default() -> Self {
        Blocked { keys: HashMap::new(), sessions: HashMap::new(), units: 0 }
    }
}

impl<P> Blocked<P> {
    pub(super) fn len(&self) -> usize {
        self.units
    }

    pub(super) fn blocks(&self, unit: &Unit<P>) -> bool {
        !self.keys.is_empty() && self.key_of(unit).is_some()
    }

    pub(super) fn holds_session(&self, session: u64) -> bool {
        !self.sessions.is_empty() && self.sessions.contains_key(&session)
    }

    /// Parks a unit that [`Blocked::blocks`].
    pub(super) fn park(&mut self, unit: Unit<P>) {
        let Some(key) = self.key_of(&unit) else { return };
        *self.sessions.entry(unit.session).or_insert(0) += 1;
        self.units += 1;
        self.keys.entry(key).or_default().push_back(unit);
    }

    /// A unit of this key is blocked. Where many rows of one table are, somebody holds the table: then all of it is.
    /// Returns the key to release later.
    pub(super) fn block(&mut self, culprit: Option<Key>) -> Key {
        let table = culprit.map_or(0, |key| key.table);
        let same_table = self.keys.keys().filter(|key| key.table == table).count();
        let key = match culprit {
            Some(key) if same_table < limits::BLOCKED_KEYS_MAX => key,
            _ => Key { table, hash: WHOLE_TABLE },
        };
        self.keys.entry(key).or_default();
        key
    }

    /// The units that waited for this key, in order.
    pub(super) fn release(&mut self, key: Key) -> Vec<Unit<P>> {
        let parked = Vec::from(self.keys.remove(&key).unwrap_or_default());
        for unit in &parked {
            self.forget_session(unit.session);
        }
        self.units -= parked.len();
        parked
    }

    pub(super) fn take_first_of(&mut self, session: u64) -> Option<Unit<P>> {
        if !self.holds_session(session) {
            return None;
        }
        let (units, index) = self.keys.values_mut().find_map(|units| {
            let index = units.iter().position(|unit| unit.session == session)?;
            Some((units, index))
        })?;
        let unit = units.remove(index);
        self.units -= 1;
        self.forget_session(session);
        unit
    }

    /// All that is parked; the keys stay blocked.
    pub(super) fn take_all(&mut self) -> Vec<Unit<P>> {
        self.sessions.clear();
        self.units = 0;
        self.keys.values_mut().flat_map(std::mem::take).collect()
    }

    fn key_of(&self, unit: &Unit<P>) -> Option<Key> {
        let whole = Key { table: unit.key.map_or(0, |key| key.table), hash: WHOLE_TABLE };
        unit.key.filter(|key| self.keys.contains_key(key)).or(self.keys.contains_key(&whole).then_some(whole))
    }

    fn forget_session(&mut self, session: u64) {
        if let Some(count) = self.sessions.get_mut(&session) {
            *count -= 1;
            if *count == 0 {
                self.sessions.remove(&session);
            }
        }
    }
}
