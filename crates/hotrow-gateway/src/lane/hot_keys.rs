//! Counts the keys of a lane's batches, and notes which keys are blocked.

use std::collections::HashMap;
use std::time::Instant;

use hotrow_lane::key::Key;
use hotrow_lane::lane::{Batch, Lane, Unit, UnitState};

use super::backend::Work;
use crate::hot_keys::{KeyCounts, KeySnapshot};

#[derive(Debug, Default)]
pub struct LaneKeys {
    counts: KeyCounts,
    /// The sessions whose units wait for the locks of outsiders.
    blocked: HashMap<Key, u64>,
}

impl LaneKeys {
    /// Counts the units of a batch that is done. Those that found nothing and wait are not done.
    pub fn count<W: Work>(&mut self, batch: &Batch<W>, now: Instant) {
        let mut place = 0;
        while let Some(first) = batch.units.get(place) {
            // Units of one row are neighbours in a batch.
            let same =
                |unit: &&Unit<W>| unit.claimed.key == first.claimed.key && unit.claimed.claims.is_empty();
            let more = if first.claimed.claims.is_empty() {
                batch.units[place + 1..].iter().take_while(same).count()
            } else {
                0
            };
            let end = place + 1 + more;
            let done = |place: &usize| !batch.waits.contains(place);
            let count = (place..end).filter(done).count();
            for key in first.keys().filter(|_| count > 0) {
                let came = (place..end).filter(done).map(|place| batch.units[place].payload.came());
                let times = came.map(|came| now.saturating_duration_since(came));
                if self.counts.count(key, batch.number, count as u64, times, now) {
                    self.name(key, first);
                }
            }
            place = end;
        }
    }

    fn name<W: Work>(&mut self, key: Key, unit: &Unit<W>) {
        if let Some(name) = unit.payload.name_of(key) {
            self.counts.name(key, name);
        }
    }

    /// A unit of a session waits for an outsider's lock on this key.
    pub fn blocked<W: Work>(&mut self, key: Key, unit: &Unit<W>) {
        self.name(key, unit);
        self.blocked.insert(key, unit.session);
    }

    /// The unit has run.
    pub fn unblocked(&mut self, key: Key) {
        self.blocked.remove(&key);
    }

    /// The hottest and the blocked keys, with the units that wait in the lane.
    pub fn snapshots<W>(&mut self, lane: &Lane<W>) -> Vec<KeySnapshot> {
        let mut waiting = HashMap::<Key, (usize, usize)>::new();
        for (place, unit) in lane.units() {
            match place {
                UnitState::Parked(key) => waiting.entry(key).or_default().1 += 1,
                UnitState::Queued => unit.keys().for_each(|key| waiting.entry(key).or_default().0 += 1),
                UnitState::UnderWay(_) => {}
            }
        }
        let mut keys = self.counts.snapshots(self.blocked.keys().copied());
        for one in &mut keys {
            (one.waiting, one.parked) = waiting.get(&one.key).copied().unwrap_or_default();
            one.blocked_session = self.blocked.get(&one.key).copied();
        }
        keys
    }
}
