//! A lane's view of a unit: its rows, the calls with which it can be merged, and its history. The unit's
//! bytes are not here.

use super::Failure;
use crate::key::Key;

/// Work that one client must see as one transaction, with the data that the lane needs.
#[derive(Debug)]
pub struct Unit<P> {
    /// The unit's session. Units of one session keep their order.
    pub session: u64,
    /// All earlier units of the session are done. If a session got a unit back (to run it alone, or to submit
    /// it again), the lane returns all its later units until a unit with this flag arrives: units that the
    /// session sent in the meantime would overtake the returned one. While a session handles a returned unit
    /// and has other units under way, it must send no new unit. A unit that it sent earlier may not have
    /// reached the lane, which then returns it too.
    pub first: bool,
    /// What it contends for.
    pub claimed: Claimed,
    /// It has found nothing before, and has waited since.
    pub has_waited: bool,
    /// The statement that failed last, for a unit of several statements.
    pub at_fault: u16,
    /// A merged call with it has failed: from now on it is a call of its own.
    pub is_single: bool,
    /// The size of its reply is unknown. It runs in a batch of its own: replies to writes are buffered until
    /// the commit, and many large ones would fill the memory.
    pub unmeasured: bool,
    /// Number of connections that were lost while it was under way.
    pub losses: u8,
    /// Number of batches that were rolled back because another unit failed.
    pub reruns: u8,
    /// Its client cancelled it while the server was running it.
    pub cancelled: bool,
    /// Why it leaves the lane, if it does.
    pub leaving: Leaving,
    /// The data that the I/O needs to send it and to answer it.
    pub payload: P,
}

/// Why a unit leaves the lane to run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It has failed, or the commit has and the unit may be the reason.
    Failed,
    /// An outsider holds a lock.
    Blocked,
    /// It took too long.
    TooSlow,
    /// What it relies on has changed. It did not fail.
    Changed,
}

impl From<Failure> for Leaving {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Blocked | Failure::TableBlocked => Leaving::Blocked,
            Failure::TooSlow => Leaving::TooSlow,
            Failure::Changed => Leaving::Changed,
            Failure::Error | Failure::Uncertain | Failure::Stale | Failure::Behind => Leaving::Failed,
        }
    }
}

/// What a unit contends for, and what it takes from the bounds of a batch. Its session knows it before it chooses a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The row, if known. For a unit of several rows, the row with the least key.
    pub key: Option<Key>,
    /// Maximum number of units of this key in one commit.
    pub rows_per_commit: u16,
    /// For a call of a function with a merge rule: the calls with which it can be merged.
    pub merge: Option<Merge>,
    /// It can find nothing, and then waits with its session: see [`Event::Waits`](super::Event::Waits).
    pub may_wait: bool,
    /// It can fail without the others of its batch: see [`Event::Leaves`](super::Event::Leaves).
    pub may_leave: bool,
    /// Its row can be locked before it runs. Claims say it of several rows.
    pub lockable: bool,
    /// Its key stands for several rows, of which it takes any that nobody has locked. Claims say it of several keys.
    pub takes_any: bool,
    /// What it reads without a lock.
    pub reads: Reads,
    /// Number of its statements.
    pub statements: u16,
    /// The rows for which a unit of several statements or rows contends.
    pub claims: Box<[Claim]>,
    /// Its number of bytes on the wire.
    pub bytes: usize,
}

impl Claimed {
    /// All rows for which it is known to contend.
    pub fn keys(&self) -> impl Iterator<Item = Key> + Clone + use<'_> {
        self.keys_and_takes().map(|(key, _)| key)
    }

    /// The single rows among them.
    pub fn rows(&self) -> impl Iterator<Item = Key> + Clone + use<'_> {
        self.keys_and_takes().filter(|(_, takes_any)| !takes_any).map(|(key, _)| key)
    }

    /// The keys, each with whether it takes any of several rows.
    fn keys_and_takes(&self) -> impl Iterator<Item = (Key, bool)> + Clone + use<'_> {
        let only = self.key.filter(|_| self.claims.is_empty()).map(|key| (key, self.takes_any));
        only.into_iter().chain(self.claims.iter().map(|claim| (claim.key, claim.takes_any)))
    }
}

impl<P> Unit<P> {
    /// A unit that a session submits. `first` is whether all its earlier units are done.
    pub fn new(session: u64, first: bool, claimed: Claimed, payload: P) -> Self {
        Unit {
            session,
            first,
            claimed,
            has_waited: false,
            at_fault: 0,
            is_single: false,
            unmeasured: false,
            losses: 0,
            reruns: 0,
            cancelled: false,
            leaving: Leaving::Failed,
            payload,
        }
    }

    /// All rows for which it is known to contend.
    pub fn keys(&self) -> impl Iterator<Item = Key> + Clone + use<'_, P> {
        self.claimed.keys()
    }

    /// The calls with which it can be merged now.
    pub(super) fn merge(&self) -> Option<Merge> {
        self.claimed.merge.map(|merge| if self.is_single { Merge::NEVER } else { merge })
    }

    /// A row of the statement that failed, or else a row of the unit, with whether it stands for several rows of which the
    /// statement takes any.
    pub(super) fn key_at_fault(&self) -> Option<(Key, bool)> {
        let claim = self.claimed.claims.iter().find(|claim| claim.statement == self.at_fault);
        let of_unit = || Some((self.claimed.key?, self.claimed.takes_any));
        claim.map(|claim| (claim.key, claim.takes_any)).or_else(of_unit)
    }

    /// The rows for which it may have to wait. If it takes any of several rows, the row is not known, and only its table is.
    pub(super) fn waits_for(&self) -> impl Iterator<Item = (u32, Option<Key>)> + use<'_, P> {
        self.claimed.keys_and_takes().map(|(key, takes_any)| (key.table, Some(key).filter(|_| !takes_any)))
    }

    /// It has to run again because of another unit.
    pub(super) fn rerun(self) -> Self {
        Unit { reruns: self.reruns + 1, ..self }
    }
}

/// What a unit that writes reads without a lock, apart from rows that it has changed before.
///
/// Each statement of a batch has its own snapshot, which contains the uncommitted changes of the batch's earlier units. An outsider
/// can change a row after the unit has read it, and commit before the batch. A client that reads between these two commits sees
/// the outsider's change and none of the batch, so no serial order explains both answers if the unit depends on an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    #[default]
    Nothing,
    /// One row, in the first statement. It depends on no earlier unit but those of its session: a unit that has changed the
    /// row has its lock, and no outsider can change it.
    OneRowFirst,
    /// Other rows. The unit runs in a batch of its own.
    Rows,
}

/// A row for which one statement of a unit of several statements or rows contends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The row.
    pub key: Key,
    /// The index of the statement in the unit, from zero.
    pub statement: u16,
    /// Maximum number of the row's versions in one commit.
    pub rows_per_commit: u16,
    /// It is a call of a function with a merge rule that is not merged here.
    pub in_key_space: bool,
    /// The row can be locked before the statement runs.
    pub lockable: bool,
    /// The key stands for several rows, of which the statement takes any that nobody has locked.
    pub takes_any: bool,
}

/// The group of calls that can become one call. Of the functions of one key space (see [`Key::table`]), a
/// batch has either one merged call or single calls. It never has both, and never two merged calls. A merged
/// call takes the locks of all its keys in its own order. This order is the same in every gateway only if the
/// batch has no other call of the key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Calls that differ only in their values.
    pub group: u64,
    /// How many of them one call may stand for.
    pub most: u16,
}

impl Merge {
    /// An unmerged call of a function with a merge rule.
    pub const NEVER: Merge = Merge { group: 0, most: u16::MAX };

    /// Whether two neighbours in a batch are one call.
    pub(super) fn joins(self, other: Self) -> bool {
        self.group != Self::NEVER.group && self.group == other.group
    }
}
