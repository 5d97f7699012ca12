//! Verdicts about statements, with their time and their words. How they are made is not known here.

use std::sync::Arc;
use std::time::Instant;

use hotrow_core::classify::{Reason, Watch};
use hotrow_core::session::Verdict;

/// A verdict about a statement, with its time.
#[derive(Clone, Debug)]
pub struct VerdictRecord {
    pub(super) verdict: Verdict,
    /// The reason for passing it through, in words.
    pub(super) why_not: Option<WhyNot>,
    /// The state of the catalog at that time.
    pub(super) state: u64,
    pub(super) epoch: u64,
    /// When the oldest fact was asked for that it relies on.
    pub(super) at: Instant,
    /// It relies on nothing but its tables, and each batch checks these.
    pub(super) is_checked: bool,
}

impl VerdictRecord {
    /// A verdict from facts that were asked at this time, in this epoch of the catalog.
    pub fn new(verdict: Verdict, why_not: Option<WhyNot>, state: u64, (epoch, at): (u64, Instant)) -> Self {
        VerdictRecord { verdict, why_not, state, epoch, at, is_checked: false }
    }

    /// The same if its batches check everything that it relies on.
    #[must_use]
    pub fn checked(self, is_checked: bool) -> Self {
        VerdictRecord { is_checked, ..self }
    }
}

/// What is known of a statement on a node of a distributed database.
#[derive(Clone, Debug)]
pub struct NodeRecord {
    pub node: i32,
    /// It can run in the node's lanes.
    pub runs_there: bool,
    /// The table there when it last could, if it uses one.
    pub watch: Option<Arc<Watch>>,
    /// The catalog's epoch when the node was asked.
    pub epoch: u64,
    /// When the node should be asked again, and how long the answer is valid.
    pub ask_again_at: Instant,
    pub valid: Instant,
}

/// Whether a statement can run in the lanes of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// It can.
    pub runs_there: bool,
    /// The node should be asked again.
    pub is_ageing: bool,
}

/// Why a statement is passed through.
#[derive(Clone, Debug)]
pub struct WhyNot {
    /// The reason in words.
    pub reason: String,
    /// A form that can be packed, if there is one.
    pub remedy: Option<&'static str>,
}

impl From<&Reason> for WhyNot {
    fn from(reason: &Reason) -> Self {
        WhyNot { reason: reason.to_string(), remedy: reason.remedy() }
    }
}

/// A verdict in words.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// `packed`, `merged`, `passed` or `answered here`.
    pub verdict: &'static str,
    pub reason: String,
    /// A form that can be packed, if the statement is passed through and there is one.
    pub remedy: Option<&'static str>,
}

impl Explanation {
    /// A verdict without a remedy.
    pub fn new(verdict: &'static str, reason: impl Into<String>) -> Self {
        Explanation { verdict, reason: reason.into(), remedy: None }
    }
}

impl From<WhyNot> for Explanation {
    fn from(why: WhyNot) -> Self {
        Explanation { verdict: "passed", reason: why.reason, remedy: why.remedy }
    }
}

/// The validity of a verdict.
pub enum CachedVerdict {
    /// It is valid.
    Fresh(Verdict),
    /// It is valid, but the catalog should be queried again before it expires.
    Ageing(Verdict),
    /// There is none, it has expired, or the catalog has changed.
    Missing,
}
