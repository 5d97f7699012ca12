//! A history: what clients asked of a database, and which answers they got. Plain data, without I/O and without a clock.

use std::fmt;

/// An isolation level of PostgreSQL. A later level keeps the promises of the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    ReadCommitted,
    /// Snapshot isolation, in PostgreSQL.
    RepeatableRead,
    Serializable,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::ReadCommitted, Self::RepeatableRead, Self::Serializable];
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        })
    }
}

/// The number of a list or of a register. Lists and registers do not share numbers.
pub type Key = u64;

/// A value that is written at most once in a history. It identifies its write.
pub type Value = u64;

/// One operation with the answer that the client got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Appends a value to a list.
    Append(Key, Value),
    /// Reads a whole list.
    Read(Key, Vec<Value>),
    /// Writes a register.
    Write(Key, Value),
    /// Reads a register, `None` before its first write.
    Get(Key, Option<Value>),
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append(key, value) => write!(f, "append {value} to list {key}"),
            Self::Read(key, list) if list.len() > 6 => {
                let end = &list[list.len() - 6..];
                write!(f, "read list {key}: {} values that end with {end:?}", list.len())
            }
            Self::Read(key, list) => write!(f, "read list {key}: {list:?}"),
            Self::Write(key, value) => write!(f, "write {value} to register {key}"),
            Self::Get(key, Some(value)) => write!(f, "read register {key}: {value}"),
            Self::Get(key, None) => write!(f, "read register {key}: no value"),
        }
    }
}

/// What a client knows about the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Committed,
    /// The transaction was certainly rolled back.
    Failed,
    /// The answer to the commit did not arrive.
    Unknown,
}

/// One transaction of one client.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The connection. Its transactions follow each other in the order of `begun`, also if it pipelines them.
    pub session: u64,
    pub level: Level,
    /// How it was sent, for the story of an anomaly.
    pub way: String,
    /// The operations of each statement.
    pub statements: Vec<Vec<Op>>,
    pub outcome: Outcome,
    /// A count of all events of the history, taken before the client sends the transaction.
    pub begun: u64,
    /// The same count, taken after the client has the answer.
    pub ended: u64,
}

impl Transaction {
    /// All operations in their order, each with the number of its statement.
    pub fn ops(&self) -> impl Iterator<Item = (u32, &Op)> {
        let numbered = self.statements.iter().zip(0..);
        numbered.flat_map(|(statement, number)| statement.iter().map(move |op| (number, op)))
    }

    /// The time at which it had certainly ended. A transaction with an unknown outcome can commit at any later time.
    pub fn certain_end(&self) -> u64 {
        if self.outcome == Outcome::Unknown { u64::MAX } else { self.ended }
    }
}
