//! What a lane knows of a unit: its rows, what it can become one call with, what became of it so far. Never its bytes.

use crate::key::Key;

/// What one client must see as one transaction, with what the lane needs to know of it.
#[derive(Debug)]
pub struct Unit<P> {
    /// Whose unit: a session's units keep their order.
    pub session: u64,
    /// All the session's earlier units are done. A session that got a unit back (to run it alone, or to hand it over
    /// again) is not served before it says so: what it sent on in the meantime would overtake. From the time it deals
    /// with a unit it got back until nothing of it is on its way, it may send nothing new: one that it sent before may
    /// not have been seen by the lane, and comes back too.
    pub first: bool,
    /// The row it contends for, where it is known.
    pub key: Option<Key>,
    /// How many units of this key may share a commit.
    pub rows_per_commit: u16,
    /// For a call of a function with a merge rule: what it can become one call with.
    pub merge: Option<Merge>,
    /// It may find nothing to answer, and then waits with its session: see [`Event::Waits`].
    pub may_wait: bool,
    /// Its row can be locked before it runs.
    pub lockable: bool,
    /// How many statements it is.
    pub statements: u16,
    /// The rows that the statements of a unit of several contend for; `key` is the least of them.
    pub claims: Box<[Claim]>,
    /// The statement that failed last, where it is several.
    pub at_fault: u16,
    /// What it weighs on the wire.
    pub bytes: usize,
    /// The size of its answer is not known at all. It runs in a batch of its own: answers of writes are gathered until the
    /// commit, and many large ones would fill the memory.
    pub unmeasured: bool,
    /// Connections that were lost under it.
    pub losses: u8,
    /// Batches that were rolled back because another unit of theirs failed.
    pub reruns: u8,
    /// Its client wanted it cancelled while it was with the server.
    pub cancelled: bool,
    /// It leaves the lane because it took too long there.
    pub too_slow: bool,
    /// What the shell needs to send it and to answer it.
    pub payload: P,
}

impl<P> Unit<P> {
    /// All rows it is known to contend for.
    pub fn keys(&self) -> impl Iterator<Item = Key> + use<'_, P> {
        let only = if self.claims.is_empty() { self.key } else { None };
        only.into_iter().chain(self.claims.iter().map(|claim| claim.key))
    }

    /// The row that the statement at fault contends for, or else one that the unit does.
    pub(super) fn key_at_fault(&self) -> Option<Key> {
        let claim = self.claims.iter().find(|claim| claim.statement == self.at_fault);
        claim.map(|claim| claim.key).or(self.key)
    }

    /// It has to run again because of another unit.
    pub(super) fn rerun(self) -> Self {
        Unit { reruns: self.reruns + 1, ..self }
    }
}

/// A row that one statement of a unit of several contends for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The row.
    pub key: Key,
    /// Which of the unit's statements it is, counted from zero.
    pub statement: u16,
    /// How many of its versions may share a commit.
    pub rows_per_commit: u16,
    /// It is a call of a function with a merge rule, which is not merged here.
    pub in_key_space: bool,
    /// The row can be locked before the statement runs.
    pub lockable: bool,
}

/// Which calls can become one call: those of one group. Of the functions whose keys are in one space (see
/// [`Key::table`]), a batch holds one merged call or single calls, never both and never two merged ones: a merged call
/// takes the locks of all its keys in an order of its own, which only is the same in every gateway if it is the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Calls that differ in their values only.
    pub group: u64,
    /// How many of them one call may stand for.
    pub most: u16,
}

impl Merge {
    /// A call that is not merged, of a function that could be.
    pub const NEVER: Merge = Merge { group: 0, most: u16::MAX };

    /// Whether two neighbours in a batch are one call.
    pub(super) fn joins(self, other: Self) -> bool {
        self.group != Self::NEVER.group && self.group == other.group
    }
}
