//! The errors of a private server, each with its next step.
use crate::account::Account;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The reason why there is no server, or why a request to it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No server is installed, and none can be downloaded.
    #[error(
        "no PostgreSQL {} or later was found on this machine. Install one (`apt install postgresql`, `brew \
         install postgresql@17`), name its bin directory in HOTROW_PG_BIN, or pass --upstream with the URL of \
         a running server. The download of a server also failed: {fetch}",
        crate::OLDEST
    )]
    NoBinaries {
        /// The error of the download.
        fetch: String,
    },

    /// A directory has no usable server.
    #[error(
        "{} has no usable PostgreSQL server: {reason}. HOTROW_PG_BIN must name a directory with \
         `postgres` and `initdb` of version {} or later, such as /usr/lib/postgresql/17/bin",
        dir.display(),
        crate::OLDEST
    )]
    BinDir {
        /// The directory.
        dir: PathBuf,
        /// The problem with it.
        reason: String,
    },

    /// There are no binaries to download for this machine.
    #[error("there are no binaries of PostgreSQL {version} to download for {platform}")]
    Platform {
        /// Operating system and processor.
        platform: String,
        /// The major version.
        version: u32,
    },

    /// The download failed.
    #[error(
        "cannot download {url}: {reason}. Check the proxy (HTTPS_PROXY) and the certificates (SSL_CERT_FILE, or the \
         package ca-certificates in a small container), or name another mirror in HOTROW_MAVEN_URL"
    )]
    Download { url: String, reason: String },

    /// The checksum of the download is wrong.
    #[error(
        "the file from {url} was rejected: its SHA-256 is {found} and must be {expected}. A proxy may have changed it, or \
         the mirror in HOTROW_MAVEN_URL has other files"
    )]
    Checksum {
        url: String,
        /// The pinned checksum.
        expected: String,
        /// The checksum of the download.
        found: String,
    },

    /// The archive cannot be unpacked.
    #[error("cannot unpack the downloaded server binaries: {reason}")]
    Archive {
        /// The archive reader's error.
        reason: String,
    },

    /// Running as root on a machine without an account to run the server as.
    #[error(
        "PostgreSQL refuses to run as root, and this machine has neither an account `postgres` nor `nobody`: \
         run Hotrow as an ordinary user"
    )]
    NoAccount,

    /// A file or folder cannot be used.
    #[error("{} could not be {action}: {source}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// "created", "written", ...
        action: &'static str,
        /// The operating system's error.
        source: io::Error,
    },

    /// There is no place for a server's folder with a short enough socket path.
    #[error(
        "cannot create a folder for a private server ({tried}): the folder must be writable, and the path of a Unix socket \
         in it can have at most {} bytes. Set XDG_CACHE_HOME to such a folder",
        crate::folder::LONGEST_SOCKET
    )]
    NoHome {
        /// The places, and why each cannot be used.
        tried: String,
    },

    /// A setting that the private server determines, or that cannot be written to its file.
    #[error("cannot set `{name}` for a private server: {reason}")]
    Setting {
        /// The setting's name.
        name: String,
        reason: &'static str,
    },

    /// A program of PostgreSQL cannot be started.
    #[error(
        "cannot run {}{}: {source}",
        program.display(),
        account.as_deref().map(|name| format!(" as {name}")).unwrap_or_default()
    )]
    Spawn {
        program: PathBuf,
        /// The account for it, if it is not the caller's own.
        account: Option<String>,
        /// The operating system's error.
        source: io::Error,
    },

    /// `initdb` failed.
    #[error("initdb failed: {output}")]
    Initdb { output: String },

    /// The server ended during startup, or did not get ready in time.
    #[error("the private server {how}. The end of its log:\n{log}")]
    Start {
        /// The failure.
        how: String,
        /// The last lines of its log.
        log: String,
    },

    /// The server runs with less durability than requested, which would make every figure wrong.
    #[error(
        "the private server runs with {name} = {found} instead of on, so figures from it would be wrong. Use other binaries, or \
         set {name} explicitly"
    )]
    NotDurable {
        /// The setting.
        name: &'static str,
        /// Its value.
        found: String,
    },

    /// The server rejected a query.
    #[error("the server rejected `{sql}`: {message} (SQLSTATE {sqlstate})")]
    Refused {
        /// The query.
        sql: String,
        /// The error code.
        sqlstate: String,
        /// The server's message.
        message: String,
    },

    /// The connection for a query failed.
    #[error("cannot run `{sql}` on the private server: {source}. Check whether it is still running")]
    Connection {
        /// The query.
        sql: String,
        /// The connection's error.
        source: io::Error,
    },

    /// A process cannot be signalled, or survived the signal.
    #[error("cannot end process {pid}: {reason}")]
    Process {
        /// The process.
        pid: u32,
        reason: String,
    },
}

impl Error {
    /// For `map_err` on the start of a program.
    pub(crate) fn spawn(command: &Command, account: &Account) -> impl FnOnce(io::Error) -> Error {
        let (program, account) = (command.get_program().into(), account.name());
        move |source| Error::Spawn { program, account, source }
    }

    /// For `map_err` on an operation of std::fs on `path`.
    pub(crate) fn folder(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Folder { path, action, source }
    }
}
