//! Why there is no report.

use std::path::PathBuf;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the server.
    #[error("{0}")]
    Url(#[from] hotrow_connect::config::UpstreamError),
    /// A MariaDB server.
    #[error(transparent)]
    MariaDb(#[from] crate::mariadb::Error),
    /// Shadow mode in front of MariaDB.
    #[error(
        "--shadow names a MariaDB server, and there is no shadow mode in front of MariaDB; give the URL without --shadow to examine the server"
    )]
    Shadow,
    /// The server cannot be reached.
    #[error(
        "cannot connect to the server: {0}; check that the server runs, and address, user and password in --upstream"
    )]
    Connect(#[from] hotrow_connect::driver::Error),
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
    /// The server does not answer.
    #[error("the server does not answer within 3 s; check its load and the network")]
    Slow,
    /// The connection is lost.
    #[error(
        "the server closed the doctor's connection during a query about {what}: {message}; run the doctor again"
    )]
    Lost {
        /// The subject.
        what: &'static str,
        /// The server's message, or the driver's.
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
    /// The gateway's console.
    #[error(
        "the gateway's console rejects SHOW SHADOW: {0}; check that the URL of --shadow names a gateway, and that its user can use the console (console_readers)"
    )]
    Console(String),
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
    /// The reason alone, for a page that asks again by itself: without the next step of a person who runs the doctor.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Error::Connect(error) => error.to_string(),
            Error::Lost { message, .. } => message.clone(),
            Error::Slow => "no answer within 3 s".to_owned(),
            error => error.to_string(),
        }
    }

    /// The error of a query about this subject.
    pub(crate) fn query(what: &'static str) -> impl Fn(tokio_postgres::Error) -> Self {
        move |error| {
            let message =
                error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
            // 57P01 to 57P05: an operator ends the session, or the server stops, crashes or starts.
            let is_end = error.code().is_some_and(|code| code.code().starts_with("57P0"));
            match is_end || error.is_closed() {
                true => Error::Lost { what, message },
                false => Error::Query { what, message },
            }
        }
    }
}
