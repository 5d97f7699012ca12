//! A recording of a MariaDB server, as plain data. The diagnosis sees nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use hotrow_mysql_core::table::Table;

use crate::mariadb::texts::without_values;
use crate::samples::{Entries, Samples};

/// Different statements that are kept. Later ones have no text.
pub const STATEMENTS_MAX: usize = 1_000;

/// What one run has read.
#[derive(Debug, Default)]
pub struct Recording {
    /// The address of the server.
    pub address: String,
    /// What the server offers.
    pub abilities: Abilities,
    /// The samples in order.
    pub samples: Vec<Sample>,
    /// The counters before the first sample, and after the last one.
    pub before: Counters,
    pub after: Counters,
    /// The time between the counters, in seconds.
    pub seconds: f64,
    /// The statements that were seen.
    pub statements: Vec<Statement>,
    /// The tables of the statements and of the rows that are waited for.
    pub tables: BTreeMap<TableName, Facts>,
    /// The columns of the indexes of the rows that are waited for.
    pub indexes: BTreeMap<(TableName, String), Vec<String>>,
    /// The doctor's own work in the server, in seconds.
    pub own_seconds: f64,
    /// The server's message, if the connection was lost before the end.
    pub lost: Option<String>,
}

/// What the server offers, and what the doctor's user can see.
#[derive(Clone, Debug, Default)]
pub struct Abilities {
    pub version: String,
    /// The database of the doctor's connection.
    pub database: Option<String>,
    /// The doctor's account, as GRANT writes it.
    pub account: String,
    /// The ID of the doctor's connection.
    pub thread: u64,
    /// Whether it has the privilege PROCESS.
    pub sees_sessions: bool,
    pub has_binary_log: bool,
    pub binlog_format: String,
    pub rolls_back_on_timeout: bool,
    /// Whether the server tells sessions of their transactions by default, which a lane cannot do for them.
    pub tracks_transactions: bool,
    /// The routines of `hotrow` that the account can see.
    pub routines: BTreeSet<String>,
}

/// A database and a table in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    pub database: String,
    pub table: String,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// What is known about a table.
#[derive(Clone, Debug)]
pub struct Facts {
    /// None if the account cannot see it.
    pub table: Option<Table>,
    /// Whether the triggers of the table are known. Without the privilege TRIGGER or the routines of `hotrow`, they are hidden.
    pub shows_triggers: bool,
}

/// Numbers since the start of the server, by their names.
pub type Counters = HashMap<String, u64>;

/// A statement that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// The database of its session.
    pub database: Option<String>,
    /// Its text without values.
    pub shape: String,
    /// A text with values, which is judged and never shown.
    pub example: String,
    /// Whether the example has only the first part of the text.
    pub is_cut: bool,
}

/// The server at one moment.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Sessions that run a statement.
    pub sessions: Vec<Session>,
    pub transactions: Vec<Transaction>,
    /// The locks that are waited for, and those that they wait for.
    pub locks: Vec<Lock>,
}

/// A session that runs a statement.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub thread: u64,
    /// What the server says about it, such as `Updating`.
    pub state: String,
    pub statement: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Transaction {
    pub id: String,
    pub thread: u64,
    /// The lock that it waits for.
    pub waits_for: Option<String>,
    /// Whether its session runs a statement.
    pub is_running: bool,
    /// Whether it has changed rows.
    pub has_changed: bool,
    /// Its age in seconds.
    pub age: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Lock {
    pub id: String,
    /// The ID of its transaction.
    pub transaction: String,
    /// Such as `X` or `S,GAP`.
    pub mode: String,
    /// None if its name cannot be read.
    pub table: Option<TableName>,
    /// The index of a lock of a row. None for a lock of a table.
    pub index: Option<String>,
    /// The values of the index's columns. None if the page is not in memory.
    pub data: Option<String>,
}

impl Entries for Sample {
    fn entries(&self) -> usize {
        1 + self.sessions.len() + self.transactions.len() + self.locks.len()
    }
}

/// Collects samples, with each statement's text once.
#[derive(Debug)]
pub struct Recorder {
    pub samples: Samples<Sample>,
    pub statements: Vec<Statement>,
    index: HashMap<(Option<String>, String), usize>,
}

impl Recorder {
    /// Begins with this time between samples.
    pub fn new(interval: Duration) -> Self {
        Recorder { samples: Samples::new(interval), statements: Vec::new(), index: HashMap::new() }
    }

    /// The number of a statement. None if there are too many.
    pub fn statement(&mut self, database: Option<String>, text: &str, is_cut: bool) -> Option<usize> {
        let key = (database, without_values(text));
        if let Some(known) = self.index.get(&key) {
            return Some(*known);
        }
        if self.statements.len() >= STATEMENTS_MAX {
            return None;
        }
        let (database, shape) = key.clone();
        self.statements.push(Statement { database, shape, example: text.to_owned(), is_cut });
        self.index.insert(key, self.statements.len() - 1);
        Some(self.statements.len() - 1)
    }
}

/// The name of a table in INNODB_LOCKS: `` `shop`.`item` ``. Partitions follow it in a comment.
pub fn table_name(text: &str) -> Option<TableName> {
    let (database, rest) = quoted_name(text)?;
    let (table, _) = quoted_name(rest.strip_prefix('.')?)?;
    Some(TableName { database, table })
}

/// A name in backticks, and what comes after it.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('`')?;
    let mut letters = inner.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '`' && letters.next_if(|(_, next)| *next == '`').is_none() {
            return Some((inner[..at].replace("``", "`"), &inner[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_are_read() {
        let name = |text: &str| table_name(text).map(|name| (name.database, name.table));
        let pair = |database: &str, table: &str| Some((database.to_owned(), table.to_owned()));
        assert_eq!(name("`shop`.`item`"), pair("shop", "item"));
        assert_eq!(name("`a``b`.`c.d` /* Partition `p0` */"), pair("a`b", "c.d"));
        assert_eq!((name("shop.item"), name("`shop`"), name("`shop")), (None, None, None));
    }

    #[test]
    fn a_statement_with_other_values_is_the_same_statement() {
        let mut recorder = Recorder::new(Duration::from_millis(100));
        let shop = Some("shop".to_owned());
        let first = recorder.statement(shop.clone(), "delete from t where id = 7", false);
        assert_eq!(first, recorder.statement(shop, "delete  from t where id = 8", false));
        assert_ne!(first, recorder.statement(None, "delete from t where id = 8", false));
        for number in 0..STATEMENTS_MAX {
            recorder.statement(None, &format!("select a{number}"), false);
        }
        assert_eq!(recorder.statement(None, "select b", false), None);
        assert_eq!(recorder.statements.len(), STATEMENTS_MAX);
    }
}
