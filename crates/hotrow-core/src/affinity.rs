//! Which lane a unit goes to: all units of one key that are on their way share a lane; a unit that is free to choose
//! takes the first lane that is not full, so that few lanes with large batches do the work while that is enough. A lane
//! whose batch takes long gets no such units.

use std::collections::HashMap;

use crate::key::Key;
use crate::limits;

/// How the units on their way are spread over the lanes of one kind.
#[derive(Debug)]
pub struct Affinity {
    loads: Vec<usize>,
    /// Lanes whose batch takes long.
    slow: Vec<bool>,
    keys: HashMap<Key, (usize, usize)>,
}

impl Affinity {
    /// No units on so many lanes.
    pub fn new(lanes: usize) -> Self {
        let lanes = lanes.max(1);
        Affinity { loads: vec![0; lanes], slow: vec![false; lanes], keys: HashMap::new() }
    }

    /// The lane for a unit of these keys. Where the session has units on their way in lane `only`, it can't be
    /// another one, or they might overtake each other: none if it would have to be, or if units of its keys are on
    /// their way in different lanes.
    pub fn assign(&mut self, keys: impl Iterator<Item = Key> + Clone, only: Option<usize>) -> Option<usize> {
        let mut lane = only;
        for (bound, _) in keys.clone().filter_map(|key| self.keys.get(&key)) {
            if lane.is_some_and(|lane| lane != *bound) {
                return None;
            }
            lane = Some(*bound);
        }
        let lane = lane.unwrap_or_else(|| self.least());
        self.loads[lane] += 1;
        for key in keys {
            self.keys.entry(key).or_insert((lane, 0)).1 += 1;
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

    /// Notes whether a lane's batch takes long. Returns whether another lane's does not.
    pub fn set_slow(&mut self, lane: usize, slow: bool) -> bool {
        self.slow[lane] = slow;
        self.slow.iter().enumerate().any(|(other, slow)| other != lane && !slow)
    }

    /// Units on their way in each lane.
    pub fn loads(&self) -> &[usize] {
        &self.loads
    }

    /// The first lane that is not full, or else the one with the fewest units; slow lanes only where all are.
    fn least(&self) -> usize {
        let lanes = || (0..self.loads.len()).filter(|lane| !self.slow[*lane]);
        let roomy = lanes().find(|lane| self.loads[*lane] < limits::LANE_FULL_UNITS);
        let least = |lane: &usize| self.loads[*lane];
        roomy
            .or_else(|| lanes().min_by_key(least))
            .or_else(|| (0..self.loads.len()).min_by_key(least))
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_a_key_stay_together_while_they_are_on_their_way() {
        let key = |hash| std::iter::once(Key { table: 1, hash });
        let mut affinity = Affinity::new(2);
        for _ in 0..limits::LANE_FULL_UNITS {
            assert_eq!(affinity.assign(key(7), None), Some(0));
        }
        assert_eq!(affinity.assign(key(8), None), Some(1), "lane 0 is full");
        assert_eq!(affinity.assign(key(7), None), Some(0), "but key 7 is there");
        assert_eq!(affinity.assign(key(7), Some(1)), None, "and not for a session with units in lane 1");
        assert_eq!(affinity.assign(key(9), Some(0)), Some(0));
        assert_eq!(affinity.assign(key(7).chain(key(8)), None), None, "its rows are in different lanes");
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
    fn a_slow_lane_gets_only_what_has_to_go_there() {
        let key = |hash| std::iter::once(Key { table: 1, hash });
        let none = || std::iter::empty();
        let mut affinity = Affinity::new(3);
        assert_eq!(affinity.assign(key(7), None), Some(0));
        assert!(affinity.set_slow(0, true), "the others are not");
        assert_eq!(affinity.assign(none(), None), Some(1));
        assert_eq!(affinity.assign(key(8), None), Some(1));
        assert_eq!(affinity.assign(key(7), None), Some(0), "its row is there");
        assert_eq!(affinity.assign(none(), Some(0)), Some(0), "its session is there");
        for _ in 0..2 * limits::LANE_FULL_UNITS {
            affinity.assign(none(), None);
        }
        assert_eq!(affinity.loads()[0], 3, "also when the others are full");
        assert!(affinity.set_slow(1, true) && !affinity.set_slow(2, true));
        assert_eq!(
            affinity.assign(none(), None),
            Some(0),
            "the one with the fewest units, where all are slow"
        );
        affinity.set_slow(1, false);
        assert_eq!(affinity.assign(none(), None), Some(1));
    }
}
