//! A history with what is known about each value and each transaction: the writer of a value, and whether a transaction that
//! nobody confirmed was committed nevertheless.

use crate::histories::history::{Key, Op, Outcome, Transaction, Value};
use std::collections::{HashMap, HashSet};

/// The write of a value.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub transaction: u32,
    pub statement: u32,
    pub key: Key,
    /// Whether it is the transaction's last write of this list or register.
    pub is_last: bool,
}

pub struct View<'h> {
    pub history: &'h [Transaction],
    writes: HashMap<Value, Write>,
    /// Whether a transaction was committed, or has an unknown outcome and another one has read its values.
    counts: Vec<bool>,
}

impl<'h> View<'h> {
    pub fn new(history: &'h [Transaction]) -> Self {
        let writes = writes(history);
        let mut counts: Vec<bool> =
            history.iter().map(|transaction| transaction.outcome == Outcome::Committed).collect();
        let mut looked = vec![false; history.len()];
        // A transaction that counts now can show that another one counts.
        loop {
            let new: Vec<usize> = (0..history.len()).filter(|at| counts[*at] && !looked[*at]).collect();
            if new.is_empty() {
                return Self { history, writes, counts };
            }
            for at in new {
                looked[at] = true;
                for value in history[at].ops().flat_map(|(_, op)| read_values(op)) {
                    let writer = writes.get(&value).map(|write| write.transaction as usize);
                    if let Some(writer) = writer.filter(|writer| history[*writer].outcome == Outcome::Unknown)
                    {
                        counts[writer] = true;
                    }
                }
            }
        }
    }

    pub fn transaction(&self, at: u32) -> &'h Transaction {
        &self.history[at as usize]
    }

    /// The write of a value, by any transaction.
    pub fn write(&self, value: Value) -> Option<Write> {
        self.writes.get(&value).copied()
    }

    /// The write of a value, if its transaction counts.
    pub fn counted_write(&self, value: Value) -> Option<Write> {
        self.write(value).filter(|write| self.counts(write.transaction))
    }

    pub fn counts(&self, transaction: u32) -> bool {
        self.counts[transaction as usize]
    }

    /// The transactions that count, each with its place.
    pub fn counted(&self) -> impl Iterator<Item = (u32, &'h Transaction)> {
        let all = (0..).zip(self.history);
        all.filter(|(at, _)| self.counts(*at))
    }
}

fn writes(history: &[Transaction]) -> HashMap<Value, Write> {
    let mut writes = HashMap::new();
    for (transaction, at) in history.iter().zip(0..) {
        let mut later = HashSet::new();
        let ops: Vec<(u32, &Op)> = transaction.ops().collect();
        for (statement, op) in ops.into_iter().rev() {
            if let Op::Append(key, value) | Op::Write(key, value) = op {
                let is_last = later.insert((*key, matches!(op, Op::Append(..))));
                writes.insert(*value, Write { transaction: at, statement, key: *key, is_last });
            }
        }
    }
    writes
}

/// The values that an operation has read.
fn read_values(op: &Op) -> Vec<Value> {
    match op {
        Op::Read(_, list) => list.clone(),
        Op::Get(_, value) => value.iter().copied().collect(),
        Op::Append(..) | Op::Write(..) => Vec::new(),
    }
}
