//! A recording: everything that the doctor has read from a server. The diagnosis sees nothing else, so a recording in a
//! file is a test case.

use hotrow_core::untrusted::identifier;
use serde::{Deserialize, Serialize};

use crate::counters::{Counters, StatementCounters};
use crate::sample::Sample;

/// What one run has read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// What the server offers.
    pub abilities: Abilities,
    /// The samples in order.
    pub samples: Vec<Sample>,
    /// The counters before the first sample.
    pub before: Counters,
    /// The counters after the last sample.
    pub after: Counters,
    /// The tables that appear in the samples.
    pub tables: Vec<Table>,
    /// The statements that were seen, with the gateway's decision about each.
    pub statements: Vec<Statement>,
    /// Why the gateway would pack no statement of the doctor's role, or why it could not be asked.
    pub unpackable: Option<String>,
    /// The connection was lost before the end.
    pub lost: Option<Lost>,
    /// The doctor's own queries, which the server counts as commits.
    pub own_queries: u32,
    /// The doctor's own work in the server: the time of its statements, in milliseconds.
    pub own_ms: f64,
    /// The fastest of several small pieces of work, in microseconds: the speed of the server's core.
    pub probe_us: Option<f64>,
    /// The server's machine, if the doctor runs on it.
    pub machine: Option<Machine>,
}

/// The machine of the server, as the doctor sees it from the same machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub cores: usize,
    /// The average number of busy cores during the run.
    pub busy: Option<f64>,
    /// The part of it that the server's processes used.
    #[serde(default)]
    pub server: Option<f64>,
    /// The time for which a process of the server that can run waits for a core, in microseconds.
    #[serde(default)]
    pub core_wait_us: Option<f64>,
    /// The average number of processes of the server that can run and wait for a core.
    #[serde(default)]
    pub queue: Option<f64>,
}

/// The end of the doctor's connection before the end of the run. There are no counters after the last sample then.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lost {
    /// Seconds since the first sample.
    pub seconds: f64,
    /// The server's message, or the driver's.
    pub message: String,
}

/// What the server offers, and what the doctor's role can see.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Abilities {
    /// `server_version_num`.
    pub version: u32,
    /// The version for people.
    pub version_text: String,
    /// The process of the doctor's connection.
    #[serde(default)]
    pub pid: i32,
    /// The database of the doctor's connection.
    pub database: String,
    pub database_oid: u32,
    /// The doctor's role.
    pub role: String,
    /// The role sees the statements and waits of other roles.
    pub sees_sessions: bool,
    /// The setting `track_activities`.
    pub tracks_activities: String,
    /// The setting `synchronous_commit`.
    pub synchronous_commit: String,
    /// The server is a standby.
    pub in_recovery: bool,
    /// `pg_stat_wal` exists.
    pub has_wal: bool,
    /// `pg_stat_io` exists.
    pub has_io: bool,
    /// `pg_stat_checkpointer` exists.
    pub has_checkpointer: bool,
    /// `pg_stat_lock` exists.
    pub has_locks: bool,
    /// The schema of `pg_stat_statements`, quoted, if the extension is installed.
    pub statements_schema: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// `pg_class.relkind`.
    pub kind: String,
    /// Its size in pages when it was last analysed.
    pub pages: i64,
    /// The doctor's role can read its rows.
    pub readable: bool,
    /// Reading its rows runs no code with the rights of a superuser.
    pub trusted: bool,
    /// Its unique keys, the primary key first.
    pub keys: Vec<UniqueKey>,
}

/// The columns of a unique index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UniqueKey {
    pub columns: Vec<String>,
}

impl Table {
    /// The columns of all its keys, each once. The values of a row are read in this order.
    pub fn key_columns(&self) -> Vec<&str> {
        let mut columns: Vec<&str> = Vec::new();
        for name in self.keys.iter().flat_map(|key| &key.columns) {
            if !columns.contains(&name.as_str()) {
                columns.push(name);
            }
        }
        columns
    }

    /// Its name as SQL needs it.
    pub fn quoted(&self) -> String {
        format!("{}.{}", identifier(&self.schema), identifier(&self.name))
    }

    /// Its name for people.
    pub fn full_name(&self) -> String {
        if self.schema == "public" { self.name.clone() } else { format!("{}.{}", self.schema, self.name) }
    }
}

/// A statement, and the gateway's decision about it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Statement {
    /// Its text with parameters in place of literals.
    pub shape: String,
    /// The types of the literals that were taken out.
    #[serde(default)]
    pub types: Vec<u32>,
    /// The counters, if `pg_stat_statements` has them: calls and time during the run.
    pub counters: Option<StatementCounters>,
    /// The gateway's decision. `None` if it was not asked.
    pub verdict: Option<RecordedVerdict>,
}

/// The verdict of the gateway about a statement, as plain data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RecordedVerdict {
    /// `packed`, `merged`, `passed through`, `transaction` (it begins or ends one) or `unknown`.
    pub name: String,
    /// Why.
    pub reason: String,
    /// What to write instead.
    pub remedy: Option<String>,
    /// The columns of its key, with the parameter (from zero) that has the value.
    pub key: Vec<(String, Option<u16>)>,
    /// Units on one row in one commit.
    pub rows_per_commit: Option<u16>,
    pub writes: bool,
}

impl RecordedVerdict {
    /// A lane would run it.
    pub fn is_packed(&self) -> bool {
        matches!(self.name.as_str(), "packed" | "merged")
    }

    /// It begins or ends a transaction.
    pub fn is_boundary(&self) -> bool {
        self.name == "transaction"
    }
}
