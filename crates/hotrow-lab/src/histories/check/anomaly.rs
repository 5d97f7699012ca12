//! The anomalies that a history can have. The names are those of Adya (1999) and of Elle (2020).

use crate::histories::history::Level;
use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// A read found a value of a transaction that was rolled back.
    G1a,
    /// A read found a value that its transaction replaced later.
    G1b,
    /// A committed value follows one of a transaction that was rolled back.
    DirtyUpdate,
    /// A list has a value twice.
    DuplicateAppend,
    /// A later read does not have a committed value.
    LostAppend,
    /// A read found a value that no transaction wrote.
    UnwrittenValue,
    /// Two reads of a list contradict each other.
    IncompatibleOrder,
    /// Reads and times contradict each other about the order of a register's values.
    CyclicVersions,
    /// A transaction does not see its own writes.
    Internal,
    /// A cycle of writes.
    G0,
    /// A cycle of writes and reads of these writes.
    G1c,
    /// A transaction reads a row before another transaction changes it, and changes it afterwards.
    LostUpdate,
    /// A cycle with one read of an old value.
    GSingle,
    /// A cycle with several reads of old values, no two of them one after the other.
    GNonadjacent,
    /// A cycle with reads of old values one after the other, such as write skew.
    G2Item,
}

impl Name {
    /// The weakest level at which it is forbidden, if all its transactions have this level and several statements.
    pub fn breaks(self) -> Level {
        match self {
            Self::LostUpdate | Self::GSingle | Self::GNonadjacent => Level::RepeatableRead,
            Self::G2Item => Level::Serializable,
            _ => Level::ReadCommitted,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::G1a => "G1a (aborted read)",
            Self::G1b => "G1b (intermediate read)",
            Self::DirtyUpdate => "dirty update",
            Self::DuplicateAppend => "duplicate append",
            Self::LostAppend => "lost append",
            Self::UnwrittenValue => "unwritten value",
            Self::IncompatibleOrder => "incompatible order",
            Self::CyclicVersions => "cyclic versions",
            Self::Internal => "internal inconsistency",
            Self::G0 => "G0 (write cycle)",
            Self::G1c => "G1c (circular information flow)",
            Self::LostUpdate => "lost update",
            Self::GSingle => "G-single (read skew)",
            Self::GNonadjacent => "G-nonadjacent",
            Self::G2Item => "G2-item (write skew)",
        })
    }
}

/// An anomaly that breaks a promise of the database.
#[derive(Clone, Debug)]
pub struct Anomaly {
    pub name: Name,
    /// Whether the cycle needs the order in real time or that of a session, and not only reads and writes.
    pub in_real_time: bool,
    /// The weakest level whose promise is broken.
    pub breaks: Level,
    /// What happened, for people.
    pub story: String,
}
