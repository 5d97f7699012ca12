//! The orders between two transactions: one has written or read what the other has written, or one has ended before the other
//! began.

use super::view::View;
use crate::histories::history::{Key, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The second one wrote the next version after that of the first one.
    Ww,
    /// The second one read the version of the first one.
    Wr,
    /// The first one read the version before that of the second one.
    Rw,
    /// The first one ended before the second one began.
    RealTime,
    /// Both are of one session.
    Session,
}

/// The first transaction comes before the second one.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub kind: Kind,
    /// The statement with the read of `Rw`.
    pub from_statement: u32,
    /// The statement with the read or write of `Ww` and `Wr`.
    pub to_statement: u32,
    /// The list or register with the value that was written by `from`, or by `to` for `Rw`.
    pub key: Key,
    pub value: Value,
    /// Whether no version lies between the two. A database can miss a conflict of transactions that are further apart, if the
    /// one between them has a weaker level.
    pub is_direct: bool,
}

impl Edge {
    fn of_time(from: u32, to: u32, kind: Kind) -> Self {
        Self { from, to, kind, from_statement: 0, to_statement: 0, key: 0, value: 0, is_direct: false }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ww => "ww",
            Self::Wr => "wr",
            Self::Rw => "rw",
            Self::RealTime => "real time",
            Self::Session => "session",
        })
    }
}

/// The orders in time, without those that follow from others.
pub fn times(view: &View) -> Vec<Edge> {
    let mut edges = sessions(view);
    let mut events: Vec<(u64, bool, u32)> = Vec::new();
    for (at, transaction) in view.counted() {
        events.push((transaction.begun, true, at));
        if transaction.certain_end() != u64::MAX {
            events.push((transaction.ended, false, at));
        }
    }
    events.sort_unstable();
    // The transactions that ended, without those that ended before another one of them began.
    let mut last: HashSet<u32> = HashSet::new();
    let mut before: HashMap<u32, Vec<u32>> = HashMap::new();
    for (_, begins, at) in events {
        if begins {
            let earlier: Vec<u32> = last.iter().copied().collect();
            edges.extend(earlier.iter().map(|from| Edge::of_time(*from, at, Kind::RealTime)));
            before.insert(at, earlier);
        } else {
            before.remove(&at).unwrap_or_default().iter().for_each(|from| _ = last.remove(from));
            last.insert(at);
        }
    }
    edges
}

fn sessions(view: &View) -> Vec<Edge> {
    let mut of_session: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
    for (at, transaction) in view.counted() {
        of_session.entry(transaction.session).or_default().push((transaction.begun, at));
    }
    let mut edges = Vec::new();
    for transactions in of_session.values_mut() {
        transactions.sort_unstable();
        edges.extend(transactions.windows(2).map(|two| Edge::of_time(two[0].1, two[1].1, Kind::Session)));
    }
    edges
}
