//! What messages that are not answered do to names.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// For each name that unanswered messages change: how many they are, and what the last of them makes of it.
#[derive(Debug)]
pub(super) struct Unanswered<K, V>(HashMap<K, Last<V>>);

#[derive(Debug)]
struct Last<V> {
    count: usize,
    /// The group of the last.
    group: u64,
    /// What it makes of the name.
    meaning: Option<V>,
}

/// What a name means to a message.
#[derive(Debug)]
pub(super) enum Meaning<'a, V> {
    /// What it means now: no unanswered message changes it.
    Settled,
    /// This, if the message is run.
    Will(Option<&'a V>),
    /// That is not known.
    InDoubt,
}

impl<K, V> Default for Unanswered<K, V> {
    fn default() -> Self {
        Unanswered(HashMap::new())
    }
}

impl<K: Eq + Hash, V> Unanswered<K, V> {
    /// A message of this group was sent that gives the name this meaning.
    pub(super) fn add(&mut self, name: K, meaning: Option<V>, group: u64) {
        let count = self.0.get(&name).map_or(0, |last| last.count) + 1;
        self.0.insert(name, Last { count, group, meaning });
    }

    /// The earliest message that changes this name is answered, or skipped.
    pub(super) fn remove<Q: Eq + Hash + ?Sized>(&mut self, name: &Q)
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

    /// What the name means to a message of this group.
    pub(super) fn meaning<Q: Eq + Hash + ?Sized>(&self, name: &Q, group: u64) -> Meaning<'_, V>
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
