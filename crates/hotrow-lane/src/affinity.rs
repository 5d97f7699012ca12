//! Chooses the lane of a unit. Units of one key that are under way share a lane, unless a unit has brought keys of two
//! lanes together: then later units of these keys follow it. A unit without a fixed lane takes the first lane that is not
//! full, which keeps batches large on few lanes. A lane whose batch takes long gets no such units.

use std::collections::HashMap;

use crate::key::Key;
use crate::limits;

/// A lane of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneId {
    /// The node of a distributed database to which it connects. None for the server of the pool.
    pub node: Option<i32>,
    /// The replica to which it connects.
    pub replica: Option<usize>,
    /// Its index among the lanes of its kind there.
    pub index: usize,
}

/// The distribution of units under way over the lanes of one kind.
#[derive(Debug)]
pub struct Affinity {
    loads: Vec<usize>,
    /// Lanes whose batch takes long.
    slow: Vec<bool>,
    keys: HashMap<Key, (usize, usize)>,
}

impl Affinity {
    /// A set of lanes without units.
    pub fn new(lanes: usize) -> Self {
        let lanes = lanes.max(1);
        Affinity { loads: vec![0; lanes], slow: vec![false; lanes], keys: HashMap::new() }
    }

    /// The lane for a unit of these keys. If the session has units under way in lane `only`, the unit has to
    /// use that lane, or it could overtake them. Returns `None` if it would need another lane.
    ///
    /// Units of its keys can be under way in different lanes. It then takes the first of these lanes. Always the first, so that
    /// rows which are used together soon have one lane. The other lane's units of a key may hold up this lane once, for as
    /// long as they run.
    pub fn assign(&mut self, keys: impl Iterator<Item = Key> + Clone, only: Option<usize>) -> Option<usize> {
        self.assign_by(keys, only, limits::LANE_FULL_UNITS)
    }

    /// The same with another number of units above which units without a fixed lane prefer another lane, and for a session without
    /// units under way.
    pub fn assign_within(&mut self, keys: impl Iterator<Item = Key> + Clone, full: usize) -> usize {
        self.assign_by(keys, None, full).unwrap_or(0)
    }

    /// The same for a unit that may take much of the server's CPU time: without a fixed lane, it takes the lane with the
    /// fewest units, so that several processors work.
    pub fn assign_apart(
        &mut self,
        keys: impl Iterator<Item = Key> + Clone,
        only: Option<usize>,
    ) -> Option<usize> {
        self.assign_by(keys, only, 0)
    }

    fn assign_by(
        &mut self,
        keys: impl Iterator<Item = Key> + Clone,
        only: Option<usize>,
        full: usize,
    ) -> Option<usize> {
        let bound = || keys.clone().filter_map(|key| self.keys.get(&key)).map(|(lane, _)| *lane);
        if only.is_some_and(|only| bound().any(|lane| lane != only)) {
            return None;
        }
        let lane = only.or_else(|| bound().min()).unwrap_or_else(|| self.least(full));
        self.loads[lane] += 1;
        for key in keys {
            let (of_key, units) = self.keys.entry(key).or_insert((lane, 0));
            *of_key = lane;
            *units += 1;
        }
        Some(lane)
    }

    /// A unit of these keys has left its lane.
    pub fn release(&mut self, lane: usize, keys: impl Iterator<Item = Key>) {
        self.loads[lane] -= 1;
        for key in keys {
            if let Some((_, units)) = self.keys.get_mut(&key) {
                *units -= 1;
                if *units == 0 {
                    self.keys.remove(&key);
                }
            }
        }
    }

    /// Records whether a lane's batch takes long. Returns whether another lane is fast.
    pub fn set_slow(&mut self, lane: usize, slow: bool) -> bool {
        self.slow[lane] = slow;
        self.slow.iter().enumerate().any(|(other, slow)| other != lane && !slow)
    }

    /// Units under way in each lane.
    pub fn loads(&self) -> &[usize] {
        &self.loads
    }

    /// The first lane with fewer units than `full`, or else the lane with the fewest. Slow lanes are used only if
    /// all lanes are slow.
    fn least(&self, full: usize) -> usize {
        let roomy = self.fast().find(|lane| self.loads[*lane] < full);
        roomy.unwrap_or_else(|| self.fewest())
    }

    /// The lane with the fewest units.
    fn fewest(&self) -> usize {
        let load = |lane: &usize| self.loads[*lane];
        self.fast().min_by_key(load).or_else(|| (0..self.loads.len()).min_by_key(load)).unwrap_or(0)
    }

    fn fast(&self) -> impl Iterator<Item = usize> {
        (0..self.loads.len()).filter(|lane| !self.slow[*lane])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_bound_spreads_the_keys_and_keeps_the_units_of_one_together() {
        let key = |hash| std::iter::once(Key { table: 1, hash });
        let mut affinity = Affinity::new(2);
        let lanes: Vec<usize> = (0..6).map(|hash| affinity.assign_within(key(hash), 2)).collect();
        assert_eq!(lanes, [0, 0, 1, 1, 0, 1], "two for each lane, then the lane with the fewest");
        assert_eq!(affinity.assign_within(key(2), 2), 1, "with the others of its key");
    }

    #[test]
    fn units_of_a_key_share_a_lane_while_they_are_under_way() {
        let key = |hash| std::iter::once(Key { table: 1, hash });
        let mut affinity = Affinity::new(2);
        for _ in 0..limits::LANE_FULL_UNITS {
            assert_eq!(affinity.assign(key(7), None), Some(0));
        }
        assert_eq!(affinity.assign(key(8), None), Some(1), "lane 0 is full");
        assert_eq!(affinity.assign(key(7), None), Some(0), "units of key 7 are in lane 0");
        assert_eq!(
            affinity.assign(key(7), Some(1)),
            None,
            "the session has units in lane 1, the key in lane 0"
        );
        assert_eq!(affinity.assign(key(9), Some(0)), Some(0));
        assert_eq!(affinity.assign(key(10).chain(key(8)), None), Some(1));
        affinity.release(1, key(10).chain(key(8)));
        for _ in 0..limits::LANE_FULL_UNITS + 1 {
            affinity.release(0, key(7));
        }
        affinity.release(0, key(9));
        affinity.release(1, key(8));
        assert_eq!(affinity.loads(), [0, 0]);
        assert!(affinity.keys.is_empty());
        assert_eq!(affinity.assign(key(8), None), Some(0));
    }

    #[test]
    fn rows_that_are_used_together_come_to_share_a_lane() {
        let key = |hash| std::iter::once(Key { table: 1, hash });
        let mut affinity = Affinity::new(2);
        let before = [0, 1];
        assert_eq!(affinity.assign(key(7), None), Some(before[0]));
        affinity.set_slow(before[0], true);
        assert_eq!(affinity.assign(key(9), None), Some(before[1]));
        affinity.set_slow(before[0], false);
        let both = || key(9).chain(key(7));
        assert_eq!(
            affinity.assign(both(), Some(before[0])),
            None,
            "the session would overtake a row's units"
        );
        assert_eq!(affinity.assign(both(), None), Some(before[0]));
        assert_eq!(affinity.assign(key(9), None), Some(before[0]), "later units follow");
        affinity.release(before[1], key(9)); // the unit that was there before
        assert_eq!(affinity.assign(key(9), None), Some(before[0]));
        affinity.release(before[0], both());
        for _ in 0..2 {
            affinity.release(before[0], key(9));
        }
        assert!(!affinity.keys.contains_key(&Key { table: 1, hash: 9 }));
    }

    #[test]
    fn units_that_may_take_long_are_spread_over_the_lanes() {
        let key = |hash| std::iter::once(Key { table: 1, hash });
        let mut affinity = Affinity::new(3);
        assert_eq!(affinity.assign_apart(key(7), None), Some(0));
        assert_eq!(affinity.assign_apart(key(8), None), Some(1));
        assert_eq!(affinity.assign_apart(key(7), None), Some(0), "units of its key are in lane 0");
        assert_eq!(affinity.assign_apart(key(9), None), Some(2));
        affinity.set_slow(1, true);
        assert_eq!(affinity.assign_apart(key(10), None), Some(2), "lane 1 is slow, lane 0 has two units");
    }

    #[test]
    fn a_slow_lane_gets_only_units_that_have_to_use_it() {
        let key = |hash| std::iter::once(Key { table: 1, hash });
        let none = || std::iter::empty();
        let mut affinity = Affinity::new(3);
        assert_eq!(affinity.assign(key(7), None), Some(0));
        assert!(affinity.set_slow(0, true), "the other lanes are fast");
        assert_eq!(affinity.assign(none(), None), Some(1));
        assert_eq!(affinity.assign(key(8), None), Some(1));
        assert_eq!(affinity.assign(key(7), None), Some(0), "units of its key are in lane 0");
        assert_eq!(affinity.assign(none(), Some(0)), Some(0), "units of its session are in lane 0");
        for _ in 0..2 * limits::LANE_FULL_UNITS {
            affinity.assign(none(), None);
        }
        assert_eq!(affinity.loads()[0], 3, "even if the other lanes are full");
        assert!(affinity.set_slow(1, true) && !affinity.set_slow(2, true));
        assert_eq!(affinity.assign(none(), None), Some(0), "the lane with the fewest units, if all are slow");
        affinity.set_slow(1, false);
        assert_eq!(affinity.assign(none(), None), Some(1));
    }
}
