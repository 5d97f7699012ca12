//! Facts of one kind by name, bounded by count and bytes. What a fact says is not known here.

use std::collections::HashMap;
use std::time::Duration;

use super::Asked;
use crate::classify::Refusal;
use crate::limits;

/// A fact, or the server's refusal of the question.
type Entry<V> = (Result<V, Refusal>, Asked);

/// Facts of one kind, in two generations. When the young one is full, it becomes the old one, and facts that were not used during
/// a whole generation are dropped.
#[derive(Debug)]
pub(super) struct Known<V> {
    young: HashMap<String, Entry<V>>,
    old: HashMap<String, Entry<V>>,
    young_bytes: usize,
}

impl<V> Default for Known<V> {
    fn default() -> Self {
        Known { young: HashMap::new(), old: HashMap::new(), young_bytes: 0 }
    }
}

impl<V: Clone> Known<V> {
    /// The fact with this name and the time of its question, if it was asked in the same epoch and not too early.
    pub(super) fn get(&mut self, name: &str, since: Asked) -> Option<(Result<V, Refusal>, Duration)> {
        if !self.young.contains_key(name)
            && let Some((name, entry)) = self.old.remove_entry(name)
        {
            self.insert(name, entry, 0);
        }
        let (value, asked) = self.young.get(name)?;
        (asked.epoch == since.epoch && asked.at >= since.at).then(|| (value.clone(), asked.at))
    }

    /// Notes a fact of this many bytes, unless a later question is answered already.
    pub(super) fn put(&mut self, name: String, value: Result<V, Refusal>, asked: Asked, bytes: usize) {
        let newer = |entry: &Entry<V>| (entry.1.epoch, entry.1.at) > (asked.epoch, asked.at);
        if !self.young.get(&name).or_else(|| self.old.get(&name)).is_some_and(newer) {
            self.insert(name, (value, asked), bytes);
        }
    }

    fn insert(&mut self, name: String, entry: Entry<V>, bytes: usize) {
        if self.young.len() >= limits::FACTS_MAX || self.young_bytes > limits::FACTS_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += name.len() + bytes;
        self.young.insert(name, entry);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}
