//! One sample: the sessions that do something at one moment, and the locks that they hold and wait for.

use serde::{Deserialize, Serialize};

/// What `sample.sql` returns, and the rows that were read afterwards.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// The server's time in microseconds.
    pub at_us: i64,
    /// The next transaction ID. `None` on a standby.
    pub xid: Option<u64>,
    /// The position in the WAL, in bytes.
    pub wal: Option<f64>,
    /// Commits in this database so far, as far as the sessions have reported them. `None` before version 15, where reading them
    /// would cost too much.
    #[serde(default)]
    pub commits: Option<f64>,
    /// The same for rows that were inserted, updated or deleted.
    #[serde(default)]
    pub changes: Option<f64>,
    /// Number of idle sessions.
    pub idle: u32,
    /// Those of them whose last statement ended less than a second before.
    #[serde(default)]
    pub resting: Option<u32>,
    /// The sessions that are not idle.
    pub sessions: Vec<Session>,
    /// The locks of rows and transactions. If a session waits for another lock, all locks.
    pub locks: Vec<Lock>,
    /// Rows that were read at this moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RowSeen>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Session {
    /// Its process.
    pub pid: i32,
    pub database: Option<String>,
    /// `pg_stat_activity.backend_type`.
    pub kind: Option<String>,
    /// Its state. `None` if the doctor's role cannot see it.
    pub state: Option<String>,
    pub wait_type: Option<String>,
    pub wait: Option<String>,
    /// When its transaction began, in microseconds.
    pub xact_us: Option<i64>,
    /// When its last statement began, in microseconds.
    pub query_us: Option<i64>,
    /// When its state changed, in microseconds.
    pub changed_us: Option<i64>,
    /// The age of its snapshot in transactions.
    pub xmin_age: Option<i64>,
    /// Its client is on the server's machine.
    #[serde(default)]
    pub is_local: bool,
    /// Its transaction has written.
    #[serde(default)]
    pub writes: bool,
    /// The statement that it runs or ran last, until the recorder has read it.
    #[serde(default, skip_serializing)]
    pub query: Option<String>,
    /// That statement, as an index of the recording's statements.
    #[serde(default)]
    pub statement: Option<usize>,
    /// The first values of that statement, if its text had values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl Session {
    /// A client's session.
    pub fn is_client(&self) -> bool {
        self.kind.as_deref().is_none_or(|kind| kind == "client backend")
    }

    /// It runs a statement.
    pub fn is_active(&self) -> bool {
        self.state.as_deref() == Some("active")
    }

    /// It has an open transaction and waits for its client.
    pub fn is_idle_in_transaction(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state.starts_with("idle in transaction"))
    }
}

/// A lock, held or awaited.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lock {
    /// `pg_locks.locktype`.
    pub kind: String,
    /// The database's OID.
    pub database: Option<u32>,
    /// The table's OID.
    pub relation: Option<u32>,
    pub page: Option<u32>,
    /// The row version's place in the page.
    pub tuple: Option<u32>,
    /// The transaction's ID.
    pub transaction: Option<String>,
    /// What identifies any other object.
    #[serde(default)]
    pub other: String,
    /// The session. `None` for a prepared transaction.
    pub pid: Option<i32>,
    /// The mode.
    pub mode: String,
    /// Whether the session has the lock.
    pub granted: bool,
}

impl Lock {
    /// Whether both are locks of one object.
    pub fn same_object(&self, other: &Lock) -> bool {
        (&self.kind, self.database, self.relation, self.page, self.tuple)
            == (&other.kind, other.database, other.relation, other.page, other.tuple)
            && (&self.transaction, &self.other) == (&other.transaction, &other.other)
    }
}

/// A row version that was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RowSeen {
    /// The table's OID.
    pub relation: u32,
    pub page: u32,
    /// Its place in the page.
    pub tuple: u32,
    /// The transaction that wrote it.
    pub xmin: String,
    /// Number of sessions that hold or await its tuple lock.
    pub sessions: u32,
    /// The values of the table's key columns.
    pub key: Vec<Option<String>>,
}
