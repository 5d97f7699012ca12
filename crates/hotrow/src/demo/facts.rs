//! Facts about the server for the demo's output, and the texts that depend on its kind.

use hotrow_core::page;
use serde::Serialize;

/// The server's version and the settings that decide whether an acknowledged sale is on disk.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ServerFacts {
    /// PostgreSQL.
    Postgres {
        /// For example 17.2.
        version: String,
        /// The setting of that name.
        fsync: String,
        /// The setting of that name.
        synchronous_commit: String,
    },
    /// MariaDB.
    MariaDb {
        /// For example 10.11.6-MariaDB.
        version: String,
        /// The setting of that name, or OFF without a binary log.
        binlog_format: String,
        /// The setting of that name.
        sync_binlog: String,
        /// The setting of that name.
        innodb_flush_log_at_trx_commit: String,
    },
}

impl ServerFacts {
    /// Whether a sale is on disk before its buyer gets the answer.
    pub fn durable(&self) -> bool {
        match self {
            Self::Postgres { fsync, synchronous_commit, .. } => fsync == "on" && synchronous_commit != "off",
            Self::MariaDb { sync_binlog, innodb_flush_log_at_trx_commit: flush, .. } => {
                sync_binlog == "1" && flush == "1"
            }
        }
    }

    /// The settings, for a person.
    pub fn settings(&self) -> String {
        match self {
            Self::Postgres { fsync, synchronous_commit, .. } => {
                format!("fsync {fsync}, synchronous_commit {synchronous_commit}")
            }
            Self::MariaDb { binlog_format, sync_binlog, innodb_flush_log_at_trx_commit, .. } => format!(
                "binary log {binlog_format}, sync_binlog {sync_binlog}, innodb_flush_log_at_trx_commit \
                 {innodb_flush_log_at_trx_commit}"
            ),
        }
    }

    /// The server's name and version.
    pub fn product(&self) -> String {
        match self {
            Self::Postgres { version, .. } => format!("PostgreSQL {version}"),
            Self::MariaDb { version, .. } => format!("MariaDB {version}"),
        }
    }

    /// How to find out why a statement is not packed.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Postgres { .. } => {
                "`hotrow explain \"UPDATE ...\"` tells whether a statement can be packed, and why."
            }
            Self::MariaDb { .. } => {
                concat!(page!("mysql/README.md"), " lists the statements that are packed.")
            }
        }
    }

    /// The next step.
    pub fn next(&self) -> &'static str {
        match self {
            Self::Postgres { .. } => {
                "  Next, with your own database and any PostgreSQL client:\n\
                \x20   hotrow serve --upstream postgres://USER@HOST/DB --listen 127.0.0.1:6432\n\
                \x20   psql -h 127.0.0.1 -p 6432 -U USER DB"
            }
            Self::MariaDb { .. } => {
                concat!(
                    "  Next, with your own server (a preview):\n\
                    \x20   hotrow serve --upstream mysql://GATE:PASSWORD@HOST --pack true\n\
                    \x20   mariadb --protocol=tcp -h 127.0.0.1 -P 6432 -u USER -p DB\n\
                    \x20 What the server needs: ",
                    page!("mysql/README.md")
                )
            }
        }
    }
}
