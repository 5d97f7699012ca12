//! The errors of a private server, each with its next step.

use std::io;

/// Why there is no private server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server is installed.
    #[error(
        "no MariaDB server is installed: install one, for example with `apt install mariadb-server`, or add the folder of \
         mariadbd to PATH"
    )]
    NotInstalled,
    /// The operating system refuses something that the server needs.
    #[error(
        "{what}: {error}; check the rights and the free space of the folder for temporary files (TMPDIR)"
    )]
    System {
        /// What failed.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// The server refuses to run as root, and there is no other account.
    #[error(
        "there is neither an account mysql nor nobody, and the server refuses to run as root: run as another user"
    )]
    NoAccount,
    /// The server has ended.
    #[error("{what}; the server's log:\n{log}")]
    Server {
        /// What failed.
        what: &'static str,
        /// Its whole log.
        log: String,
    },
}

impl Error {
    /// For errors of the operating system.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Error::System { what, error }
    }
}
