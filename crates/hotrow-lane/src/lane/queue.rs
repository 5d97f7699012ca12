//! The waiting units of a lane, and the cut of a batch from them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::{Batch, Claim, Merge, Reads, Unit};
use crate::key::Key;
use crate::limits;

/// Units in order of arrival, except for units that were put back at the front.
#[derive(Debug)]
pub(super) struct Queue<P> {
    units: VecDeque<Unit<P>>,
    bytes: usize,
    cut: Cut,
}

impl<P> Default for Queue<P> {
    fn default() -> Self {
        Queue { units: VecDeque::new(), bytes: 0, cut: Cut::default() }
    }
}

/// State of a cut while it scans the queue. It is kept to reuse its memory.
#[derive(Debug, Default)]
struct Cut {
    /// Number of units of each key in the batch.
    keys: HashMap<Key, u16, BuildHasherDefault<Mixed>>,
    /// The greatest key of each session in the batch. A session that was skipped has none.
    sessions: HashMap<u64, Option<Key>, BuildHasherDefault<Mixed>>,
    /// Sessions that cannot have more units in this batch.
    closed: HashSet<u64, BuildHasherDefault<Mixed>>,
    /// The group of calls that the batch has for each key space, and the number of these calls.
    spaces: HashMap<u32, (u64, u16), BuildHasherDefault<Mixed>>,
}

impl<P> Queue<P> {
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, unit: Unit<P>) {
        self.bytes += unit.claimed.bytes;
        self.units.push_back(unit);
    }

    pub(super) fn prepend(&mut self, units: Vec<Unit<P>>) {
        for unit in units.into_iter().rev() {
            self.bytes += unit.claimed.bytes;
            self.units.push_front(unit);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Unit<P>> {
        self.units.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Unit<P>> {
        self.units.iter_mut()
    }

    /// The bytes are those of the units.
    pub(super) fn check(&self) {
        debug_assert_eq!(self.bytes, self.units.iter().map(|unit| unit.claimed.bytes).sum());
    }

    pub(super) fn has_session(&self, session: u64) -> bool {
        self.units.iter().any(|unit| unit.session == session)
    }

    pub(super) fn take_first_of(&mut self, session: u64) -> Option<Unit<P>> {
        let index = self.units.iter().position(|unit| unit.session == session)?;
        let unit = self.units.remove(index)?;
        self.bytes -= unit.claimed.bytes;
        Some(unit)
    }

    pub(super) fn take_all_of(&mut self, session: u64) -> Vec<Unit<P>> {
        self.take(|unit| unit.session == session)
    }

    pub(super) fn take(&mut self, mut wanted: impl FnMut(&Unit<P>) -> bool) -> Vec<Unit<P>> {
        if !self.units.iter().any(&mut wanted) {
            return Vec::new();
        }
        let (taken, kept): (Vec<_>, Vec<_>) = self.units.drain(..).partition(|unit| wanted(unit));
        self.units = kept.into();
        self.bytes -= taken.iter().map(|unit| unit.claimed.bytes).sum::<usize>();
        taken
    }

    /// The next batch: as many units as fit, sorted by key, which makes two gateways take their locks in one
    /// direction. Sorting must not change the order of a session's units. If a unit would be moved before
    /// another unit of its session, or reads without a lock, it stays for the next batch, together with later units of its session. A
    /// session with units under way waits for them, because they may have to run again. If fewer than `least`
    /// units fit, the result is `None` and the queue is unchanged.
    pub(super) fn cut(&mut self, under_way: &VecDeque<Batch<P>>, least: usize) -> Option<Vec<Unit<P>>> {
        let chosen = self.choose(under_way);
        if chosen.len() < least {
            return None;
        }
        let mut batch = Vec::with_capacity(chosen.len());
        if chosen.last() == Some(&(chosen.len() - 1)) {
            batch.extend(self.units.drain(..chosen.len()));
        } else {
            let mut chosen = chosen.into_iter().peekable();
            let mut kept = VecDeque::with_capacity(self.units.len());
            for (index, unit) in self.units.drain(..).enumerate() {
                if chosen.next_if_eq(&index).is_some() {
                    batch.push(unit);
                } else {
                    kept.push_back(unit);
                }
            }
            self.units = kept;
        }
        self.bytes -= batch.iter().map(|unit| unit.claimed.bytes).sum::<usize>();
        debug_assert!(sessions_are_sorted(&batch));
        batch.sort_by_key(|unit| unit.claimed.key); // stable: units of one key, and units without a key, keep their order
        Some(batch)
    }

    fn choose(&mut self, under_way: &VecDeque<Batch<P>>) -> Vec<usize> {
        let cut = &mut self.cut;
        cut.keys.clear();
        cut.sessions.clear();
        cut.closed.clear();
        cut.spaces.clear();
        cut.closed.extend(under_way.iter().flat_map(|batch| batch.units.iter().map(|unit| unit.session)));
        let mut chosen = Vec::with_capacity(self.units.len().min(limits::BATCH_UNITS_MAX));
        let (mut bytes, mut statements) = (0, 0);
        for (index, unit) in self.units.iter().enumerate().take(4 * limits::BATCH_UNITS_MAX) {
            let size = usize::from(unit.claimed.statements).max(unit.claimed.claims.len());
            let is_full = chosen.len() == limits::BATCH_UNITS_MAX
                || statements + size > limits::BATCH_STATEMENTS_MAX
                || bytes + unit.claimed.bytes > limits::BATCH_BYTES_MAX;
            let is_alone = unit.unmeasured || unit.claimed.reads == Reads::Rows;
            if is_full || is_alone && !chosen.is_empty() {
                break;
            }
            if cut.admits(unit) {
                bytes += unit.claimed.bytes;
                statements += size;
                chosen.push(index);
                if is_alone {
                    break;
                }
                if unit.claimed.may_wait || unit.claimed.may_leave {
                    cut.closed.insert(unit.session); // later units may have to wait for it
                }
            } else {
                cut.closed.insert(unit.session);
            }
        }
        chosen
    }
}

/// Whether the units of each session have ascending keys, so that sorting by keys keeps their order.
fn sessions_are_sorted<P>(units: &[Unit<P>]) -> bool {
    let mut keys: Vec<_> = units.iter().map(|unit| (unit.session, unit.claimed.key)).collect();
    keys.sort_by_key(|(session, _)| *session);
    keys.is_sorted()
}

impl Cut {
    fn admits<P>(&mut self, unit: &Unit<P>) -> bool {
        if !self.closed.is_empty() && self.closed.contains(&unit.session) {
            return false;
        }
        let in_order = match self.sessions.entry(unit.session) {
            Entry::Vacant(entry) => {
                entry.insert(unit.claimed.key);
                true
            }
            Entry::Occupied(mut entry) => {
                *entry.get() <= unit.claimed.key && unit.claimed.reads == Reads::Nothing && {
                    entry.insert(unit.claimed.key);
                    true
                }
            }
        };
        let Some(key) = unit.claimed.key else { return in_order };
        if !in_order {
            return false;
        }
        if !unit.claimed.claims.is_empty() {
            return unit.claimed.claims.iter().all(|claim| self.has_room(claim, &unit.claimed.claims))
                && unit.claimed.claims.iter().all(|claim| {
                    *self.keys.entry(claim.key).or_insert(0) += 1;
                    !claim.in_key_space || self.joins(claim.key, Merge::NEVER)
                });
        }
        if let Some(merge) = unit.merge() {
            if !self.joins(key, merge) {
                return false;
            }
            if merge != Merge::NEVER {
                return true; // one call changes each row once, regardless of how many units it stands for
            }
        }
        self.fits_page(key, unit.claimed.rows_per_commit)
    }

    /// Whether the batch can contain a call, in addition to the calls of its key space that it has.
    fn joins(&mut self, key: Key, merge: Merge) -> bool {
        let (group, calls) = self.spaces.entry(key.table).or_insert((merge.group, 0));
        if *group != merge.group || *calls >= merge.most {
            return false;
        }
        *calls += 1;
        true
    }

    /// Whether the batch can contain the row versions that a unit creates. Alone in a batch, a unit can
    /// create any number.
    fn has_room(&self, claim: &Claim, claims: &[Claim]) -> bool {
        let others = self.keys.get(&claim.key).map_or(0, |count| usize::from(*count));
        let own = claims.iter().filter(|other| other.key == claim.key).count();
        others == 0 || others + own <= usize::from(claim.rows_per_commit)
    }

    /// Whether the batch can contain one more version of a row.
    fn fits_page(&mut self, key: Key, rows_per_commit: u16) -> bool {
        let count = self.keys.entry(key).or_insert(0);
        *count += 1;
        *count <= rows_per_commit.max(1)
    }
}

/// A hasher for keys, which are hashes already, and for session numbers: one multiplication.
#[derive(Debug, Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}
