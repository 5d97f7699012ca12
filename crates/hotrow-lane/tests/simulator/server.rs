//! The simulated database: rows, locks, transactions, and the order of their commits. Its isolation level is read
//! committed, as on a real server. After a crash it assigns the IDs of lost transactions again. It does not depend
//! on connections or protocols.

use std::collections::BTreeMap;

use super::model::{Reply, START, Statement};
use hotrow_core::witness::{Log, Mark, Server as Identity, XactStatus};
use hotrow_lane::key::Key;

/// A transaction's number, counted from 1 and never used twice. Tests use it, and clients never see it.
pub type Txn = u64;

/// The object of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    Row(Key),
    Table(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    InProgress,
    Committed,
    Aborted,
}

/// One durable change, in commit order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A unit in a transaction of a lane or a session. `run` counts executions.
    Unit { txn: Txn, unit: usize, run: u64 },
    /// A direct client's change.
    Direct { row: Key, n: i64 },
}

/// A unit that held no lock and changed nothing. It saw the state after this number of log entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub txn: Txn,
    pub unit: usize,
    pub run: u64,
    pub after: usize,
}

#[derive(Debug)]
struct Transaction {
    status: Status,
    /// The ID that clients see, after the transaction has written something.
    id: Option<u64>,
    changes: BTreeMap<Key, i64>,
    entries: Vec<Entry>,
    doomed: bool,
}

/// One value of a mark in the log.
#[derive(Clone, Copy, Debug)]
struct Marked {
    value: u64,
    /// The number of IDs that were assigned by then.
    ids: u64,
    /// The log is durable up to here.
    is_durable: bool,
}

#[derive(Debug, Default)]
pub struct Server {
    /// Crashes so far.
    pub crashes: u64,
    /// IDs assigned so far, and the number of them that the log certainly contains.
    ids: u64,
    logged_ids: u64,
    /// The number of IDs that were assigned when this life began.
    first_ids: u64,
    /// An ordinary checkpoint has replaced the one that began this life.
    pub checkpointed: bool,
    /// The values of each mark, in order.
    marks: BTreeMap<usize, Vec<Marked>>,
    rows: BTreeMap<Key, i64>,
    locks: BTreeMap<Lock, Txn>,
    transactions: Vec<Transaction>,
    runs: u64,
    pub log: Vec<Entry>,
    pub seen: Vec<Seen>,
}

impl Server {
    pub fn begin(&mut self) -> Txn {
        self.transactions.push(Transaction {
            status: Status::InProgress,
            id: None,
            changes: BTreeMap::new(),
            entries: Vec::new(),
            doomed: false,
        });
        self.transactions.len() as Txn
    }

    /// The ID that a client gets. `None` if the transaction has written nothing.
    pub fn id(&self, txn: Txn) -> Option<u64> {
        self.transactions[txn as usize - 1].id
    }

    /// The server's answer about an ID. It refers to the last transaction with the ID.
    pub fn xact_status(&self, id: u64) -> XactStatus {
        if id > self.ids {
            return XactStatus::NotGivenOut;
        }
        let last = self.transactions.iter().rev().find(|one| one.id == Some(id));
        match last.map(|one| one.status) {
            Some(Status::Committed) => XactStatus::Committed,
            Some(Status::InProgress) => XactStatus::InProgress,
            Some(Status::Aborted) | None => XactStatus::Aborted,
        }
    }

    /// Sets a mark. A rollback does not undo this.
    pub fn set_mark(&mut self, mark: usize, value: u64) {
        let ids = self.ids;
        self.marks.entry(mark).or_default().push(Marked { value, ids, is_durable: false });
    }

    /// A new connection sets its mark, and waits until the log has the value.
    pub fn stamp(&mut self, mark: usize, value: u64) {
        self.set_mark(mark, value);
        self.flush();
    }

    /// An outsider sets all marks, for example a script or a dump that is restored. `value` gets the number of IDs that
    /// were assigned.
    pub fn set_all_marks(&mut self, value: impl Fn(u64) -> u64) {
        let value = value(self.ids);
        for mark in self.marks.keys().copied().collect::<Vec<_>>() {
            self.stamp(mark, value);
        }
    }

    /// The value of a mark.
    pub fn mark(&self, mark: usize) -> u64 {
        self.marks.get(&mark).and_then(|marks| marks.last()).map_or(0, |marked| marked.value)
    }

    /// The facts that a new connection reads about the server.
    pub fn identity(&self, mark: Option<Mark>) -> Identity {
        let log = Log {
            checkpoint: self.crashes,
            first_id: (!self.checkpointed).then_some(self.first_ids + 1),
            next_id: self.ids + 1,
        };
        let (life, cluster) = (self.crashes.to_string(), Some("c".to_owned()));
        Identity { life, cluster, log: Some(log), mark, has_parts: false }
    }

    /// The server crashes and restarts immediately. Of the log's end that no client waited for, this number
    /// of IDs remains.
    pub fn crash(&mut self, ids_left: u64) {
        for one in self.transactions.iter_mut().filter(|one| one.status == Status::InProgress) {
            one.status = Status::Aborted;
        }
        self.locks.clear();
        self.ids = self.ids.min(self.logged_ids + ids_left);
        let ids = self.ids;
        for marks in self.marks.values_mut() {
            // If the log has kept a later ID, it has kept the mark. For the last ID, the log can end before
            // the mark.
            marks.retain(|marked| marked.is_durable || marked.ids < ids || marked.ids == ids && ids_left > 1);
            marks.iter_mut().for_each(|marked| marked.is_durable = true);
        }
        (self.first_ids, self.logged_ids) = (self.ids, self.ids);
        self.crashes += 1;
        self.checkpointed = false;
    }

    /// Assigns an ID to a transaction that has none.
    fn assign(&mut self, txn: Txn) {
        if self.open(txn).id.is_none() {
            self.ids += 1;
            self.open(txn).id = Some(self.ids);
        }
    }

    fn open(&mut self, txn: Txn) -> &mut Transaction {
        &mut self.transactions[txn as usize - 1]
    }

    /// The value that a statement of this transaction finds, and whether the row is the transaction's own
    /// version.
    fn value(&self, txn: Option<Txn>, statement: Statement) -> (i64, bool) {
        let Some(row) = statement.row() else { return (0, false) };
        let own = txn.and_then(|txn| self.transactions[txn as usize - 1].changes.get(&row));
        let value = own.or_else(|| self.rows.get(&row)).copied().unwrap_or(START);
        (value, own.is_some())
    }

    fn held_by_another(&self, lock: Lock, txn: Option<Txn>) -> bool {
        self.locks.get(&lock).is_some_and(|holder| Some(*holder) != txn)
    }

    /// Whether another transaction's lock is in the way.
    pub fn must_wait(&self, txn: Option<Txn>, statement: Statement) -> bool {
        let Some(table) = statement.locks(self.value(txn, statement).0) else { return false };
        self.held_by_another(Lock::Table(table), txn)
            || statement.row().is_some_and(|row| self.held_by_another(Lock::Row(row), txn))
    }

    /// Whether another transaction's lock prevents locking this row.
    pub fn is_locked(&self, txn: Option<Txn>, row: Key) -> bool {
        self.held_by_another(Lock::Table(row.table), txn) || self.held_by_another(Lock::Row(row), txn)
    }

    /// Locks a row that no other transaction has locked. The lock is stored in the row, with the transaction's ID.
    pub fn lock_row(&mut self, txn: Txn, row: Key) {
        self.assign(txn);
        self.locks.insert(Lock::Row(row), txn);
    }

    /// Whether a statement would fail.
    pub fn fails(&self, txn: Txn, statement: Statement) -> bool {
        statement.on(self.value(Some(txn), statement).0).reply == Reply::Error
    }

    /// Runs a statement that waits for no lock.
    pub fn execute(&mut self, txn: Txn, unit: usize, statement: Statement) -> Reply {
        self.runs += 1;
        let (run, after) = (self.runs, self.log.len());
        let (value, own) = self.value(Some(txn), statement);
        let effect = statement.on(value);
        let transaction = &mut self.transactions[txn as usize - 1];
        transaction.doomed |= effect.dooms_commit;
        if own || effect.value.is_some() || effect.reply == Reply::Inserted {
            transaction.entries.push(Entry::Unit { txn, unit, run });
            self.assign(txn);
        } else {
            self.seen.push(Seen { txn, unit, run, after });
        }
        if let (Some(row), Some(value)) = (statement.row(), effect.value) {
            self.open(txn).changes.insert(row, value);
            self.locks.insert(Lock::Row(row), txn);
        }
        effect.reply
    }

    /// Commits. `false` if a deferred constraint rolled it back instead.
    pub fn commit(&mut self, txn: Txn) -> bool {
        if self.open(txn).doomed {
            self.abort(txn);
            return false;
        }
        if self.id(txn).is_some() {
            self.flush();
        }
        let transaction = self.open(txn);
        transaction.status = Status::Committed;
        let (entries, changes) =
            (std::mem::take(&mut transaction.entries), std::mem::take(&mut transaction.changes));
        self.log.extend(entries);
        self.rows.extend(changes);
        self.release(txn);
        true
    }

    /// Runs a unit as a transaction of its own. Returns the answers to its statements.
    pub fn run_alone(&mut self, parts: &[(usize, Statement)]) -> (Txn, Vec<Reply>) {
        let (txn, after) = (self.begin(), self.log.len());
        let mut replies = Vec::new();
        for (unit, statement) in parts {
            replies.push(self.execute(txn, *unit, *statement));
        }
        if replies.contains(&Reply::Error) {
            self.abort(txn);
            replies.fill(Reply::Error);
        } else if !self.commit(txn) {
            for (unit, _) in parts {
                self.seen.push(Seen { txn, unit: *unit, run: self.runs, after });
            }
            replies.fill(Reply::Error);
        }
        (txn, replies)
    }

    pub fn abort(&mut self, txn: Txn) {
        self.open(txn).status = Status::Aborted;
        self.release(txn);
    }

    /// Releases the locks of a transaction.
    pub fn release(&mut self, txn: Txn) {
        self.locks.retain(|_, holder| *holder != txn);
    }

    pub fn has_locks(&self) -> bool {
        !self.locks.is_empty()
    }

    /// An outsider's transaction takes a lock and keeps it. `None` if another transaction holds it.
    pub fn lock(&mut self, lock: Lock) -> Option<Txn> {
        let taken = |held: &Lock| match (lock, *held) {
            (Lock::Row(row), Lock::Table(table)) | (Lock::Table(table), Lock::Row(row)) => row.table == table,
            (one, other) => one == other,
        };
        if self.locks.keys().any(taken) {
            return None;
        }
        let txn = self.begin();
        self.locks.insert(lock, txn);
        Some(txn)
    }

    /// A direct client changes a row in a transaction of its own, unless it would have to wait.
    pub fn change(&mut self, row: Key, n: i64) {
        let statement = Statement::Add { row, n };
        if self.must_wait(None, statement) {
            return;
        }
        if let Some(value) = statement.on(self.value(None, statement).0).value {
            self.rows.insert(row, value);
            self.log.push(Entry::Direct { row, n });
            let txn = self.begin();
            self.assign(txn);
            self.open(txn).status = Status::Committed;
            self.flush();
        }
    }

    /// The whole log is durable now.
    fn flush(&mut self) {
        self.logged_ids = self.ids;
        self.marks.values_mut().flatten().for_each(|marked| marked.is_durable = true);
    }
}
