//! Keys whose row an outsider has locked. One unit waits for the lock on a connection of its session. The
//! other units of that key are parked here until that unit is done. The lane continues with all other units.

use std::collections::{HashMap, VecDeque};

use super::Unit;
use crate::key::Key;
use crate::limits;

/// A key with this hash stands for a whole table.
const WHOLE_TABLE: u64 = u64::MAX;

impl Key {
    /// The key that stands for its whole table.
    pub(super) fn of_table(self) -> Key {
        Key { hash: WHOLE_TABLE, ..self }
    }
}

/// The parked units by key.
#[derive(Debug)]
pub(super) struct Blocked<P> {
    keys: HashMap<Key, VecDeque<Unit<P>>>,
    /// The key under which a session's units are parked, and their number. All of them are under one key.
    sessions: HashMap<u64, (Key, usize)>,
    units: usize,
    bytes: usize,
}

impl<P> Default for Blocked<P> {
    fn default() -> Self {
        Blocked { keys: HashMap::new(), sessions: HashMap::new(), units: 0, bytes: 0 }
    }
}

impl<P> Blocked<P> {
    pub(super) fn len(&self) -> usize {
        self.units
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The parked units, with the key under which each is parked.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &Unit<P>)> {
        self.keys.iter().flat_map(|(key, units)| units.iter().map(|unit| (*key, unit)))
    }

    /// The blocked key that holds up this unit, if there is one.
    pub(super) fn key_of(&self, unit: &Unit<P>) -> Option<Key> {
        if self.keys.is_empty() {
            return None;
        }
        let is_blocked = |key: &Key| self.keys.contains_key(key);
        let whole = |table| Some(Key { table, hash: WHOLE_TABLE }).filter(is_blocked);
        if unit.claimed.key.is_none() {
            return whole(0);
        }
        unit.waits_for().find_map(|(table, key)| key.filter(is_blocked).or_else(|| whole(table)))
    }

    /// The key under which units of this session are parked.
    pub(super) fn key_of_session(&self, session: u64) -> Option<Key> {
        if self.sessions.is_empty() { None } else { self.sessions.get(&session).map(|(key, _)| *key) }
    }

    /// Parks a unit under the key that holds it up.
    pub(super) fn park(&mut self, key: Key, unit: Unit<P>) {
        debug_assert!(
            self.keys.contains_key(&key) && self.key_of_session(unit.session).is_none_or(|same| same == key)
        );
        self.sessions.entry(unit.session).or_insert((key, 0)).1 += 1;
        self.units += 1;
        self.bytes += unit.claimed.bytes;
        self.keys.entry(key).or_default().push_back(unit);
    }

    /// Marks a key as blocked. If many rows of one table are blocked, an outsider has locked the table, and
    /// the whole table is marked. Returns the key to release later.
    pub(super) fn block(&mut self, culprit: Option<Key>) -> Key {
        let table = culprit.map_or(0, |key| key.table);
        let same_table = self.keys.keys().filter(|key| key.table == table).count();
        let key = match culprit {
            Some(key) if self.keys.contains_key(&key) || same_table < limits::BLOCKED_KEYS_MAX => key,
            _ => Key { table, hash: WHOLE_TABLE },
        };
        self.keys.entry(key).or_default();
        key
    }

    /// The units that were parked under this key, in order.
    pub(super) fn release(&mut self, key: Key) -> Vec<Unit<P>> {
        let parked = Vec::from(self.keys.remove(&key).unwrap_or_default());
        parked.iter().for_each(|unit| self.forget(unit));
        parked
    }

    pub(super) fn take_first_of(&mut self, session: u64) -> Option<Unit<P>> {
        let key = self.key_of_session(session)?;
        let units = self.keys.get_mut(&key)?;
        let index = units.iter().position(|unit| unit.session == session)?;
        let unit = units.remove(index)?;
        self.forget(&unit);
        Some(unit)
    }

    /// Removes all parked units. The keys stay blocked.
    pub(super) fn take_all(&mut self) -> Vec<Unit<P>> {
        self.sessions.clear();
        self.units = 0;
        self.bytes = 0;
        self.keys.values_mut().flat_map(std::mem::take).collect()
    }

    /// The counters are those of the units.
    pub(super) fn check(&self) {
        debug_assert_eq!(self.units, self.iter().count());
        debug_assert_eq!(self.bytes, self.iter().map(|(_, unit)| unit.claimed.bytes).sum());
        debug_assert_eq!(self.units, self.sessions.values().map(|(_, count)| count).sum());
    }

    fn forget(&mut self, unit: &Unit<P>) {
        self.units -= 1;
        self.bytes -= unit.claimed.bytes;
        if let Some((_, count)) = self.sessions.get_mut(&unit.session) {
            *count -= 1;
            if *count == 0 {
                self.sessions.remove(&unit.session);
            }
        }
    }
}
