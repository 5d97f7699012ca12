//! The keys that have the most units, now and since the start, with their names. The owner counts when work is done, so
//! nothing is shared for it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_core::key::KeyName;
use hotrow_core::limits;
use hotrow_lane::frequent::Frequent;
use hotrow_lane::key::{Key, KeyHasher};
use hotrow_lane::latencies::Latencies;

use crate::metrics::microseconds;

const WINDOW: Duration = Duration::from_millis(limits::HOT_KEYS_WINDOW_MS);
/// Names of keys that are remembered before those without counts are forgotten.
const NAMES_MAX: usize = 8 * limits::HOT_KEYS;

/// A key since the start.
#[derive(Debug, Default)]
struct Total {
    commits: u64,
    last_commit: u64,
    is_named: bool,
}

/// A key in one window. A key without a second unit has no times, so rare keys take little memory.
#[derive(Debug, Default)]
struct Recent {
    commits: u64,
    last_commit: u64,
    latencies: Option<Box<Latencies>>,
}

type Counts<D> = Frequent<Key, D, BuildHasherDefault<KeyHasher>>;
type Window = Counts<Recent>;

/// The counts of one owner.
#[derive(Debug)]
pub struct KeyCounts {
    total: Counts<Total>,
    present: Window,
    /// The window before, with its length.
    last: (Window, Duration),
    began: Instant,
    names: HashMap<Key, Arc<KeyName>>,
}

#[derive(Debug)]
pub struct KeySnapshot {
    pub key: Key,
    /// Its name, as far as it is known.
    pub name: Option<Arc<KeyName>>,
    /// Units done since the start, as far as they were counted.
    pub units: u64,
    /// Further units that it can have had.
    pub units_missed_max: u64,
    /// Commits with these units.
    pub commits: u64,
    /// Units in the recent windows.
    pub recent_units: u64,
    /// Commits with these units.
    pub recent_commits: u64,
    /// The length of the recent windows.
    pub recent: Duration,
    /// Times of recent units from their arrival to their commit.
    pub latencies: Latencies,
    /// Units that wait.
    pub waiting: usize,
    /// Units that wait behind one that waits for an outsider's lock.
    pub parked: usize,
    /// The session whose unit waits for an outsider's lock.
    pub blocked_session: Option<u64>,
}

impl Default for KeyCounts {
    fn default() -> Self {
        KeyCounts {
            total: Frequent::new(limits::HOT_KEYS),
            present: Frequent::new(limits::HOT_KEYS),
            last: (Frequent::new(limits::HOT_KEYS), Duration::ZERO),
            began: Instant::now(),
            names: HashMap::new(),
        }
    }
}

impl KeyCounts {
    /// Counts units of a key that were done by the commit with this number, with their times. Returns whether the key
    /// needs a name now.
    pub fn count(
        &mut self,
        key: Key,
        commit: u64,
        count: u64,
        times: impl Iterator<Item = Duration>,
        now: Instant,
    ) -> bool {
        self.turn(now);
        let total = self.total.add(key, count);
        let needs_name = total.seen > 1 && !total.details.is_named;
        let details = &mut total.details;
        details.commits += u64::from(std::mem::replace(&mut details.last_commit, commit) != commit);
        let recent = self.present.add(key, count);
        let details = &mut recent.details;
        details.commits += u64::from(std::mem::replace(&mut details.last_commit, commit) != commit);
        if recent.seen > 1 {
            let latencies = details.latencies.get_or_insert_default();
            times.for_each(|time| latencies.record(microseconds(time)));
        }
        needs_name
    }

    /// Whether the key has a name.
    pub fn is_named(&self, key: &Key) -> bool {
        self.names.contains_key(key)
    }

    /// Notes a key's name.
    pub fn name(&mut self, key: Key, name: KeyName) {
        if self.names.len() >= NAMES_MAX {
            let (total, present, last) = (&self.total, &self.present, &self.last.0);
            self.names.retain(|key, _| {
                total.get(key).is_some() || present.get(key).is_some() || last.get(key).is_some()
            });
        }
        self.names.insert(key, Arc::new(name));
        if let Some(item) = self.total.get_mut(&key) {
            item.details.is_named = true;
        }
    }

    /// Begins another window if the present one is over.
    fn turn(&mut self, now: Instant) {
        let length = now.saturating_duration_since(self.began);
        if length < WINDOW {
            return;
        }
        let ended = std::mem::replace(&mut self.present, Frequent::new(limits::HOT_KEYS));
        // After a pause of more than a window, nothing of it is recent.
        let is_recent = length < 2 * WINDOW;
        self.last = if is_recent { (ended, length) } else { (Frequent::new(limits::HOT_KEYS), WINDOW) };
        self.began = now;
    }

    /// All keys that have had more than one unit, and these.
    pub fn snapshots(&mut self, others: impl Iterator<Item = Key>) -> Vec<KeySnapshot> {
        let now = Instant::now();
        self.turn(now);
        let total = self.total.iter().filter(|(_, item)| item.seen > 1).map(|(key, _)| *key);
        let recent = [&self.present, &self.last.0].into_iter().flat_map(Window::iter);
        let recent = recent.filter(|(_, item)| item.seen > 1).map(|(key, _)| *key);
        let mut keys: Vec<Key> = total.chain(recent).chain(others).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().map(|key| self.snapshot(key, now)).collect()
    }

    fn snapshot(&self, key: Key, now: Instant) -> KeySnapshot {
        let total = self.total.get(&key);
        let windows = [self.present.get(&key), self.last.0.get(&key)];
        let mut latencies = Latencies::default();
        let times = windows.iter().flatten().filter_map(|item| item.details.latencies.as_ref());
        times.for_each(|times| latencies.add(times));
        KeySnapshot {
            key,
            name: self.names.get(&key).cloned(),
            units: total.map_or(0, |item| item.seen),
            units_missed_max: total.map_or(self.total.missed_max(), |item| item.missed),
            commits: total.map_or(0, |item| item.details.commits),
            recent_units: windows.iter().flatten().map(|item| item.seen).sum(),
            recent_commits: windows.iter().flatten().map(|item| item.details.commits).sum(),
            recent: now.saturating_duration_since(self.began) + self.last.1,
            latencies,
            waiting: 0,
            parked: 0,
            blocked_session: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Key = Key { table: 1, hash: 1 };

    fn times(count: usize) -> impl Iterator<Item = Duration> {
        std::iter::repeat_n(Duration::from_micros(100), count)
    }

    #[test]
    fn a_commit_is_counted_once_for_each_key() {
        let mut counts = KeyCounts::default();
        let now = counts.began;
        assert!(!counts.count(ROW, 1, 1, times(1), now), "a key with one unit needs no name");
        assert!(counts.count(ROW, 1, 2, times(2), now));
        assert!(counts.count(ROW, 2, 3, times(3), now));
        counts.name(ROW, KeyName::of_table("t"));
        assert!(!counts.count(ROW, 2, 1, times(1), now), "the key has a name");
        let [row] = &counts.snapshots(std::iter::empty())[..] else { panic!("one key") };
        assert_eq!((row.units, row.commits, row.recent_units, row.recent_commits), (7, 2, 7, 2));
        assert_eq!(
            (row.latencies.quantile(0.5), row.name.as_ref().unwrap().table.as_str()),
            (Some(112), "t")
        );
    }

    #[test]
    fn recent_counts_end_with_their_windows_and_totals_stay() {
        let mut counts = KeyCounts::default();
        counts.count(ROW, 1, 5, times(5), counts.began);
        let recent = |counts: &KeyCounts, now| {
            let row = counts.snapshot(ROW, now);
            (row.recent_units, row.recent, row.units)
        };
        let start = counts.began;
        counts.turn(start + WINDOW);
        assert_eq!(recent(&counts, start + WINDOW), (5, WINDOW, 5));
        counts.turn(start + WINDOW * 3 / 2);
        assert_eq!(recent(&counts, start + WINDOW * 3 / 2), (5, WINDOW * 3 / 2, 5), "the last window counts");
        counts.turn(start + WINDOW * 2);
        assert_eq!(recent(&counts, start + WINDOW * 2), (0, WINDOW, 5));
        counts.count(ROW, 2, 5, times(5), start + WINDOW * 2);
        counts.turn(start + WINDOW * 20);
        assert_eq!(recent(&counts, start + WINDOW * 20), (0, WINDOW, 10), "after a pause nothing is recent");
    }

    #[test]
    fn names_of_keys_without_counts_are_forgotten() {
        let mut counts = KeyCounts::default();
        for hash in 0..10_000 {
            counts.name(Key { table: 1, hash }, KeyName::of_table("t"));
        }
        assert!(counts.names.len() <= NAMES_MAX);
        counts.count(ROW, 1, 2, times(2), counts.began);
        counts.name(ROW, KeyName::of_table("t"));
        for hash in 0..10_000 {
            counts.name(Key { table: 2, hash }, KeyName::of_table("t"));
        }
        assert!(counts.is_named(&ROW));
    }
}
