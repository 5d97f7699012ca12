//! Workloads for the simulator: small ones by hand and random ones from a seed. They do not depend on internals of
//! lanes.

use fastrand::Rng;
use hotrow_lane::key::Key;
use hotrow_lane::lane::{LaneKind, Merge};

use super::history::Work;
use super::model::Statement;
use super::world::World;

/// Row `hash` of table 1.
pub fn row(hash: u64) -> Key {
    Key { table: 1, hash }
}

/// A unit with the key of its row and no special properties.
pub fn plain(session: usize, statement: Statement) -> Work {
    let kind = if matches!(statement, Statement::Read { .. }) { LaneKind::Read } else { LaneKind::Write };
    Work {
        session,
        statement,
        key: statement.row(),
        kind,
        rows_per_commit: 128,
        merge: None,
        bytes: 100,
        takes_any: false,
        then: None,
    }
}

/// One gateway with one lane for writes and one for reads, and a session for each list. All units of a
/// session are under way at one time.
pub fn small(sessions: &[&[Statement]]) -> World {
    let mut world = World::default();
    let gateway = world.add_gateway(1);
    for units in sessions {
        let session = world.add_session(gateway, units.len());
        for statement in *units {
            world.add_unit(plain(session, *statement));
        }
    }
    world
}

fn rows_per_commit(row: Key) -> u16 {
    [128, 2, 16, 64][row.hash as usize % 4]
}

/// The parameters of random worlds.
#[derive(Debug)]
pub struct Random {
    pub rng: Rng,
    pub rows: Vec<Key>,
    /// Percentage of units that can fail.
    failures: u8,
    depth: usize,
    /// Statements on table 2 are calls of a function with a merge rule. This number of them can become one.
    most: Option<u16>,
    /// An error undoes its statement only. Then each unit is one statement that is not merged.
    undoes_statements: bool,
}

impl Random {
    /// Draws the rows. If no unit can fail, the whole workload has no faults.
    pub fn new(mut rng: Rng, calm: bool) -> Self {
        let rows = (0..rng.u64(1..8)).map(|hash| Key { table: 1 + rng.u32(..2), hash }).collect();
        let failures = if calm { 0 } else { rng.u8(..20) };
        let depth = if calm { 1 } else { rng.usize(1..8) };
        let most = [None, Some(3), Some(256)][rng.usize(..3)];
        Random { rng, rows, failures, depth, most, undoes_statements: false }
    }

    /// The server is one on which an error undoes its statement only.
    pub fn undo_statements(&mut self) {
        (self.most, self.undoes_statements) = (None, true);
    }

    /// Draws gateways, lanes, sessions and units.
    pub fn world(&mut self, calm: bool) -> World {
        let mut world = World::default();
        // Few units in one lane leave no room for a second batch. Many units in one lane create one
        // continually.
        let (gateways, lanes, sessions) = match self.rng.u8(..8) {
            0 => (1, 1, 80..140),
            1 if !calm => (2, 1, 60..90),
            _ if calm => (1, self.rng.usize(1..3), 2..10),
            _ => (self.rng.usize(1..3), self.rng.usize(1..3), 2..10),
        };
        for _ in 0..gateways {
            world.add_gateway(lanes);
        }
        let sessions = self.rng.usize(sessions);
        let most = if sessions < 10 { 8 } else { 3 };
        for _ in 0..sessions {
            let gateway = self.rng.usize(..gateways);
            let session = world.add_session(gateway, self.depth);
            for _ in 0..self.rng.usize(1..most) {
                let work = self.work(session);
                let unit = world.add_unit(work);
                let is_harmless = matches!(work.statement, Statement::Add { .. } | Statement::Insert { .. });
                let is_single = work.merge.is_none_or(|merge| merge == Merge::NEVER);
                if is_harmless && is_single && !self.undoes_statements && self.rng.u8(..5) == 0 {
                    let second = self.harmless(session);
                    world.add_second(unit, second);
                }
            }
        }
        world.history.calm = calm;
        world.marks = self.rng.bool();
        world.undoes_statements = self.undoes_statements;
        world.elsewhere = !calm && !self.undoes_statements && self.rng.u8(..8) == 0;
        world
    }

    /// A statement that does not fail by itself. Otherwise the result of the first of two statements would
    /// not be reported.
    fn harmless(&mut self, session: usize) -> Work {
        let row = self.rows[self.rng.usize(..self.rows.len())];
        let n = self.rng.i64(-2..3);
        let statement = if n == 0 { Statement::Read { row } } else { Statement::Add { row, n } };
        let is_call = self.most.is_some() && row.table == 2;
        let merge = is_call.then_some(Merge::NEVER);
        Work { rows_per_commit: rows_per_commit(row), merge, ..plain(session, statement) }
    }

    fn work(&mut self, session: usize) -> Work {
        let row = self.rows[self.rng.usize(..self.rows.len())];
        let n = self.rng.i64(-2..3);
        let statement = if self.rng.u8(..100) < self.failures {
            match self.rng.u8(..10) {
                0..2 => Statement::Poison,
                2 => Statement::Kill,
                3..6 => Statement::Demand { row, n: n - 2 },
                6..8 => Statement::Slow { row, n },
                _ => Statement::Defer { row, n: n - 1 },
            }
        } else {
            match self.rng.u8(..10) {
                0 => Statement::Insert { table: row.table },
                1 => Statement::Read { row },
                _ => Statement::Add { row, n },
            }
        };
        let mut work = plain(session, statement);
        work.rows_per_commit = rows_per_commit(row);
        match self.rng.u8(..20) {
            0 => work.bytes = 60_000,
            1 if self.failures > 0 => work.key = None,
            // The same row by another unique index. Two keys for one row must do no harm.
            2 if self.failures > 0 => {
                work.key = Some(Key { hash: row.hash + 100, ..row });
            }
            3 if self.failures > 0 => {
                work.key = Some(Key { hash: 200, ..row });
                work.takes_any = true;
                work.rows_per_commit = 128;
            }
            _ if matches!(statement, Statement::Poison | Statement::Kill) => work.key = Some(row),
            _ => {}
        }
        if let Some(most) = self.most
            && work.kind == LaneKind::Write
            && work.key.is_some_and(|key| key.table == 2)
        {
            let group = self.rng.u64(1..10) / 4; // the first number belongs to Merge::NEVER
            work.merge = Some(if group == 0 { Merge::NEVER } else { Merge { group, most } });
        }
        work
    }
}
