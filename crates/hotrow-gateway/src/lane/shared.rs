//! What all lanes to one server share, whatever their database: the counts of their clients, and the choice of a unit's lane.

use std::sync::{Arc, MutexGuard};

use hotrow_connect::lock::Lock;
use hotrow_lane::affinity::Affinity;
use hotrow_lane::key::Key;
use hotrow_lane::lane::{LaneKind, Unit};

use crate::metrics::Traffic;

/// What the lanes to one server share.
#[derive(Debug)]
pub struct LaneShared {
    /// The numbers of the pool's database and user.
    pub traffic: Arc<Traffic>,
    writes: Lock<Affinity>,
    reads: Lock<Affinity>,
}

impl LaneShared {
    /// For this number of lanes of each kind.
    pub fn new(lanes: usize, traffic: Arc<Traffic>) -> Self {
        let affinity = || Lock::new(Affinity::new(lanes));
        LaneShared { traffic, writes: affinity(), reads: affinity() }
    }

    fn affinity(&self, kind: LaneKind) -> MutexGuard<'_, Affinity> {
        let affinity = match kind {
            LaneKind::Write => &self.writes,
            LaneKind::Read => &self.reads,
        };
        affinity.lock()
    }

    /// The lane for a unit with these keys. If `only` is set, the session has units under way there, and no other lane
    /// will do.
    pub fn assign(
        &self,
        kind: LaneKind,
        keys: impl Iterator<Item = Key> + Clone,
        only: Option<usize>,
    ) -> Option<usize> {
        self.affinity(kind).assign(keys, only)
    }

    /// The same with this number of units above which a unit without a fixed lane prefers another one.
    pub fn assign_within(
        &self,
        kind: LaneKind,
        keys: impl Iterator<Item = Key> + Clone,
        full: usize,
    ) -> usize {
        self.affinity(kind).assign_within(keys, full)
    }

    /// The same for a unit that may take much of the server's CPU time.
    pub fn assign_apart(
        &self,
        kind: LaneKind,
        keys: impl Iterator<Item = Key> + Clone,
        only: Option<usize>,
    ) -> Option<usize> {
        self.affinity(kind).assign_apart(keys, only)
    }

    /// Units have left their lane.
    pub fn release<'u, P: 'u>(&self, kind: LaneKind, lane: usize, units: impl Iterator<Item = &'u Unit<P>>) {
        let mut affinity = self.affinity(kind);
        units.for_each(|unit| affinity.release(lane, unit.keys()));
    }

    /// Notes whether a lane's batch takes long. Returns whether another lane of its kind can take over its units.
    pub fn set_slow(&self, kind: LaneKind, lane: usize, slow: bool) -> bool {
        self.affinity(kind).set_slow(lane, slow)
    }
}
