//! The batches that units would have made which were passed through: an estimate of what packing would save, from the times at
//! which units begin and end at the server.
//!
//! One lane is simulated. It is busy for as long as the longest unit of its batch took, and units that come meanwhile make the
//! next batch. A client whose unit is still in the simulated lane would not have sent its next one yet. So its next units are
//! left out until that batch is over, and the mean size of batches is taken from the units that are not left out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::time::Duration;

use crate::key::Key;
use crate::limits::BATCH_UNITS_MAX;

/// What was found since the last call of [`Shadow::take_counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShadowCounts {
    /// Units that began while another unit of one of their rows was under way at the server.
    pub met: u64,
    /// Units in simulated batches.
    pub batched: u64,
    /// Simulated batches.
    pub batches: u64,
}

/// The simulated lane, and the units under way. It has an entry for each session with a unit in one of both.
#[derive(Debug, Default)]
pub struct Shadow {
    sessions: HashMap<u64, OfSession>,
    /// The number of units under way at the server that contend for a row.
    rows: HashMap<Key, u32>,
    /// The sessions with a unit in the batch under way.
    batch: Vec<u64>,
    /// The time at which that batch began.
    began: Duration,
    /// The sessions with a unit in the next batch.
    next: Vec<u64>,
    counts: ShadowCounts,
}

#[derive(Debug, Default)]
struct OfSession {
    /// The unit under way at the server: its rows, and the time at which it began.
    under_way: Option<(Box<[Key]>, Duration)>,
    /// The unit in the simulated lane.
    in_lane: Option<InLane>,
}

/// A unit in the simulated lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InLane {
    UnderWay,
    /// The server took this long.
    Took(Duration),
}

impl Shadow {
    /// A unit begins. A session has one at a time.
    pub fn begin(&mut self, session: u64, keys: impl Iterator<Item = Key>, now: Duration) {
        self.advance(now);
        let keys: Box<[Key]> = keys.collect();
        let mut meets = false;
        for key in &keys {
            let units = self.rows.entry(*key).or_default();
            meets |= *units > 0;
            *units += 1;
        }
        self.counts.met += u64::from(meets);
        let own = self.sessions.entry(session).or_default();
        own.under_way = Some((keys, now));
        if own.in_lane.is_none() && self.next.len() < BATCH_UNITS_MAX {
            own.in_lane = Some(InLane::UnderWay);
            self.next.push(session);
            if self.batch.is_empty() {
                self.send(now);
            }
        }
    }

    /// The server has answered the session's unit, or the unit will not run.
    pub fn end(&mut self, session: u64, now: Duration) {
        let Some(own) = self.sessions.get_mut(&session) else { return };
        let Some((keys, began)) = own.under_way.take() else { return };
        if own.in_lane == Some(InLane::UnderWay) {
            own.in_lane = Some(InLane::Took(now.saturating_sub(began)));
        }
        for key in keys {
            if let Entry::Occupied(mut units) = self.rows.entry(key) {
                *units.get_mut() -= 1;
                if *units.get() == 0 {
                    units.remove();
                }
            }
        }
        self.forget(session);
        self.advance(now);
    }

    /// What was found since the last call.
    pub fn take_counts(&mut self) -> ShadowCounts {
        mem::take(&mut self.counts)
    }

    /// Ends the batches that are over at this time.
    fn advance(&mut self, now: Duration) {
        while let Some(took) = self.batch_took().filter(|took| self.began + *took <= now) {
            for session in mem::take(&mut self.batch) {
                if let Some(own) = self.sessions.get_mut(&session) {
                    own.in_lane = None;
                }
                self.forget(session);
            }
            self.send(self.began + took);
        }
    }

    /// The time of the batch under way. None without a batch, and as long as one of its units has no answer.
    fn batch_took(&self) -> Option<Duration> {
        let took = |session| match self.sessions.get(session)?.in_lane {
            Some(InLane::Took(time)) => Some(time),
            _ => None,
        };
        let times: Option<Vec<Duration>> = self.batch.iter().map(took).collect();
        times?.into_iter().max()
    }

    /// Begins the next batch, if units wait.
    fn send(&mut self, now: Duration) {
        if !self.next.is_empty() {
            self.batch = mem::take(&mut self.next);
            self.began = now;
            self.counts.batches += 1;
            self.counts.batched += self.batch.len() as u64;
        }
    }

    fn forget(&mut self, session: u64) {
        if self.sessions.get(&session).is_some_and(|own| own.under_way.is_none() && own.in_lane.is_none()) {
            self.sessions.remove(&session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn row(hash: u64) -> Key {
        Key { table: 1, hash }
    }

    /// Clients that send their next unit as soon as they have the answer. Each unit takes `took(client, round)`.
    fn closed_loop(clients: u64, rounds: u64, took: impl Fn(u64, u64) -> Duration) -> ShadowCounts {
        let (mut shadow, mut events) = (Shadow::default(), std::collections::BTreeMap::new());
        // The clients do not begin in the same instant. An event is an end and a beginning.
        for client in 0..clients {
            events.insert((MS / 1_000 * client as u32, client), 0);
        }
        while let Some(((now, client), round)) = events.pop_first() {
            shadow.end(client, now);
            if round < rounds {
                shadow.begin(client, [row(client)].into_iter(), now);
                events.insert((now + took(client, round), client), round + 1);
            }
        }
        assert!(shadow.rows.is_empty() && shadow.sessions.len() <= clients as usize);
        shadow.take_counts()
    }

    fn mean(counts: ShadowCounts) -> f64 {
        counts.batched as f64 / counts.batches as f64
    }

    #[test]
    fn a_client_that_is_alone_has_one_unit_per_batch() {
        let counts = closed_loop(1, 100, |_, _| MS);
        assert_eq!((counts.batched, counts.batches, counts.met), (100, 100, 0));
    }

    /// As in a lane: one half of the clients is in the batch under way, and the other half makes the next one.
    #[test]
    fn half_of_the_clients_share_a_batch() {
        for clients in [2, 16, 64] {
            let units = mean(closed_loop(clients, 100, |_, _| MS));
            let half = clients as f64 / 2.0;
            assert!((half * 0.9..=half * 1.1).contains(&units), "{clients} clients: {units}");
        }
    }

    #[test]
    fn units_of_different_lengths_share_batches_too() {
        let units =
            mean(closed_loop(16, 200, |client, round| MS + MS / 10 * ((7 * client + round) % 10) as u32));
        assert!((6.0..=12.0).contains(&units), "{units}");
    }

    #[test]
    fn units_that_never_overlap_share_no_batch() {
        let mut shadow = Shadow::default();
        for unit in 0..100_u32 {
            shadow.begin(unit.into(), [row(1)].into_iter(), MS * 3 * unit);
            shadow.end(unit.into(), MS * (3 * unit + 1));
        }
        assert_eq!(shadow.take_counts(), ShadowCounts { met: 0, batched: 100, batches: 100 });
        assert_eq!(shadow.take_counts(), ShadowCounts::default(), "each count is taken once");
    }

    #[test]
    fn units_that_come_during_a_batch_make_the_next_one_which_lasts_as_long_as_its_longest() {
        let mut shadow = Shadow::default();
        shadow.begin(1, [row(1)].into_iter(), MS);
        shadow.begin(2, [row(2)].into_iter(), 2 * MS);
        shadow.begin(3, [row(3)].into_iter(), 3 * MS);
        assert_eq!(shadow.take_counts(), ShadowCounts { met: 0, batched: 1, batches: 1 });
        shadow.end(2, 4 * MS);
        shadow.end(3, 5 * MS);
        assert_eq!(shadow.take_counts(), ShadowCounts::default(), "the first batch is not over");
        shadow.end(1, 6 * MS);
        assert_eq!(shadow.take_counts(), ShadowCounts { met: 0, batched: 2, batches: 1 });
        // The second batch lasts from 6 ms to 8 ms.
        shadow.begin(2, [row(2)].into_iter(), 7 * MS);
        shadow.begin(4, [row(4)].into_iter(), 7 * MS);
        shadow.end(4, 7 * MS + MS / 2);
        shadow.end(2, 7 * MS + MS / 2);
        assert_eq!(shadow.take_counts(), ShadowCounts::default());
        shadow.begin(5, [row(5)].into_iter(), 9 * MS);
        let (fourth, fifth) = (1, 1); // the session 2 would not have sent its unit at 7 ms
        assert_eq!(shadow.take_counts(), ShadowCounts { met: 0, batched: fourth + fifth, batches: 2 });
    }

    #[test]
    fn units_meet_on_a_row_as_long_as_the_first_one_is_under_way() {
        let mut shadow = Shadow::default();
        shadow.begin(1, [row(1), row(2)].into_iter(), MS);
        shadow.begin(2, [row(2), row(3)].into_iter(), MS);
        shadow.begin(3, [row(4)].into_iter(), MS);
        assert_eq!(shadow.take_counts().met, 1);
        shadow.end(1, 2 * MS);
        shadow.begin(4, [row(1)].into_iter(), 3 * MS);
        assert_eq!(shadow.take_counts().met, 0, "nothing is left on the row");
        shadow.begin(5, [row(3)].into_iter(), 3 * MS);
        assert_eq!(shadow.take_counts().met, 1);
    }

    #[test]
    fn a_batch_has_a_bound_and_nothing_stays_behind() {
        let mut shadow = Shadow::default();
        let sessions = 10 * BATCH_UNITS_MAX as u64;
        (0..sessions).for_each(|session| shadow.begin(session, [row(1)].into_iter(), MS));
        (0..sessions).for_each(|session| shadow.end(session, 2 * MS));
        shadow.advance(10 * MS);
        let counts = shadow.take_counts();
        assert_eq!((counts.batched, counts.batches), (1 + BATCH_UNITS_MAX as u64, 2));
        assert!(shadow.sessions.is_empty() && shadow.rows.is_empty(), "{shadow:?}");
        shadow.end(7, 11 * MS); // a session without a unit
    }
}
