//! What happened in a run, as plain data: what was wanted, what became durable, what was told, and what the shell
//! had seen when it was told. Judges nothing.

use std::collections::BTreeSet;

use super::model::{Reply, Statement};
use super::server::{Entry, Seen, Txn};
use crate::key::Key;
use crate::lane::{Claim, LaneKind, Merge, Outcome, Refusal};

/// A unit as its client means it, or the second statement of one. Units of a session are in its order.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub session: usize,
    pub statement: Statement,
    pub key: Option<Key>,
    pub kind: LaneKind,
    pub rows_per_commit: u16,
    pub merge: Option<Merge>,
    pub bytes: usize,
    /// The second statement of a unit of two, which has a number of its own.
    pub then: Option<usize>,
}

impl Work {
    /// Whether its row can be locked before it runs: not that of a call, and only by the key it is known by.
    pub fn is_lockable(&self) -> bool {
        let changes = matches!(self.statement, Statement::Add { .. } | Statement::Demand { .. });
        changes && self.merge.is_none() && self.key == self.statement.row()
    }
}

/// All that was delivered about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub kind: LaneKind,
    pub written: bool,
    pub xid: Option<Option<u64>>,
    /// The server has crashed since the batch was sent.
    pub crashed: bool,
    pub failed: bool,
    pub ready: bool,
    pub resolved: Option<Outcome>,
    /// Nobody could be asked any more.
    pub gave_up: bool,
}

impl Evidence {
    pub fn none(kind: LaneKind) -> Self {
        Evidence {
            kind,
            written: false,
            xid: None,
            crashed: false,
            failed: false,
            ready: false,
            resolved: None,
            gave_up: false,
        }
    }
}

/// A batch that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub lane: usize,
    pub number: u64,
    pub units: Vec<usize>,
    /// How many units each of its calls stands for.
    pub calls: Vec<usize>,
    /// The rows it locks before anything runs.
    pub ahead: Vec<Key>,
    /// Batches of the lane under way, this one included.
    pub under_way: usize,
    /// Whether the server was committing the one before it.
    pub behind_commit: bool,
    pub replies: Vec<(Txn, Reply)>,
    pub evidence: Evidence,
}

/// What a client was told of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The server's answer, with the transaction that gave it.
    Answered(Txn, Reply),
    /// The lane said that there was an answer, and there is none.
    Nothing,
    Refused(Refusal),
    /// Nothing, for the client had left.
    Left,
}

#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub unit: usize,
    pub fate: Fate,
    /// How long the log was.
    pub log: usize,
    /// What was known of the batch the unit was last sent in, unless it ran alone.
    pub evidence: Option<Evidence>,
}

#[derive(Debug, Default)]
pub struct History {
    pub units: Vec<Work>,
    pub log: Vec<Entry>,
    pub seen: Vec<Seen>,
    pub told: Vec<Told>,
    pub batches: Vec<Sent>,
    /// Units that were run again or on their own after they had been in a batch, with what was known of that.
    pub again: Vec<(usize, Evidence)>,
    /// Units in the order in which lanes got them first.
    pub submitted: Vec<usize>,
    /// Sessions whose client wanted something cancelled.
    pub cancels: BTreeSet<usize>,
    /// Somebody stopped waiting for the server.
    pub gave_up: bool,
    /// Nothing failed, nothing was lost, and no session had two units on their way.
    pub calm: bool,
    /// Units that waited in a lane for a lock of an outsider's when nothing else moved.
    pub parked: usize,
    /// Units that moved on from a lane whose batch took long.
    pub moved: usize,
    /// Units that left a lane because they took too long there.
    pub too_slow: usize,
    /// Lanes that were told to pause and came to rest.
    pub paused: usize,
    /// What went wrong while it ran.
    pub complaints: Vec<String>,
}

impl History {
    /// The numbers of a unit's statements.
    pub fn parts(&self, unit: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        [Some(unit), self.units[unit].then].into_iter().flatten()
    }

    /// The rows that a unit is known to contend for, by statement.
    pub fn claims(&self, unit: usize) -> Vec<Claim> {
        let claim = |(statement, part): (usize, usize)| {
            let Work { key, rows_per_commit, merge, .. } = self.units[part];
            Some(Claim {
                key: key?,
                statement: statement as u16,
                rows_per_commit,
                in_key_space: merge.is_some(),
                lockable: self.units[part].is_lockable(),
            })
        };
        self.parts(unit).enumerate().filter_map(claim).collect()
    }

    /// The key by which it is sorted.
    pub fn least_key(&self, unit: usize) -> Option<Key> {
        self.claims(unit).iter().map(|claim| claim.key).min()
    }
}
