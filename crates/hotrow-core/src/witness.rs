//! Decides which of a server's statements about a transaction in doubt are believed, by comparing the server that answers
//! with the one that was sent the transaction. Never asks; the gateway does.
//!
//! A transaction's id means nothing by itself. After a crash or a failover, ids of transactions that did not reach the log
//! (or the standby) are given out again, so that *committed* may be said of another transaction. *Aborted*, and an id from
//! the future, deny that the id was ever committed in this server's history; but another cluster's history says nothing of
//! ours, and neither does a standby that has not yet replayed all it will.
//!
//! A server's life begins with a checkpoint of its own, whose next id is the first one that the life gives out. Compared
//! with that id:
//! - An id at or above it was lost with the old life's log, or its status would be known: rolled back, whatever the status
//!   says of the transaction that has the id now.
//! - *Committed* below it is not proof. If the server crashed twice, the life in between may have given the id out again,
//!   and nothing that the server shows says how often it crashed.
//! - A batch whose id did not arrive has some id between the last one of its connection and the first one of the new life.
//!   If no id in between is committed, neither is the batch, however many lives lie in between.
//!
//! A mark closes the gap. It is a sequence that one connection of one lane writes: each batch sets it to the transaction's id,
//! after all that the batch writes. A sequence is not rolled back, and recovery keeps its record exactly if it keeps the log up
//! to there. A later connection finds the same mark only if the earlier connection's backend has ended. Then:
//! - A mark at or above an id proves that the id was logged before a crash. No later life has given it out again, and its
//!   status is the batch's.
//! - A mark that still is the last known id proves that a batch whose id did not arrive ended before its commit, or that its
//!   commit was not logged: rolled back.
//!
//! A mark below an id that the lane knows proves nothing. The client's role may have set it back, for example with a script
//! that resets all sequences.

use std::ops::Range;

use crate::lane::{Doubt, Outcome};
use crate::limits;

/// A server as it was when a connection was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Changes with each start, and when the server restarts its own children after a crash.
    pub life: String,
    /// The cluster's identifier, which its standbys share; none where the role may not know it.
    pub cluster: Option<String>,
    /// Where its log stood; none where the role may not know it.
    pub log: Option<Log>,
    /// The lane's mark; none where the schema pack is not installed for the role.
    pub mark: Option<Mark>,
}

/// A lane's mark as a connection found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its sequence and the number of its owner. If two connections have the same, the backend of the first had ended before the
    /// second had it, and nobody had it in between.
    pub name: String,
    /// The id of the last batch that has set it; 0 if none has.
    pub at: u64,
}

/// What the connection's first look at the log showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// Where the last checkpoint was written.
    pub checkpoint: u64,
    /// The first id that this life gives out; none if the last checkpoint is not the one that began it.
    pub first_id: Option<u64>,
    /// No transaction of the connection has a smaller id.
    pub next_id: u64,
}

/// What binds the server that answers to the one that was sent the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// It is the same one, and has not crashed since.
    SameLife,
    /// It has the same history up to some point: the same one after a crash, or a standby that was promoted.
    SameCluster {
        /// The first id of its life, if that life is known to have begun after the connection was made.
        first_id: Option<u64>,
    },
    /// It has the same history, and the lane's mark proves that the transaction's id was logged in it.
    Logged,
    /// It is the same one or has the same history, and the lane's mark proves that the transaction, whose id did not arrive, did
    /// not commit in it.
    NotLogged,
    /// It may be anything.
    None,
}

impl Continuity {
    /// Between the server before and the one now, for a transaction in doubt.
    pub fn for_doubt(doubt: Doubt, before: Option<&Server>, now: Option<&Server>) -> Self {
        let continuity = Self::between(before, now);
        match (continuity, doubt, is_marked(doubt, before, now)) {
            (Continuity::SameCluster { .. }, Doubt::Id(_), Some(true)) => Continuity::Logged,
            (Continuity::SameCluster { .. } | Continuity::SameLife, Doubt::IdAfter(_), Some(false)) => {
                Continuity::NotLogged
            }
            _ => continuity,
        }
    }

    /// Between the server before and the one now.
    pub fn between(before: Option<&Server>, now: Option<&Server>) -> Self {
        let (Some(before), Some(now)) = (before, now) else { return Continuity::None };
        match before.cluster == now.cluster {
            true if before.life == now.life => Continuity::SameLife,
            true if before.cluster.is_some() => {
                Continuity::SameCluster { first_id: first_id_since(before, now) }
            }
            _ => Continuity::None,
        }
    }
}

/// While a life lasts it writes no checkpoint like the one that began it. So one that was written after the connection was
/// made has begun a new life, and all transactions of the old one have ended.
fn first_id_since(before: &Server, now: &Server) -> Option<u64> {
    let (before, now) = (before.log?, now.log?);
    now.first_id.filter(|_| before.checkpoint < now.checkpoint)
}

/// Whether a transaction in doubt has set its lane's mark; none if that can't be told.
fn is_marked(doubt: Doubt, before: Option<&Server>, now: Option<&Server>) -> Option<bool> {
    let (before, now) = (before?.mark.as_ref()?, now?.mark.as_ref()?);
    let is_marked = match doubt {
        Doubt::Id(id) => (now.at >= id).then_some(true),
        Doubt::IdAfter(last) => (now.at == last.unwrap_or_default().max(before.at)).then_some(false),
    };
    is_marked.filter(|_| before.name == now.name)
}

/// What has to be asked about a transaction in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// What became of this id.
    Status(u64),
    /// Whether any of these ids may be committed.
    AnyCommitted(Range<u64>),
    /// Nothing: this is the outcome.
    Nothing(Outcome),
}

/// What to ask about a batch that was sent to the server `before`.
pub fn question(doubt: Doubt, before: Option<&Server>, continuity: Continuity) -> Question {
    if continuity == Continuity::NotLogged {
        return Question::Nothing(Outcome::Aborted);
    }
    let after = match doubt {
        Doubt::Id(id) => return Question::Status(id),
        Doubt::IdAfter(last) => last.map(|last| last + 1),
    };
    let (Continuity::SameCluster { first_id: Some(to) }, Some(log)) =
        (continuity, before.and_then(|before| before.log))
    else {
        return Question::Nothing(Outcome::Unknown);
    };
    let from = after.unwrap_or(log.next_id).max(log.next_id).min(to);
    if to - from > limits::DOUBT_IDS_MAX {
        Question::Nothing(Outcome::Unknown)
    } else {
        Question::AnyCommitted(from..to)
    }
}

/// What a server said of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XactStatus {
    /// It is committed.
    Committed,
    /// It is rolled back.
    Aborted,
    /// It is not done yet.
    InProgress,
    /// It has not been given out yet.
    NotGivenOut,
    /// It is too old to be known.
    Forgotten,
    /// The server replays another's log, and does not know yet what it will know.
    InRecovery,
}

/// What is believed of this id; none if it has to be asked again.
pub fn believe(id: u64, status: XactStatus, continuity: Continuity) -> Option<Outcome> {
    match (status, continuity) {
        (XactStatus::InRecovery, _) => None,
        (_, Continuity::SameCluster { first_id: Some(first) }) if id >= first => Some(Outcome::Aborted),
        (XactStatus::InProgress, _) => None,
        (XactStatus::Committed, Continuity::SameLife | Continuity::Logged) => Some(Outcome::Committed),
        (
            XactStatus::Aborted | XactStatus::NotGivenOut,
            Continuity::SameLife | Continuity::SameCluster { .. } | Continuity::Logged,
        ) => Some(Outcome::Aborted),
        _ => Some(Outcome::Unknown),
    }
}

/// What is believed of a batch that had one of the ids of [`Question::AnyCommitted`].
pub fn believe_none_committed(none_is_committed: bool) -> Outcome {
    if none_is_committed { Outcome::Aborted } else { Outcome::Unknown }
}

#[cfg(test)]
#[path = "witness_tests.rs"]
mod tests;
