//! The history of a run as plain data: requests, commits, answers, and the state of the lane's I/O at each
//! answer. It checks nothing.

use std::collections::BTreeSet;

use hotrow_lane::key::Key;
use hotrow_lane::lane::{Changes, Claim, LaneKind, Merge, Outcome, Refusal};

use super::model::{Reply, Statement};
use super::server::{Entry, Seen, Txn};

/// A unit of a client, or the second statement of one. Units of a session are in its order.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub session: usize,
    pub statement: Statement,
    pub key: Option<Key>,
    pub kind: LaneKind,
    pub rows_per_commit: u16,
    pub merge: Option<Merge>,
    pub bytes: usize,
    /// Its key stands for several rows, of which it takes any that nobody has locked.
    pub takes_any: bool,
    /// The second statement of a unit of two statements. It has its own number.
    pub then: Option<usize>,
}

impl Work {
    /// Where an error undoes its statement only, it can fail without the others of its batch.
    pub fn may_leave(&self) -> bool {
        self.merge.is_none() && self.then.is_none()
    }

    /// Whether its row can be locked before it runs. A call's row cannot, and other rows only by their known
    /// key.
    pub fn is_lockable(&self) -> bool {
        let changes = matches!(self.statement, Statement::Add { .. } | Statement::Demand { .. });
        changes && self.merge.is_none() && self.key == self.statement.row()
    }
}

/// Everything that was received about a batch.
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
    /// The outcome could no longer be asked for.
    pub gave_up: bool,
    /// The changes that the replies have shown.
    pub changes: Changes,
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
            changes: Changes::None,
        }
    }
}

/// A batch that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub lane: usize,
    pub number: u64,
    pub units: Vec<usize>,
    /// Number of units in each of its calls.
    pub calls: Vec<usize>,
    /// The rows that it locks before anything runs.
    pub ahead: Vec<Key>,
    /// Batches of the lane under way, including this one.
    pub under_way: usize,
    /// Whether the server was committing the previous batch.
    pub behind_commit: bool,
    pub replies: Vec<(Txn, Reply)>,
    pub evidence: Evidence,
}

/// The answer to a unit's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The server's answer, with the transaction that produced it.
    Answered(Txn, Reply),
    /// The lane reported an answer, and there is none.
    Nothing,
    Refused(Refusal),
    /// None, because the client had left.
    Left,
}

#[derive(Clone, Copy, Debug)]
pub struct UnitOutcome {
    pub unit: usize,
    pub fate: Fate,
    /// The length of the log.
    pub log: usize,
    /// The evidence about the unit's last batch, unless the unit ran alone.
    pub evidence: Option<Evidence>,
}

#[derive(Debug, Default)]
pub struct History {
    pub units: Vec<Work>,
    pub log: Vec<Entry>,
    pub seen: Vec<Seen>,
    pub outcomes: Vec<UnitOutcome>,
    pub batches: Vec<Sent>,
    /// Units that ran again or alone after they had been in a batch, with the evidence at that time.
    pub again: Vec<(usize, Evidence)>,
    /// Units that failed without the others of their batch, each with the index of the batch.
    pub left: BTreeSet<(usize, usize)>,
    /// Units in the order of their first arrival in lanes.
    pub submitted: Vec<usize>,
    /// Sessions whose client cancelled a unit.
    pub cancels: BTreeSet<usize>,
    /// A lane gave up waiting for the server.
    pub gave_up: bool,
    /// Nothing failed, nothing was lost, and no session had two units under way.
    pub calm: bool,
    /// Units that waited in a lane for an outsider's lock when nothing else could move.
    pub parked: usize,
    /// Units that left a lane because its batch took long.
    pub moved: usize,
    /// Units that left a lane because they took too long there.
    pub too_slow: usize,
    /// Lanes that were paused and reached rest.
    pub paused: usize,
    /// Batches that lanes held back.
    pub held: usize,
    /// Errors during the run.
    pub complaints: Vec<String>,
}

impl History {
    /// The numbers of a unit's statements.
    pub fn parts(&self, unit: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        [Some(unit), self.units[unit].then].into_iter().flatten()
    }

    /// The index of the unit to which this part of a batch belongs.
    pub fn place(&self, units: &[usize], part: usize) -> usize {
        let mut owners =
            units.iter().enumerate().flat_map(|(place, unit)| self.parts(*unit).map(move |_| place));
        owners.nth(part).expect("the batch has the part")
    }

    /// The rows for which a unit is known to contend, by statement.
    pub fn claims(&self, unit: usize) -> Vec<Claim> {
        let claim = |(statement, part): (usize, usize)| {
            let Work { key, rows_per_commit, merge, takes_any, .. } = self.units[part];
            Some(Claim {
                key: key?,
                statement: statement as u16,
                rows_per_commit,
                in_key_space: merge.is_some(),
                lockable: self.units[part].is_lockable(),
                takes_any,
            })
        };
        self.parts(unit).enumerate().filter_map(claim).collect()
    }

    /// The key by which it is sorted.
    pub fn least_key(&self, unit: usize) -> Option<Key> {
        self.claims(unit).iter().map(|claim| claim.key).min()
    }
}
