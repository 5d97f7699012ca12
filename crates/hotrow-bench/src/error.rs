//! What can keep the benchmark from giving figures, and what to do about it; a run whose check fails is no error but a result.

use std::path::PathBuf;
use std::time::Duration;

/// Why no report could be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No private server could be started.
    #[error("no private PostgreSQL server for the benchmark: {0}")]
    Server(#[from] hotrow_postgres::Error),

    /// The URL of `--upstream` or `--gateway` can't be used.
    #[error("{url:?} can't be used: {reason}; write it as postgres://user:password@host:port/database")]
    Url {
        /// What was given, without its password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A gateway was named, but not the server behind it.
    #[error("--gateway also needs --upstream: name the server that the gateway stands before")]
    GatewayWithoutUpstream,

    /// A technique that no chosen scenario has.
    #[error("there is no technique {name:?} in the chosen scenarios; there is {known}")]
    UnknownTechnique {
        /// What was asked for.
        name: String,
        /// What could have been.
        known: String,
    },

    /// pgbench isn't on this machine.
    #[error(
        "pgbench is not on this machine; it makes the load: install it (`apt install postgresql-contrib`, \
         `dnf install postgresql-contrib`, `brew install postgresql`) or name the folder that holds it in HOTROW_PG_BIN"
    )]
    NoPgbench,

    /// The server refused what the benchmark needs to do on it.
    #[error("the server refused to {what}: {reason}")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// What the server or the connection said.
        reason: String,
    },

    /// The schema of an earlier benchmark, or of somebody else, is in the way.
    #[error(
        "the schema hotrow_bench exists on the server already: another benchmark is running there, or one was killed; \
         if nobody needs it, `drop schema hotrow_bench cascade` and start again"
    )]
    SchemaExists,

    /// The schema pack is there already, with rows that may be somebody's.
    #[error(
        "the schema hotrow exists on the server already, and this scenario installs and drops it: name another database, \
         or no server at all to have a private one"
    )]
    PackExists,

    /// The schema pack couldn't be installed.
    #[error("the schema pack could not be installed: {0}")]
    Pack(#[source] hotrow_sql::Error),

    /// A program that was started didn't get ready.
    #[error("{program} did not get ready within {waited:?}: {said}")]
    NotReady {
        /// Which one.
        program: PathBuf,
        /// How long was waited for it.
        waited: Duration,
        /// The last it said.
        said: String,
    },

    /// A program ended before it was ready.
    #[error("{program} ended before it was ready: {said}")]
    Ended {
        /// Which one.
        program: PathBuf,
        /// The last it said.
        said: String,
    },

    /// A file or a program of the benchmark's own couldn't be used.
    #[error("can't {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// The runtime, or a child process, couldn't be had from the system.
    #[error("the system refused to {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },

    /// pgbench said something that this program can't read.
    #[error("pgbench's output has no line {missing:?}: is its version between 14 and 18?")]
    UnreadableOutput {
        /// The line that is missing.
        missing: &'static str,
    },

    /// The person ended it.
    #[error("interrupted: servers are stopped and the schema hotrow_bench is dropped, nothing was reported")]
    Interrupted,
}

/// Says what was tried, and what the server itself said about it.
pub fn refused(what: &'static str) -> impl FnOnce(tokio_postgres::Error) -> Error {
    move |error| {
        let reason = match error.as_db_error() {
            Some(said) => format!("{} ({})", said.message(), said.code().code()),
            None => error.to_string(),
        };
        Error::Refused { what, reason }
    }
}
