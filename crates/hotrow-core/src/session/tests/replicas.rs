//! Simulated standbys of the model of PostgreSQL. Each replays the primary's commits with a lag of its own, may stop serving,
//! and shows an older state after a restart. The decisions about reads from them are the real ones.

use std::cell::RefCell;

use hotrow_lane::affinity::Affinity;

use super::envelope::SimEnvelope;
use super::environment::LANES;
use super::postgres::Database;
use super::waits::Wait;
use super::world::World;
use crate::replica::{self, Choice, KnownReplica, LsnBound, Position, ReadSource};

/// Number of standbys.
pub const REPLICAS: usize = 2;

/// The first lane to a standby.
pub const FIRST_LANE: usize = 2 * LANES;

/// When the standbys were started. They restart after crashes, which do not change that time.
const STARTED: i64 = 1;

/// One standby.
pub struct SimReplica {
    pub database: Database,
    /// Number of the primary's changes that it has replayed.
    replayed: usize,
    serves: bool,
    pub affinity: RefCell<Affinity>,
}

/// All standbys, as the gateway knows them.
pub struct SimReplicas {
    pub all: Vec<SimReplica>,
    /// The number of changes in the set of those that serve, and of the catalog.
    pub epoch: u64,
    /// The number of the newest connection to one of them.
    pub connections: u64,
    /// Questions to the primary for its position.
    pub questions: usize,
    /// Reads that they have answered, and batches that they have refused because they were behind.
    pub reads: usize,
    pub behind: usize,
}

/// A session's search for a replica.
#[derive(Clone, Copy, Debug)]
pub enum Search {
    /// The primary is asked for its position.
    Asks { epoch: u64 },
    /// A replica has to replay the WAL up to here.
    Waits { epoch: u64, target: Position },
}

impl Default for SimReplicas {
    fn default() -> Self {
        let replica = || SimReplica {
            database: Database::default(),
            replayed: 0,
            serves: true,
            affinity: RefCell::new(Affinity::new(LANES)),
        };
        SimReplicas {
            all: (0..REPLICAS).map(|_| replica()).collect(),
            epoch: 0,
            connections: 0,
            questions: 0,
            reads: 0,
            behind: 0,
        }
    }
}

impl SimReplicas {
    /// Where a read runs in a session whose earlier reads had this bound.
    pub fn source(&self, bound: Option<&LsnBound>) -> ReadSource {
        let serves = self.all.iter().any(|replica| replica.serves);
        replica::source(bound, serves.then_some(self.epoch))
    }

    /// A standby replays some of the primary's changes. False if it has all of them.
    pub fn replay(&mut self, index: usize, primary: &Database, changes: usize) -> bool {
        let replica = &mut self.all[index];
        let end = primary.log.len().min(replica.replayed.saturating_add(changes));
        for (row, value) in &primary.log[replica.replayed..end] {
            replica.database.rows.insert(*row, *value);
        }
        let has_replayed = end > replica.replayed;
        replica.replayed = end;
        has_replayed
    }

    /// A standby begins serving, or stops.
    pub fn toggle(&mut self, index: usize) {
        self.all[index].serves ^= true;
        self.epoch += 1;
    }

    /// A standby restarts, and has to replay this number of changes again. Its connections are lost.
    pub fn restart(&mut self, index: usize, primary: &Database, lost: usize) {
        let replica = &mut self.all[index];
        replica.replayed = replica.replayed.saturating_sub(lost);
        replica.database.rows = primary.log[..replica.replayed].iter().copied().collect();
    }

    /// Whether a standby has replayed the WAL up to this position.
    pub fn has(&self, index: usize, position: Position) -> bool {
        self.all[index].replayed as u64 >= position.0
    }

    /// A connection to a standby is there. Returns its number.
    pub fn connected(&mut self) -> u64 {
        self.connections += 1;
        self.connections
    }

    /// The next step of a search, or its result. `patience` is whether the session waits longer.
    pub fn seek(
        &mut self,
        search: Search,
        primary: &Database,
        turn: usize,
        patience: bool,
    ) -> Result<Search, Option<LsnBound>> {
        let (epoch, target) = match search {
            Search::Asks { epoch } => {
                self.questions += 1;
                let target = Position(primary.log.len() as u64);
                return Ok(Search::Waits { epoch, target });
            }
            Search::Waits { epoch, target } => (epoch, target),
        };
        let candidate = |replica: &SimReplica| KnownReplica {
            serves: replica.serves,
            replayed: Position(replica.replayed as u64),
        };
        let candidates: Vec<_> = self.all.iter().map(candidate).collect();
        match replica::choose(&candidates, target, turn) {
            Choice::Replica(index) => Err(Some(LsnBound::at(index, STARTED, target, epoch))),
            Choice::Wait if patience => Ok(search),
            Choice::Wait | Choice::Primary => Err(None),
        }
    }
}

/// A row that only a client outside of the gateway changes. Its values are greater than those of all others.
pub const SHARED_ROW: u64 = 999;
pub const SHARED_FIRST: i64 = 1_000_000;

impl Database {
    pub fn value(&self, row: u64) -> i64 {
        let first = if row == SHARED_ROW { SHARED_FIRST } else { 0 };
        self.rows.get(&row).copied().unwrap_or(first)
    }

    /// A client outside of the gateway commits this value of a row.
    pub fn set(&mut self, row: u64, value: i64) {
        self.rows.insert(row, value);
        self.log.push((row, value));
    }

    /// The client outside changes its row.
    pub fn change_shared_row(&mut self) {
        self.set(SHARED_ROW, self.value(SHARED_ROW) + 1);
    }
}

impl World {
    /// A standby replays more, stops serving or begins again, loses a connection, or restarts. False if it has nothing to
    /// replay.
    pub(super) fn replica_turn(&mut self) -> bool {
        let index = self.random.usize(..REPLICAS);
        if self.restarts > 0 && self.random.u8(..8) == 0 {
            self.restarts -= 1;
            let kind = self.random.u8(..3);
            if kind == 0 {
                self.shared.replicas.borrow_mut().toggle(index);
                return true;
            }
            if kind == 1 {
                let longest = if self.random.bool() { 3 } else { self.database.log.len() };
                let lost = self.random.usize(..=longest);
                self.shared.replicas.borrow_mut().restart(index, &self.database, lost);
            }
            let mut nowhere = Database::default();
            for lane in self.lanes.iter_mut().filter(|lane| lane.is_of_replica(index)) {
                lane.cut(false, &mut nowhere, &self.shared);
            }
            return true;
        }
        // Replay is slow, so sessions often commit and read before it. At times it catches up.
        let changes = match self.random.u8(..16) {
            0..2 => self.random.usize(1..4),
            2 => usize::MAX,
            _ => return false,
        };
        self.shared.replicas.borrow_mut().replay(index, &self.database, changes)
    }

    /// A session that waits for a replica gets one, or does not wait any longer.
    pub(super) fn seek(&mut self, number: usize, search: Search) {
        let (turn, patience) = (self.random.usize(..REPLICAS), self.random.u8(..64) > 0);
        let next = self.shared.replicas.borrow_mut().seek(search, &self.database, turn, patience);
        let client = &mut self.clients[number];
        match next {
            Ok(search) => client.wait = Some(Wait::Replica(search)),
            Err(found) => {
                client.cancel.borrow_mut().wait_over();
                client.session.replica_found(found);
            }
        }
    }
}

/// What a batch on this connection must find replayed. None if the connection may belong to a later life of the standby than
/// the one that a session has read from.
pub fn position<'e>(
    envelopes: impl Iterator<Item = &'e SimEnvelope> + Clone,
    connection: u64,
) -> Option<Position> {
    let mut bounds = envelopes.clone().map(|envelope| envelope.lsn_bound);
    let is_allowed = bounds.all(|bound| bound.is_some_and(|bound| bound.allows(connection)));
    envelopes
        .filter_map(|envelope| envelope.lsn_bound)
        .map(|bound| bound.position)
        .max()
        .filter(|_| is_allowed)
}
