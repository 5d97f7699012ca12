//! The errors of the benchmark, each with its next step. A failed check of a run is a result and not an error.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No private server could be started.
    #[error("cannot start a private PostgreSQL server for the benchmark: {0}")]
    Server(#[from] hotrow_postgres::Error),

    /// The standby does not catch up.
    #[error(
        "the private standby had not caught up with its server after {waited:?}: check that the disk has free space and is \
         fast enough, or leave out the techniques with a standby with --techniques"
    )]
    NoStandby {
        /// The time limit.
        waited: Duration,
    },

    /// The URL of `--upstream` or `--gateway` cannot be used.
    #[error("cannot use the URL {url:?}: {reason}; write it as postgres://user:password@host:port/database")]
    Url {
        /// The URL without its password.
        url: String,
        /// The problem with it.
        reason: String,
    },

    /// A gateway was named without its server.
    #[error("--gateway needs --upstream: name the gateway's server with --upstream")]
    GatewayWithoutUpstream,

    /// There is no program to start as the gateway.
    #[error(
        "there is no gateway {program}: build it with `cargo build --release --package hotrow`, or name it with --gateway-program"
    )]
    NoGatewayProgram {
        /// Where it is searched.
        program: PathBuf,
    },

    /// A report of the doctor cannot be used.
    #[error(
        "cannot make a load like that of {file}: {reason}; while the load runs, make a report with this version: hotrow doctor \
         --upstream URL --json FILE"
    )]
    Report { file: PathBuf, reason: String },

    /// No chosen scenario has the technique.
    #[error("the chosen scenarios have no technique {name:?}; choose from: {known}")]
    UnknownTechnique {
        /// The name in --techniques.
        name: String,
        /// The existing names.
        known: String,
    },

    /// pgbench is not installed.
    #[error(
        "pgbench, which makes the load, is not installed: install it (`apt install postgresql-contrib`, \
         `dnf install postgresql-contrib`, `brew install postgresql`) or name its folder in HOTROW_PG_BIN"
    )]
    NoPgbench,

    /// The server reports an error.
    #[error("the server failed to {what}: {reason}; check the user's rights and the server's log")]
    Refused {
        /// The action.
        what: &'static str,
        /// The error of the server or the connection.
        reason: String,
    },

    /// The schema of the benchmark exists.
    #[error(
        "the schema hotrow_bench exists on the server: another benchmark is running there, or one was killed; if it is not \
         needed, run `drop schema hotrow_bench cascade` and start again"
    )]
    SchemaExists,

    /// The hotrow schema exists and may have rows in use.
    #[error(
        "the schema hotrow exists on the server, and this scenario installs and drops it: name another database with --upstream, \
         or omit --upstream for a private server"
    )]
    PackExists,

    /// The hotrow schema cannot be installed.
    #[error("cannot install the hotrow schema: {0}")]
    Pack(#[source] hotrow_sql::Error),

    /// A program did not become ready.
    #[error("{program} did not become ready within {waited:?}; its last output: {printed}")]
    NotReady {
        program: PathBuf,
        /// The time limit.
        waited: Duration,
        /// The end of its output.
        printed: String,
    },

    /// A program ended before it was ready.
    #[error("{program} ended before it was ready; its last output: {printed}")]
    Ended {
        program: PathBuf,
        /// The end of its output.
        printed: String,
    },

    /// A file or a program of the benchmark cannot be used.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// The action.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },

    /// The runtime or a child process cannot be started.
    #[error("cannot {what}: {source}")]
    System {
        /// The action.
        what: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },

    /// The output of pgbench cannot be read.
    #[error("the output of pgbench has no line {missing:?}; use pgbench of version 14 to 18")]
    UnreadableOutput {
        /// The missing line.
        missing: &'static str,
    },

    /// The user interrupted the benchmark.
    #[error("interrupted: servers are stopped and the schema hotrow_bench is dropped; there is no report")]
    Interrupted,
}

impl Error {
    /// For `map_err` on an action with a file or a program.
    pub fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }

    /// For `map_err` on an action of the operating system.
    pub fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

/// The error of an action with the server's message.
pub fn refused(what: &'static str) -> impl FnOnce(tokio_postgres::Error) -> Error {
    move |error| {
        let reason = match error.as_db_error() {
            Some(reported) => format!("{} ({})", reported.message(), reported.code().code()),
            None => error.to_string(),
        };
        Error::Refused { what, reason }
    }
}
