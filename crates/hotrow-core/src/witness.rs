//! Decides which answers of a server about a transaction in doubt can be trusted, by comparing the server
//! that answers with the server that got the transaction. The gateway sends the queries.
//!
//! A transaction ID means nothing by itself. After a crash or a failover, IDs of transactions that did not
//! reach the WAL (or the standby) are assigned again, and *committed* can refer to another transaction.
//! *Aborted*, and an ID from the future, prove that the ID was never committed in this server's history. They
//! prove nothing about another cluster's history, or about a standby that has not replayed all of its WAL.
//!
//! A server's life begins with its own checkpoint. The next ID in that checkpoint is the first ID that the
//! life assigns. Compared with that first ID:
//!
//! - An ID at or above it was lost with the old life's WAL, or its status would be known. The transaction was
//!   rolled back, whatever the status of the transaction that has the ID now.
//! - *Committed* below it is not proof. If the server crashed twice, the life in between may have assigned
//!   the ID again, and the server does not show how often it crashed.
//! - A batch whose ID did not arrive has an ID between the last one of its connection and the first one of
//!   the new life. If no ID in this range is committed, the batch is not committed either, regardless of the
//!   number of lives in between.
//!
//! A mark closes the gap. It is a sequence in which one connection of one lane records its batches: each batch sets
//! it to the connection's secret number plus the transaction's ID, after all its other writes and before its
//! commit. A later connection gets the same mark only after the earlier connection's backend has ended on the
//! server that it asks. A sequence is not rolled back, and recovery keeps its record if and only if it keeps the
//! WAL up to there. Whether a value proves anything depends on which values a mark can have at that time, and on
//! who has set them:
//!
//! - The connection itself: its start value when it took the mark, then one value per batch, in increasing order.
//!   If a server shows such a value, its history contains the WAL of the connection's server up to the record of
//!   that value. It does not matter whether it is the same server after crashes, a promoted standby, or one
//!   that was restored from a physical copy: all of them replay that WAL.
//! - Another connection of this gateway or of another one, in any cluster, before or after: it has another secret
//!   number. Dumps and restored databases have only such values, and so do marks that an old gateway has set to bare
//!   transaction IDs.
//! - Any other role that can set the sequence, for example with a script that resets all sequences: it does not
//!   know the secret number, which is sent only as a parameter and cannot be read from the sequence, because the
//!   hotrow schema's marks reject nextval. The value can be below or above all IDs, and hit the 2^20 values that would prove
//!   something by accident only: there are 2^61 secret numbers.
//!
//! What is left is a copy of one of the connection's own values that is read before the crash and set again
//! after it. Only a dump that is taken and restored into the same cluster while the commit is in doubt would do this.
//!
//! From a value of the connection itself follows:
//!
//! - If it belongs to an ID at or above that of a batch, that ID was assigned in the history that the server
//!   shows, before the value's record. No later life has assigned it again, and its status is the batch's status.
//! - If it is the value before the batch, the batch's own value is not in that history, and neither is its
//!   commit, which follows it. The backend has ended, so the batch does not commit later. It was rolled back.
//!
//! Any other value proves nothing: it can have replaced every value that the connection has set.

use std::fmt;
use std::ops::Range;

use hotrow_lane::lane::{Doubt, Outcome};

use crate::limits;

/// A server at the time a connection was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Changes with each start, and when the server restarts its processes after a crash.
    pub life: String,
    /// The cluster's identifier, which its standbys share. `None` if the role cannot read it.
    pub cluster: Option<String>,
    /// The position of its WAL. `None` if the role cannot read it.
    pub log: Option<Log>,
    /// The lane's mark. `None` if the hotrow schema is not installed for the role.
    pub mark: Option<Mark>,
    /// A transaction here can have parts on other servers, which commit before it (Citus).
    pub has_parts: bool,
}

/// A lane's mark when a connection took it.
#[derive(Clone, PartialEq, Eq)]
pub struct Mark {
    /// Its sequence and the number of its owner. If two connections have the same name, the backend of the
    /// first had ended before the second took the mark, and no other backend had it in between.
    pub name: String,
    /// The backend of the connection. Its lock of the mark does not prove that it lives, because a function that a batch
    /// calls can release it.
    pub backend: String,
    /// The secret number of the connection. A batch sets the mark to this number plus its transaction's ID.
    pub base: u64,
    /// The value that the connection found, 0 if none was set.
    pub found: u64,
    /// The value before the connection's first batch. No other connection and no script can set it.
    pub start: u64,
}

impl Mark {
    /// The mark that a connection has just taken. `earlier` is the mark of the lane's connection before. Its last
    /// value stays, because a third connection may need it for a commit that is in doubt. Every other value is
    /// replaced by one of this connection's own.
    pub fn taken(name: String, backend: String, found: u64, base: u64, earlier: Option<&Mark>) -> Self {
        let is_earlier = |earlier: &Mark| earlier.name == name && earlier.can_have_set(found);
        let start = if earlier.is_some_and(is_earlier) { found } else { base };
        Mark { name, backend, base, found, start }
    }

    /// A secret number from 64 random bits. The sum with an ID is a valid value of a sequence, and above all bare IDs.
    pub fn base(random: u64) -> u64 {
        random >> 3 | 1 << 61
    }

    /// The sequence, as `regclass` reads it.
    pub fn sequence(&self) -> &str {
        self.name.split_once('/').map_or(&*self.name, |(sequence, _)| sequence)
    }

    /// The key of the advisory lock that holds it.
    pub fn lock(&self) -> &str {
        self.sequence().rsplit_once('_').map_or("", |(_, key)| key)
    }

    fn can_have_set(&self, value: u64) -> bool {
        value == self.start || (self.base..self.base + limits::MARK_ID_MAX).contains(&value)
    }
}

/// Without the secret number, and without values from which it could be computed.
impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mark").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The WAL when the connection first looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// The position of the last checkpoint.
    pub checkpoint: u64,
    /// The first ID that this life assigns. `None` if the last checkpoint is not the one that began the life.
    pub first_id: Option<u64>,
    /// All transactions of the connection have this ID or a greater one.
    pub next_id: u64,
}

/// The relation between the server that answers and the server that got the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// It is the same server and has not crashed since.
    SameLife,
    /// They share their history up to some point: the same server after a crash, or a promoted standby.
    SameCluster {
        /// The first ID of its life, if that life is known to have begun after the connection was made.
        first_id: Option<u64>,
    },
    /// They share their history, and the lane's mark proves that the transaction's ID was logged in it.
    Logged,
    /// It is the same server or shares its history. The lane's mark proves that the transaction, whose ID did
    /// not arrive, did not commit in it.
    NotLogged,
    /// Unknown.
    None,
}

impl Continuity {
    /// The relation between the server before and the server now, for a transaction in doubt.
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

    /// The relation between the server before and the server now.
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

/// During a life, the server writes no checkpoint like the one that began it. Such a checkpoint after the
/// connection was made therefore began a new life, and all transactions of the old life have ended.
fn first_id_since(before: &Server, now: &Server) -> Option<u64> {
    let (before, now) = (before.log?, now.log?);
    now.first_id.filter(|_| before.checkpoint < now.checkpoint)
}

/// Whether a transaction in doubt has set its lane's mark in the history that the server shows. `None` if this cannot be
/// decided. The proof is at the beginning of this file.
fn is_marked(doubt: Doubt, before: Option<&Server>, now: Option<&Server>) -> Option<bool> {
    let (before, now) = (before?.mark.as_ref()?, now?.mark.as_ref()?);
    let is_marked = match doubt {
        Doubt::Id(id) => {
            // The batch's own value, or that of a batch that followed it on the same connection.
            let own = before.base + id;
            (own..=own + limits::MARK_IDS_AHEAD_MAX).contains(&now.found).then_some(true)
        }
        Doubt::IdAfter(last) => {
            (now.found == last.map_or(before.start, |last| before.base + last)).then_some(false)
        }
    };
    is_marked.filter(|_| before.name == now.name)
}

/// The query that a transaction in doubt needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The status of this ID.
    Status(u64),
    /// Whether any of these IDs can be committed.
    AnyCommitted(Range<u64>),
    /// No query. This is the outcome.
    Nothing(Outcome),
}

/// The query about a batch that was sent to the server `before`.
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

/// A server's answer about a transaction ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XactStatus {
    Committed,
    /// It is rolled back.
    Aborted,
    /// It is not done yet.
    InProgress,
    /// It has not been assigned.
    NotGivenOut,
    /// It is too old. The server no longer knows its status.
    Forgotten,
    /// The server replays another server's WAL, and its answer can still change.
    InRecovery,
}

/// Whether a transaction that this server has rolled back has left nothing on other servers. No batch that changes rows there
/// reaches its COMMIT: its check finds the table distributed, and a function that could do so unseen is not merged. If the
/// server has crashed, this is not relied on.
pub fn rolls_back_all(server: Option<&Server>, continuity: Continuity) -> bool {
    continuity == Continuity::SameLife || server.is_some_and(|server| !server.has_parts)
}

/// The outcome to trust for this ID. `None` if the query must be repeated.
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

/// The outcome to trust for a batch with one of the IDs of [`Question::AnyCommitted`].
pub fn believe_none_committed(none_is_committed: bool) -> Outcome {
    if none_is_committed { Outcome::Aborted } else { Outcome::Unknown }
}

#[cfg(test)]
mod tests;
