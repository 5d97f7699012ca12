//! The most frequent items of a stream, found in bounded memory. Each count has a bound of its error.
//!
//! An item is counted from the moment it is first seen. When the table is full, the rarer half is forgotten, and
//! `forgotten` grows by as much as the most frequent one of them can have had. An item that is seen again later can have
//! missed that many. This is the algorithm of Misra and Gries with its decrements put off and added up.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};

/// A table of the most frequent items, each with details of type `D`.
#[derive(Debug)]
pub struct Frequent<K, D, S = RandomState> {
    items: HashMap<K, Item<D>, S>,
    kept: usize,
    forgotten: u64,
    total: u64,
}

/// An item in the table.
#[derive(Debug)]
pub struct Item<D> {
    /// The count since it is in the table. The true count is at least this, and at most this and `missed`.
    pub seen: u64,
    /// The highest count that it can have had before.
    pub missed: u64,
    /// What is known about it since it is in the table.
    pub details: D,
}

impl<K: Copy + Eq + Hash, D: Default, S: BuildHasher + Default> Frequent<K, D, S> {
    /// An empty table that keeps this many items when it is full. It holds at most twice as many.
    pub fn new(kept: usize) -> Self {
        Frequent { items: HashMap::default(), kept, forgotten: 0, total: 0 }
    }

    /// Counts an item, and returns it.
    pub fn add(&mut self, key: K, count: u64) -> &mut Item<D> {
        self.total += count;
        if self.items.len() >= 2 * self.kept && !self.items.contains_key(&key) {
            self.forget_rare();
        }
        let missed = self.forgotten;
        let item = self.items.entry(key).or_insert_with(|| Item { seen: 0, missed, details: D::default() });
        item.seen += count;
        item
    }

    /// Keeps the most frequent items. At least `kept + 1` items have the weight that is forgotten, so all that was ever
    /// forgotten is at most the total divided by `kept + 1`.
    fn forget_rare(&mut self) {
        let forgotten = self.forgotten;
        let weight = |item: &Item<D>| item.seen + item.missed - forgotten;
        let mut weights: Vec<u64> = self.items.values().map(weight).collect();
        let (_, most, _) = weights.select_nth_unstable_by(self.kept, |one, other| other.cmp(one));
        let forgotten = self.forgotten + *most;
        self.forgotten = forgotten;
        self.items.retain(|_, item| item.seen + item.missed > forgotten);
    }

    /// The item, if it is in the table.
    pub fn get(&self, key: &K) -> Option<&Item<D>> {
        self.items.get(key)
    }

    /// The item, if it is in the table.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut Item<D>> {
        self.items.get_mut(key)
    }

    /// All items in the table, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &Item<D>)> {
        self.items.iter()
    }

    /// The largest possible count of an item that is not in the table.
    pub fn missed_max(&self) -> u64 {
        self.forgotten
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Checks every promise about the table against the true counts.
    fn check(kept: usize, stream: &[(u16, u64)]) -> Result<(), TestCaseError> {
        let mut table = Frequent::<u16, ()>::new(kept);
        let mut truth = HashMap::<u16, u64>::new();
        for (key, count) in stream {
            table.add(*key, *count);
            *truth.entry(*key).or_default() += count;
            prop_assert!(table.items.len() <= 2 * kept, "the table is bounded");
        }
        prop_assert_eq!(table.total(), truth.values().sum::<u64>());
        prop_assert!(table.missed_max() * (kept as u64 + 1) <= table.total(), "the error is bounded");
        for (key, count) in truth {
            match table.get(&key) {
                Some(item) => {
                    prop_assert!(item.seen <= count && count <= item.seen + item.missed, "{key}: {item:?}");
                    prop_assert!(item.missed <= table.missed_max());
                }
                None => prop_assert!(count <= table.missed_max(), "{key} had {count} and is not there"),
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn counts_are_within_the_error_and_frequent_items_are_there(
            kept in 1_usize..9,
            stream in vec((0_u16..40, 1_u64..6), 0..600),
        ) {
            check(kept, &stream)?;
        }

        /// Few items have nearly all, as rows that are hot.
        #[test]
        fn the_same_for_a_skewed_stream(
            kept in 2_usize..9,
            stream in vec((prop_oneof![4 => 0_u16..3, 1 => 0_u16..2000], 1_u64..100), 0..600),
        ) {
            check(kept, &stream)?;
        }
    }

    #[test]
    fn a_hot_item_among_a_million_others_is_counted_exactly_from_its_first_time() {
        let mut table = Frequent::<u32, u64>::new(64);
        for other in 1..100_000 {
            if other % 10 == 0 {
                table.add(0, 1).details += 1;
            }
            table.add(other, 1);
        }
        let hot = table.get(&0).unwrap();
        assert_eq!((hot.seen, hot.missed, hot.details), (9_999, 0, 9_999));
        assert!(table.missed_max() <= table.total() / 65);
    }

    #[test]
    fn an_item_that_comes_back_can_have_missed_what_was_forgotten() {
        let mut table = Frequent::<u32, ()>::new(1);
        table.add(1, 5);
        table.add(2, 3);
        table.add(3, 1); // forgets 2
        assert!(table.get(&2).is_none() && table.missed_max() == 3);
        let again = table.add(2, 1); // 3 is forgotten: its weight of 1 is the second largest
        assert_eq!((again.seen, again.missed), (1, 4));
        assert_eq!(table.get(&1).unwrap().seen, 5);
    }
}
