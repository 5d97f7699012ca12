//! The errors of the demo, each with its next step. A failed check is a result and no error.

use std::io;
use std::time::Duration;

use thiserror::Error;

/// Why the demo failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The runtime or a signal handler could not be set up.
    #[error("cannot start: {0}; check the limits of threads and open files with ulimit -a")]
    Runtime(#[source] io::Error),
    /// The private server could not be started.
    #[error("cannot start a PostgreSQL server for the demo: {0}")]
    Server(#[from] hotrow_postgres::Error),
    /// The private MariaDB server could not be started.
    #[error("cannot start a MariaDB server for the demo: {0}")]
    MariaDb(#[from] hotrow_mariadb::Error),
    /// The table on the private MariaDB server cannot be created or read.
    #[error("cannot use the demo's table on the private MariaDB server: {0}; please report this as a bug")]
    MariaDbTable(#[from] hotrow_mysql_client::OwnError),
    /// A task of the demo panicked.
    #[error("a task of the demo failed: {0}; please report this as a bug")]
    Task(#[from] tokio::task::JoinError),
    /// The URL cannot be read.
    #[error("cannot read the URL given with --upstream: {0}; write postgres://USER@HOST:PORT/DATABASE")]
    Url(#[source] tokio_postgres::Error),
    /// The URL lacks a part that the buyers need.
    #[error("the URL given with --upstream names no {0}; write postgres://USER@HOST:PORT/DATABASE")]
    Incomplete(&'static str),
    /// The demo cannot connect to the server.
    #[error("cannot connect to {address}: {}; check address, user and password in --upstream", chain(.source))]
    Connect {
        /// Host and port.
        address: String,
        /// The driver's error.
        source: tokio_postgres::Error,
    },
    /// The table cannot be created or read.
    #[error("cannot use the demo's table: {}; the user of --upstream needs the right to create a schema", chain(.0))]
    Table(#[from] tokio_postgres::Error),
    /// Another demo runs in this database.
    #[error("another `hotrow demo` runs in this database: wait until it ends, or use another database")]
    Claimed,
    /// A schema with this name exists, and no demo created it.
    #[error("the schema hotrow_demo exists, and no demo created it: rename it, or use another database")]
    Taken,
    /// The gateway could not be started.
    #[error("the gateway did not start: {detail}; run `hotrow serve --upstream URL` to see why")]
    Gateway {
        /// The gateway's log, or the operating system's error.
        detail: String,
    },
    /// A buyer's connection was lost.
    #[error("lost the connection to {address}: {source}; check the log of that server")]
    Line {
        /// Host and port.
        address: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A buyer could not log in or prepare the purchase.
    #[error("{address} rejects a buyer: {answer}; if there are too many clients, use fewer --buyers")]
    TurnedAway {
        /// Host and port.
        address: String,
        /// The server's error.
        answer: String,
    },
    /// No buyer got an answer for a long time.
    #[error("{address} has not answered for {} s; check its log", .after.as_secs())]
    Silent {
        /// Host and port.
        address: String,
        /// How long the demo waited.
        after: Duration,
    },
    /// One of the three errors above, and the gateway's log.
    #[error("{error}; the last lines of the gateway's log: {words}")]
    Explained {
        /// The buyers' error.
        error: Box<Error>,
        /// The end of the gateway's log.
        words: String,
    },
    /// No purchase succeeded, and there is nothing to compare.
    #[error("{address} sold nothing: {answer}; check its log")]
    NothingSold {
        /// Host and port.
        address: String,
        /// The first error, or that all purchases were refused.
        answer: String,
    },
    /// Standard output is closed.
    #[error("cannot write to standard output: {0}; check the pipe or file that it goes to")]
    Print(#[source] io::Error),
    /// A signal asked the demo to stop.
    #[error("stopped")]
    Stopped,
}

/// The driver's error with its cause, which is in its source.
fn chain(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(answer) => answer.to_string(),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
