//! Why there is no report about a MariaDB server.

use hotrow_mysql_client::{OwnError, UpstreamError};

/// Why there is no report about a MariaDB server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the server.
    #[error(transparent)]
    Url(#[from] UpstreamError),
    /// An option of the doctor for PostgreSQL.
    #[error("{option} is for PostgreSQL, and the URL names a MariaDB server; {hint}")]
    Option {
        /// The option.
        option: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// The server cannot be reached, or refuses the login.
    #[error(
        "cannot connect to the server: {0}; check that the server runs, and address, user, password and database in the URL"
    )]
    Connect(OwnError),
    /// A question of the doctor failed.
    #[error(
        "the server rejects a query of the doctor about {what}: {source}; the doctor needs MariaDB 10.11 or a later version"
    )]
    Query {
        /// The subject.
        what: &'static str,
        /// The server's message.
        source: OwnError,
    },
    /// The connection is lost.
    #[error("the connection was lost during a query about {what}: {source}; run the doctor again")]
    Lost {
        /// The subject.
        what: &'static str,
        /// What happened.
        source: OwnError,
    },
    /// The server does not answer.
    #[error("the server does not answer within {0} s; check its load and the network")]
    Slow(u64),
    /// An answer has another form than expected.
    #[error("the server's answer about {0} cannot be read; report this with the server's version")]
    Answer(&'static str),
}

impl Error {
    /// The error of a query about this subject.
    pub(super) fn query(what: &'static str, source: OwnError) -> Self {
        match source {
            source @ OwnError::Socket(_) => Error::Lost { what, source },
            source => Error::Query { what, source },
        }
    }

    /// The number of the server's error, if it has refused a query.
    pub(super) fn number(&self) -> Option<u16> {
        match self {
            Error::Query { source: OwnError::Refused(refused), .. } => Some(refused.code),
            _ => None,
        }
    }
}
