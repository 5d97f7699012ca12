//! The effect of simulated statements on a row. The server runs this model and the checker replays it. The model
//! does not depend on transactions, locks or lanes.

use hotrow_lane::key::Key;

/// The initial value of every row.
pub const START: i64 = 4;

/// A statement on at most one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Adds to the row, `where value + n >= 0`. Otherwise it finds no row.
    Add { row: Key, n: i64 },
    /// Adds to the row; a check constraint fails below zero.
    Demand { row: Key, n: i64 },
    /// Adds to the row; a deferred constraint fails at the commit if this statement brought it below zero.
    Defer { row: Key, n: i64 },
    /// Like `Add`, and takes too long for a lane.
    Slow { row: Key, n: i64 },
    /// Inserts a row for which no other unit contends.
    Insert { table: u32 },
    /// Reads the row without a lock.
    Read { row: Key },
    /// Always fails.
    Poison,
    /// Terminates the connection.
    Kill,
}

/// The answer to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Value(i64),
    NoRow,
    Inserted,
    Error,
}

/// The effect of a statement on a value that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    pub reply: Reply,
    /// The new value of the row, if it changes.
    pub value: Option<i64>,
    /// The transaction cannot commit any more.
    pub dooms_commit: bool,
}

impl Statement {
    /// The row it reads or changes.
    pub fn row(self) -> Option<Key> {
        match self {
            Statement::Add { row, .. }
            | Statement::Slow { row, .. }
            | Statement::Demand { row, .. }
            | Statement::Defer { row, .. }
            | Statement::Read { row } => Some(row),
            Statement::Insert { .. } | Statement::Poison | Statement::Kill => None,
        }
    }

    /// Whether it changes the row that it finds.
    pub fn writes(self) -> bool {
        !matches!(self, Statement::Read { .. })
    }

    /// The table in which it locks a row or inserts one, for this value. If a condition does not hold, the
    /// statement does not wait for a locked row.
    pub fn locks(self, value: i64) -> Option<u32> {
        match self {
            Statement::Add { row, n } | Statement::Slow { row, n } => (value + n >= 0).then_some(row.table),
            Statement::Demand { row, .. } | Statement::Defer { row, .. } => Some(row.table),
            Statement::Insert { table } => Some(table),
            Statement::Read { .. } | Statement::Poison | Statement::Kill => None,
        }
    }

    /// Its effect inside a transaction.
    pub fn on(self, value: i64) -> Effect {
        let fine = |reply, value| Effect { reply, value, dooms_commit: false };
        match self {
            Statement::Add { n, .. } | Statement::Slow { n, .. } if value + n < 0 => fine(Reply::NoRow, None),
            Statement::Demand { n, .. } if value + n < 0 => fine(Reply::Error, None),
            Statement::Add { n, .. } | Statement::Slow { n, .. } | Statement::Demand { n, .. } => {
                fine(Reply::Value(value + n), Some(value + n))
            }
            Statement::Defer { n, .. } => {
                Effect { dooms_commit: value + n < 0, ..fine(Reply::Value(value + n), Some(value + n)) }
            }
            Statement::Insert { .. } => fine(Reply::Inserted, None),
            Statement::Read { .. } => fine(Reply::Value(value), None),
            Statement::Poison | Statement::Kill => fine(Reply::Error, None),
        }
    }

    /// Its effect as a transaction of its own.
    pub fn alone(self, value: i64) -> (Reply, Option<i64>) {
        let effect = self.on(value);
        if effect.dooms_commit { (Reply::Error, None) } else { (effect.reply, effect.value) }
    }
}
