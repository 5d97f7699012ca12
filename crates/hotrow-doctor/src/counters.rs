//! Counters of the server and their differences between the beginning and the end of a run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The counters at one moment. Whole rows of views are kept, because their columns differ between versions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// When they were read, in microseconds.
    pub at_us: i64,
    /// `pg_stat_database`.
    pub database: Value,
    /// `pg_stat_bgwriter`.
    pub writer: Value,
    /// `pg_stat_checkpointer`.
    pub checkpointer: Value,
    /// `pg_stat_wal`.
    pub wal: Value,
    /// `pg_stat_io`.
    pub io: Value,
    /// `pg_stat_lock`.
    pub locks: Value,
    /// The tables with the most work.
    pub tables: Vec<TableCounters>,
    /// Replication slots.
    pub slots: Vec<Slot>,
    /// Standbys and other receivers.
    pub standbys: Vec<Standby>,
    /// Prepared transactions.
    pub prepared: Vec<Prepared>,
    pub statements: Vec<StatementCounters>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TableCounters {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// Sequential scans.
    pub scans: Option<i64>,
    /// Rows that they read.
    pub scanned: Option<i64>,
    /// Rows inserted.
    pub inserted: Option<i64>,
    /// Rows updated.
    pub updated: Option<i64>,
    /// Rows deleted.
    pub deleted: Option<i64>,
    /// Rows.
    pub live: Option<i64>,
    /// Dead row versions.
    pub dead: Option<i64>,
}

/// A replication slot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Slot {
    pub name: String,
    /// A receiver uses it.
    pub active: bool,
    /// `physical` or `logical`.
    pub kind: String,
    /// Bytes of WAL that it holds back.
    pub held_bytes: Option<f64>,
    /// The age of its snapshot in transactions.
    pub xmin_age: Option<i64>,
}

/// A receiver of the WAL.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Standby {
    /// Its application's name.
    pub name: String,
    pub state: Option<String>,
    /// `sync`, `async`, `quorum` or `potential`.
    pub sync: Option<String>,
    /// Bytes of WAL that it has not replayed.
    pub behind_bytes: Option<f64>,
    /// The age of its snapshot in transactions.
    pub xmin_age: Option<i64>,
}

/// A prepared transaction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Prepared {
    /// Its name.
    pub gid: String,
    /// Its ID.
    pub transaction: String,
    /// Its age in seconds.
    pub age_s: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StatementCounters {
    /// The ID that the server gave it.
    pub id: Option<String>,
    /// Its text.
    pub query: Option<String>,
    pub calls: i64,
    /// The time of all calls.
    pub total_ms: f64,
    /// The time of the fastest call.
    pub min_ms: f64,
}

/// A number of a view's row. 0 if the version does not have the column.
pub fn number(row: &Value, column: &str) -> f64 {
    row.get(column).and_then(Value::as_f64).unwrap_or(0.0)
}

/// The change of a number between two rows of a view.
pub fn change(before: &Value, after: &Value, column: &str) -> f64 {
    (number(after, column) - number(before, column)).max(0.0)
}

/// The sum of a column over the rows of `pg_stat_io` about the WAL.
fn log_io(rows: &Value, column: &str) -> f64 {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let about_log = |row: &&Value| row.get("object").and_then(Value::as_str) == Some("wal");
    rows.iter().filter(about_log).map(|row| number(row, column)).sum()
}

impl Counters {
    /// WAL flushes until now.
    pub fn flushes(&self) -> f64 {
        number(&self.wal, "wal_sync") + log_io(&self.io, "fsyncs")
    }

    /// The time of these flushes in milliseconds, if the server measures it.
    pub fn flush_ms(&self) -> f64 {
        number(&self.wal, "wal_sync_time") + log_io(&self.io, "fsync_time")
    }

    /// Requested checkpoints until now.
    pub fn requested_checkpoints(&self) -> f64 {
        number(&self.writer, "checkpoints_req") + number(&self.checkpointer, "num_requested")
    }

    pub fn table(&self, oid: u32) -> Option<&TableCounters> {
        self.tables.iter().find(|table| table.oid == oid)
    }
}

impl TableCounters {
    /// The work since an earlier look. Numbers that went down are 0: a reset of the statistics.
    pub fn since(&self, before: Option<&TableCounters>) -> TableCounters {
        let old = before.cloned().unwrap_or_default();
        let less = |new: Option<i64>, old: Option<i64>| Some((new.unwrap_or(0) - old.unwrap_or(0)).max(0));
        TableCounters {
            scans: less(self.scans, old.scans),
            scanned: less(self.scanned, old.scanned),
            inserted: less(self.inserted, old.inserted),
            updated: less(self.updated, old.updated),
            deleted: less(self.deleted, old.deleted),
            dead: less(self.dead, old.dead),
            ..self.clone()
        }
    }
}

impl StatementCounters {
    /// These calls and other calls of the same statement.
    pub fn and(self, other: Option<&StatementCounters>) -> StatementCounters {
        let Some(other) = other else { return self };
        StatementCounters {
            calls: self.calls + other.calls,
            total_ms: self.total_ms + other.total_ms,
            min_ms: self.min_ms.min(other.min_ms),
            ..self
        }
    }

    /// The calls since an earlier look.
    pub fn since(&self, before: Option<&StatementCounters>) -> StatementCounters {
        let (calls, total_ms) = before.map_or((0, 0.0), |old| (old.calls, old.total_ms));
        StatementCounters {
            calls: (self.calls - calls).max(0),
            total_ms: (self.total_ms - total_ms).max(0.0),
            ..self.clone()
        }
    }
}
