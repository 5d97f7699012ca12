//! Which session blocks which: the end of each chain of waiting sessions, and what it does meanwhile.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::diagnosis::load::Class;
use crate::recording::Recording;
use crate::sample::{Lock, Sample, Session};

/// Sessions of a chain that are followed.
const CHAIN_MAX: usize = 100;

/// A session that others wait for and that itself waits for no lock. A prepared transaction has no process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blocker {
    /// Its process.
    pub pid: Option<i32>,
    /// When its transaction began.
    pub xact_us: Option<i64>,
    /// The ID of its transaction, if it is prepared.
    pub transaction: Option<String>,
}

/// What was seen of one blocker.
#[derive(Clone, Debug, Default)]
pub struct Blocked {
    /// Samples in which sessions waited for it.
    pub samples: usize,
    /// Sessions that waited for it, summed over the samples.
    pub sessions: usize,
    /// The last sample's session.
    pub last: Option<Session>,
    /// The time of that sample.
    pub last_us: i64,
}

/// A line of the lock tree: a session with the number of sessions between it and the end of its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeLine {
    /// Its distance from the blocker.
    pub depth: usize,
    /// The session.
    pub pid: Option<i32>,
    /// What it does.
    pub does: String,
    /// Its statement, as an index.
    pub statement: Option<usize>,
}

/// All blocking of a recording.
#[derive(Clone, Debug, Default)]
pub struct Blocking {
    /// Samples with sessions that wait for a lock.
    pub samples: usize,
    /// Average number of transactions at one moment for whose end others wait, or of other blockers if there are none.
    pub at_once: f64,
    pub blockers: BTreeMap<Blocker, Blocked>,
    /// What blockers do while others wait for them, by number of waiting sessions.
    pub doing: BTreeMap<Class, f64>,
    /// The lock tree of the sample with the most waiting sessions.
    pub tree: Vec<TreeLine>,
}

/// The kind of an object, its table, its transaction and anything else, by which locks are looked up.
type Object<'s> = (&'s str, Option<u32>, Option<&'s str>, &'s str);

/// The holders for which each waiting session waits.
type Edges<'s> = HashMap<i32, Vec<&'s Lock>>;

impl Blocking {
    pub fn of(recording: &Recording) -> Blocking {
        let mut blocking = Blocking::default();
        let mut most = 0;
        for sample in &recording.samples {
            let edges = edges(sample);
            if edges.is_empty() {
                continue;
            }
            blocking.samples += 1;
            let (mut seen, mut transactions) = (HashSet::new(), HashSet::new());
            for pid in edges.keys() {
                let Some(end) = end(*pid, &edges) else { continue };
                transactions.extend(end.transaction.as_deref());
                blocking.note(sample, end, &mut seen);
            }
            // The holder of a tuple's lock is the next one for the row, and not yet another owner of it while it wakes up.
            blocking.at_once += if transactions.is_empty() { seen.len() } else { transactions.len() } as f64;
            if edges.len() > most {
                most = edges.len();
                blocking.tree = tree(sample, &edges);
            }
        }
        blocking.at_once /= blocking.samples.max(1) as f64;
        blocking
    }

    fn note(&mut self, sample: &Sample, end: &Lock, seen: &mut HashSet<Blocker>) {
        let session = end.pid.and_then(|pid| session(sample, pid));
        let prepared = end.transaction.clone().filter(|_| end.pid.is_none());
        let xact_us = session.and_then(|session| session.xact_us);
        let blocker = Blocker { pid: end.pid, xact_us, transaction: prepared };
        let blocked = self.blockers.entry(blocker.clone()).or_default();
        blocked.samples += usize::from(seen.insert(blocker));
        blocked.sessions += 1;
        blocked.last_us = sample.at_us;
        if let Some(session) = session {
            blocked.last = Some(session.clone());
            let class = Class::of(session);
            // The lock changed hands between the look at the sessions and the look at the locks.
            if !matches!(class, Class::RowLock | Class::Lock) {
                *self.doing.entry(class).or_default() += 1.0;
            }
        }
    }

    /// The part of the lock's time in which blockers are in this class. `None` if nothing is known.
    pub fn doing(&self, class: Class) -> Option<f64> {
        let all: f64 = self.doing.values().sum();
        (all > 0.0).then(|| self.doing.get(&class).copied().unwrap_or(0.0) / all)
    }

    /// The blocker in whose time the most sessions waited, and its part of all samples with waiting sessions.
    pub fn longest(&self) -> Option<(&Blocker, &Blocked, f64)> {
        let known =
            self.blockers.iter().filter(|(blocker, _)| blocker.xact_us.is_some() || blocker.pid.is_none());
        let (blocker, blocked) = known.max_by_key(|(_, blocked)| (blocked.samples, blocked.sessions))?;
        Some((blocker, blocked, blocked.samples as f64 / self.samples.max(1) as f64))
    }
}

/// The session of a process.
pub fn session(sample: &Sample, pid: i32) -> Option<&Session> {
    sample.sessions.iter().find(|session| session.pid == pid)
}

fn edges(sample: &Sample) -> Edges<'_> {
    let mut held: HashMap<Object<'_>, Vec<&Lock>> = HashMap::new();
    for lock in sample.locks.iter().filter(|lock| lock.granted) {
        held.entry(hash_key(lock)).or_default().push(lock);
    }
    let mut edges: Edges<'_> = HashMap::new();
    for wanted in sample.locks.iter().filter(|lock| !lock.granted) {
        let Some(pid) = wanted.pid else { continue };
        let holders = held.get(&hash_key(wanted)).into_iter().flatten();
        let holders = holders.filter(|holder| {
            holder.pid != Some(pid) && holder.same_object(wanted) && conflict(&holder.mode, &wanted.mode)
        });
        edges.entry(pid).or_default().extend(holders);
    }
    edges
}

fn hash_key(lock: &Lock) -> Object<'_> {
    (lock.kind.as_str(), lock.relation, lock.transaction.as_deref(), lock.other.as_str())
}

/// The lock at the end of a session's chain. `None` if the chain ends nowhere, or in a circle.
fn end<'s>(pid: i32, edges: &Edges<'s>) -> Option<&'s Lock> {
    let mut holder = *edges.get(&pid)?.first()?;
    for _ in 0..CHAIN_MAX {
        match holder.pid.and_then(|pid| edges.get(&pid)) {
            None => return Some(holder),
            Some(next) => holder = *next.first()?,
        }
    }
    None
}

fn tree(sample: &Sample, edges: &Edges<'_>) -> Vec<TreeLine> {
    let mut below: BTreeMap<Option<i32>, Vec<i32>> = BTreeMap::new();
    for (pid, holders) in edges {
        if let Some(holder) = holders.first() {
            below.entry(holder.pid).or_default().push(*pid);
        }
    }
    below.values_mut().for_each(|pids| pids.sort_unstable());
    let mut lines = Vec::new();
    let ends = below.keys().filter(|pid| pid.is_none_or(|pid| !edges.contains_key(&pid)));
    let mut open: Vec<(usize, Option<i32>)> = ends.rev().map(|pid| (0, *pid)).collect();
    while let Some((depth, pid)) = open.pop() {
        if depth > CHAIN_MAX {
            continue;
        }
        let session = pid.and_then(|pid| session(sample, pid));
        let does = match session {
            Some(session) => Class::of(session).name().to_owned(),
            None if pid.is_none() => "prepared transaction".to_owned(),
            None => "unknown".to_owned(),
        };
        lines.push(TreeLine { depth, pid, does, statement: session.and_then(|session| session.statement) });
        let next = below.get(&pid).into_iter().flatten().rev();
        open.extend(next.map(|pid| (depth + 1, Some(*pid))));
    }
    lines
}

/// The lock modes in the order of their strength, with a bit for each mode that they conflict with.
const MODES: [(&str, u16); 8] = [
    ("AccessShareLock", 0b1000_0000),
    ("RowShareLock", 0b1100_0000),
    ("RowExclusiveLock", 0b1111_0000),
    ("ShareUpdateExclusiveLock", 0b1111_1000),
    ("ShareLock", 0b1110_1100),
    ("ShareRowExclusiveLock", 0b1111_1100),
    ("ExclusiveLock", 0b1111_1110),
    ("AccessExclusiveLock", 0b1111_1111),
];

/// Whether two modes exclude each other. Unknown modes do.
fn conflict(left: &str, right: &str) -> bool {
    let place = |mode: &str| MODES.iter().position(|(name, _)| *name == mode);
    match (place(left), place(right)) {
        (Some(left), Some(right)) => MODES[left].1 >> right & 1 == 1,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(pid: i32, kind: &str, what: &str, mode: &str, granted: bool) -> Lock {
        Lock {
            kind: kind.into(),
            transaction: (kind == "transactionid").then(|| what.into()),
            tuple: (kind == "tuple").then(|| what.parse().unwrap()),
            pid: Some(pid),
            mode: mode.into(),
            granted,
            ..Lock::default()
        }
    }

    fn crowd() -> Sample {
        let session = |pid, wait: Option<&str>| Session {
            pid,
            state: Some("active".into()),
            wait_type: wait.map(|_| "Lock".into()),
            wait: wait.map(Into::into),
            xact_us: Some(i64::from(pid)),
            ..Session::default()
        };
        Sample {
            sessions: vec![session(1, None), session(2, Some("transactionid")), session(3, Some("tuple"))],
            locks: vec![
                lock(1, "transactionid", "900", "ExclusiveLock", true),
                lock(2, "transactionid", "900", "ShareLock", false),
                lock(2, "tuple", "7", "ExclusiveLock", true),
                lock(3, "tuple", "7", "ExclusiveLock", false),
            ],
            ..Sample::default()
        }
    }

    #[test]
    fn a_chain_ends_at_the_session_that_waits_for_nothing() {
        let blocking = Blocking::of(&Recording { samples: vec![crowd()], ..Recording::default() });
        let (blocker, blocked, share) = blocking.longest().unwrap();
        assert_eq!((blocker.pid, blocked.sessions, share), (Some(1), 2, 1.0));
        assert_eq!(blocking.doing(Class::Cpu), Some(1.0));
        let tree: Vec<_> = blocking.tree.iter().map(|line| (line.depth, line.pid)).collect();
        assert_eq!(tree, [(0, Some(1)), (1, Some(2)), (2, Some(3))]);
    }

    #[test]
    fn a_circle_ends_nowhere() {
        let mut sample = crowd();
        sample.locks.push(lock(1, "tuple", "7", "ExclusiveLock", false));
        sample.locks.retain(|lock| !(lock.pid == Some(2) && lock.kind == "tuple"));
        sample.locks.push(lock(3, "tuple", "7", "ExclusiveLock", true));
        sample.locks.push(lock(3, "transactionid", "900", "ShareLock", false));
        let blocking = Blocking::of(&Recording { samples: vec![sample], ..Recording::default() });
        assert!(blocking.blockers.is_empty());
    }

    #[test]
    fn lock_modes_conflict_as_in_the_manual() {
        for (left, right, expected) in [
            ("AccessShareLock", "ExclusiveLock", false),
            ("AccessShareLock", "AccessExclusiveLock", true),
            ("RowExclusiveLock", "RowExclusiveLock", false),
            ("RowExclusiveLock", "ShareLock", true),
            ("ShareLock", "ShareLock", false),
            ("ShareUpdateExclusiveLock", "ShareUpdateExclusiveLock", true),
            ("RowShareLock", "ShareRowExclusiveLock", false),
            ("RowShareLock", "ExclusiveLock", true),
        ] {
            assert_eq!(conflict(left, right), expected, "{left} {right}");
            assert_eq!(conflict(right, left), expected, "{right} {left}");
        }
    }
}
