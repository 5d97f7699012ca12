//! What the sessions do on average. Pure.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::mariadb::recording::{Recording, Sample, Session};

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It waits for the lock of a row.
    Row,
    /// It waits for the lock of a table, or another one.
    Lock,
    /// It waits until its commit is in the logs.
    Commit,
    /// It runs a statement.
    Runs,
    /// Its transaction is open, and no statement runs.
    IdleInTransaction,
}

impl Class {
    /// All, the waits first.
    pub const ALL: [Class; 5] =
        [Class::Row, Class::Lock, Class::Commit, Class::Runs, Class::IdleInTransaction];
}

/// Averages over the samples.
#[derive(Clone, Debug, Default)]
pub struct Load {
    pub samples: usize,
    /// Sessions that run a statement.
    pub active: f64,
    pub classes: BTreeMap<Class, f64>,
}

impl Load {
    /// The averages of a recording.
    pub fn of(recording: &Recording) -> Self {
        let mut load = Load { samples: recording.samples.len(), ..Load::default() };
        let share = 1.0 / load.samples.max(1) as f64;
        for sample in &recording.samples {
            let waits = Waits::of(sample);
            let mut add = |class, sessions: usize| {
                *load.classes.entry(class).or_default() += sessions as f64 * share;
                load.active += sessions as f64 * share;
            };
            // A session can have got its lock since the server has read the transactions.
            add(Class::Row, waits.rows.len());
            add(Class::Lock, waits.tables.len());
            let others = sample.sessions.iter().filter(|session| !waits.contains(session.thread));
            others.for_each(|session| add(waits.class(session), 1));
            let idle = sample.transactions.iter().filter(|transaction| !transaction.is_running).count();
            *load.classes.entry(Class::IdleInTransaction).or_default() += idle as f64 * share;
        }
        load
    }

    /// Sessions of a class.
    pub fn class(&self, class: Class) -> f64 {
        self.classes.get(&class).copied().unwrap_or_default()
    }
}

/// Which sessions wait for locks at one moment.
pub struct Waits {
    rows: HashSet<u64>,
    tables: HashSet<u64>,
}

impl Waits {
    /// Those of a sample.
    pub fn of(sample: &Sample) -> Self {
        let of_tables: BTreeSet<&str> =
            sample.locks.iter().filter(|lock| lock.index.is_none()).map(|lock| lock.id.as_str()).collect();
        let (mut rows, mut tables) = (HashSet::new(), HashSet::new());
        for transaction in &sample.transactions {
            match transaction.waits_for.as_deref() {
                Some(lock) if of_tables.contains(lock) => tables.insert(transaction.thread),
                Some(_) => rows.insert(transaction.thread),
                None => continue,
            };
        }
        Waits { rows, tables }
    }

    /// Whether a session waits for a lock of InnoDB.
    fn contains(&self, thread: u64) -> bool {
        self.rows.contains(&thread) || self.tables.contains(&thread)
    }

    /// What a session does.
    pub fn class(&self, session: &Session) -> Class {
        let state = session.state.as_str();
        if self.rows.contains(&session.thread) {
            Class::Row
        } else if self.tables.contains(&session.thread)
            || state == "User lock"
            || state.starts_with("Waiting for") && state.contains("lock")
        {
            Class::Lock
        } else if is_commit(state) {
            Class::Commit
        } else {
            Class::Runs
        }
    }
}

/// The states of a session whose commit is written, flushed, or confirmed by a replica.
fn is_commit(state: &str) -> bool {
    let state = state.to_ascii_lowercase();
    state.starts_with("commit")
        || state.contains("binlog")
        || state.contains("prior transaction")
        || state.contains("semi-sync")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mariadb::recording::{Lock, Transaction};

    #[test]
    fn sessions_are_counted_by_what_they_do() {
        let session = |thread, state: &str| Session { thread, state: state.to_owned(), statement: None };
        let transaction = |thread: u64, waits_for: Option<&str>, is_running| Transaction {
            id: thread.to_string(),
            thread,
            waits_for: waits_for.map(str::to_owned),
            is_running,
            ..Transaction::default()
        };
        let lock = |id: &str, index: Option<&str>| Lock {
            id: id.to_owned(),
            index: index.map(str::to_owned),
            ..Lock::default()
        };
        let busy = Sample {
            sessions: vec![
                session(1, "Updating"),
                session(2, "Updating"),
                session(3, "Updating"),
                session(4, "Commit"),
                session(5, "Waiting for table metadata lock"),
            ],
            transactions: vec![
                transaction(1, Some("a"), true),
                transaction(2, Some("b"), true),
                transaction(3, None, true),
                transaction(9, None, false),
            ],
            locks: vec![lock("a", Some("PRIMARY")), lock("b", None)],
        };
        let recording = Recording { samples: vec![busy, Sample::default()], ..Recording::default() };
        let load = Load::of(&recording);
        let classes = Class::ALL.map(|class| load.class(class));
        assert_eq!((load.active, classes), (2.5, [0.5, 1.0, 0.5, 0.5, 0.5]));
    }
}
