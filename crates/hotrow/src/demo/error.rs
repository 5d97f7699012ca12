//! What can go wrong in the demo, each with what to do about it. Never a failed check: that is a result.

use std::io;
use std::time::Duration;

use thiserror::Error;

/// Why the demo could not be shown.
#[derive(Debug, Error)]
pub enum Error {
    /// The runtime or a signal handler could not be set up.
    #[error("cannot start: {0}; look at the limits for threads and open files (ulimit -a)")]
    Runtime(#[source] io::Error),
    /// The private server could not be started.
    #[error("cannot start a PostgreSQL for the demo: {0}")]
    Server(#[from] hotrow_postgres::Error),
    /// A task of the demo's own panicked.
    #[error("a part of the demo went down: {0}; please report this")]
    Task(#[from] tokio::task::JoinError),
    /// The URL can't be read.
    #[error("cannot read the URL given with --upstream: {0}; write postgres://USER@HOST:PORT/DATABASE")]
    Url(#[source] tokio_postgres::Error),
    /// The URL leaves out what the buyers need.
    #[error("the URL given with --upstream names no {0}; write postgres://USER@HOST:PORT/DATABASE")]
    Incomplete(&'static str),
    /// The server does not let the demo in.
    #[error("cannot connect to {address}: {}; look at address, user and password", chain(.source))]
    Connect {
        /// Host and port.
        address: String,
        /// What the driver says.
        source: tokio_postgres::Error,
    },
    /// The shop can't be set up or read.
    #[error("the demo's table cannot be used: {}; the role needs the right to create a schema", chain(.0))]
    Table(#[from] tokio_postgres::Error),
    /// Another demo works in this database.
    #[error("another `hotrow demo` is at work in this database: wait for its end, or use another database")]
    Claimed,
    /// A schema of the demo's name that someone else made.
    #[error("the schema hotrow_demo exists and is not the demo's own: rename it, or use another database")]
    Taken,
    /// The gateway could not be started.
    #[error("the gateway did not start: {detail}; run `hotrow serve --upstream URL` to see why")]
    Gateway {
        /// What it said, or what the system said.
        detail: String,
    },
    /// A buyer's connection was lost.
    #[error("lost the connection to {address}: {source}; look at the log of that server")]
    Line {
        /// Host and port.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// A buyer was not let in, or could not prepare the purchase.
    #[error("{address} turns a buyer away: {answer}; with \"too many clients\", try fewer --buyers")]
    TurnedAway {
        /// Host and port.
        address: String,
        /// The server's own words.
        answer: String,
    },
    /// No buyer got an answer for a long time.
    #[error("{address} has not answered for {} s; look at its log", .after.as_secs())]
    Silent {
        /// Host and port.
        address: String,
        /// How long the demo waited.
        after: Duration,
    },
    /// One of the three above, and what the gateway had to say.
    #[error("{error}; the last words of the gateway: {words}")]
    Explained {
        /// What the buyers met.
        error: Box<Error>,
        /// The end of the gateway's log.
        words: String,
    },
    /// Not one purchase went through, so there is nothing to compare.
    #[error("{address} sold nothing: {answer}; look at its log")]
    NothingSold {
        /// Host and port.
        address: String,
        /// The first refusal that was given as an error.
        answer: String,
    },
    /// The terminal or pipe is gone.
    #[error("cannot print: {0}; look at the pipe or file behind stdout")]
    Print(#[source] io::Error),
    /// Someone asked the demo to stop.
    #[error("stopped")]
    Stopped,
}

/// The driver keeps the telling half of an error in its source.
fn chain(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(answer) => answer.to_string(),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
