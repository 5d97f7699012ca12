//! The effects of unanswered messages on names.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// For each name that unanswered messages change: their number, and the effect of the last one. There are few, and often one for
/// a moment: hashing it took a tenth of the instructions for a statement that is passed through.
#[derive(Debug)]
pub(super) struct Unanswered<K, V>(BTreeMap<K, Last<V>>);

#[derive(Debug)]
struct Last<V> {
    count: usize,
    /// The group of the last message.
    group: u64,
    /// The name's meaning after it.
    meaning: Option<V>,
}

/// The meaning of a name for a message.
#[derive(Debug)]
pub(super) enum Meaning<'a, V> {
    /// Its current meaning. No unanswered message changes it.
    Settled,
    /// This meaning, if the message runs.
    Will(Option<&'a V>),
    /// Unknown.
    InDoubt,
}

impl<K, V> Default for Unanswered<K, V> {
    fn default() -> Self {
        Unanswered(BTreeMap::new())
    }
}

impl<K: Ord, V> Unanswered<K, V> {
    /// Number of names that unanswered messages change.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A message of this group was sent that gives the name this meaning.
    pub(super) fn add(&mut self, name: K, meaning: Option<V>, group: u64) {
        let count = self.0.get(&name).map_or(0, |last| last.count) + 1;
        self.0.insert(name, Last { count, group, meaning });
    }

    /// The earliest message that changes this name was answered or skipped.
    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, name: &Q)
    where
        K: Borrow<Q>,
    {
        if let Some(last) = self.0.get_mut(name) {
            last.count -= 1;
            if last.count == 0 {
                self.0.remove(name);
            }
        }
    }

    /// The meaning of the name for a message of this group.
    pub(super) fn meaning<Q: Ord + ?Sized>(&self, name: &Q, group: u64) -> Meaning<'_, V>
    where
        K: Borrow<Q>,
    {
        match self.0.get(name) {
            None => Meaning::Settled,
            Some(last) if last.group == group => Meaning::Will(last.meaning.as_ref()),
            Some(_) => Meaning::InDoubt,
        }
    }
}
