//! Why there is no report.

use std::path::PathBuf;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be reached.
    #[error(
        "cannot connect to the server: {0}; check that the server runs, and address, user and password in --upstream"
    )]
    Connect(#[from] hotrow_gateway::driver::Error),
    /// A statement of the doctor failed.
    #[error(
        "the server rejects a query of the doctor about {what}: {message}; it needs PostgreSQL 14 or later and a database, not a pooler's console"
    )]
    Query {
        /// The subject.
        what: &'static str,
        /// The server's message.
        message: String,
    },
    /// An answer has another form than expected.
    #[error(
        "the server's answer about {what} cannot be read: {source}; report this with the server's version"
    )]
    Answer {
        /// The subject.
        what: &'static str,
        /// The reason.
        source: serde_json::Error,
    },
    /// A report cannot be written.
    #[error("cannot write {}: {source}; choose another file for --json or --html", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The operating system.
    #[error("the operating system reports: {0}")]
    System(#[from] std::io::Error),
}

impl Error {
    /// The error of a query about this subject.
    pub(crate) fn query(what: &'static str) -> impl Fn(tokio_postgres::Error) -> Self {
        move |error| {
            let message =
                error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
            Error::Query { what, message }
        }
    }
}
