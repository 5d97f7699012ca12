//! What can go wrong with a private server, each with what to do about it. Never a refusal of the gateway.
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no server, or why it did not do as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither installed nor to be fetched.
    #[error(
        "no PostgreSQL {} or later was found on this machine. Install one (`apt install postgresql`, `brew \
         install postgresql@17`), name its bin directory in HOTROW_PG_BIN, or pass --upstream with the URL of \
         a running server. Downloading one failed too: {fetch}",
        crate::OLDEST
    )]
    NoBinaries {
        /// Why it could not be fetched either.
        fetch: String,
    },

    /// A directory that was named or found holds no usable server.
    #[error(
        "{} holds no PostgreSQL server that can be used: {reason}. HOTROW_PG_BIN must name a directory with \
         `postgres` and `initdb` of version {} or later, such as /usr/lib/postgresql/17/bin",
        dir.display(),
        crate::OLDEST
    )]
    BinDir {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// There are no binaries to fetch for this machine.
    #[error("there are no server binaries to download for {platform}")]
    Platform {
        /// Operating system and processor.
        platform: String,
    },

    /// The download did not arrive.
    #[error(
        "{url} could not be downloaded: {reason}. HTTPS_PROXY and SSL_CERT_FILE are obeyed, a small container \
         may lack the package ca-certificates, and HOTROW_MAVEN_URL names another mirror"
    )]
    Download {
        /// What was asked for.
        url: String,
        /// Why it did not come.
        reason: String,
    },

    /// The download is not the archive this program was built to trust.
    #[error(
        "{url} was refused: its SHA-256 is {found}, not {expected}. Something on the way changed it, or \
         HOTROW_MAVEN_URL names a mirror that serves other files"
    )]
    Checksum {
        /// What was downloaded.
        url: String,
        /// The pinned checksum.
        expected: String,
        /// The checksum of what came.
        found: String,
    },

    /// The archive arrived whole and can't be unpacked.
    #[error("the downloaded server binaries could not be unpacked: {reason}")]
    Archive {
        /// What the archive reader said.
        reason: String,
    },

    /// Running as root on a machine without an account to run the server as.
    #[error(
        "PostgreSQL refuses to run as root, and this machine has neither an account `postgres` nor `nobody`: \
         run Hotrow as an ordinary user"
    )]
    NoAccount,

    /// A file or folder could not be used.
    #[error("{} could not be {action}: {source}", path.display())]
    Folder {
        /// Which one.
        path: PathBuf,
        /// "created", "written", ...
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },

    /// No place for a server's folder whose socket path is short enough.
    #[error(
        "no folder for a private server could be made ({tried}): it must be writable, and short enough \
         that the path of a Unix socket in it has at most {} bytes. Set XDG_CACHE_HOME to such a folder",
        crate::folder::LONGEST_SOCKET
    )]
    NoHome {
        /// The places that were tried, and why each was not taken.
        tried: String,
    },

    /// A setting that the server's owner may not choose, or that can't be written down.
    #[error("the setting `{name}` can't be given to a private server: {reason}")]
    Setting {
        /// The setting's name as given.
        name: String,
        /// Why not.
        reason: &'static str,
    },

    /// A program of PostgreSQL did not start at all.
    #[error(
        "{} could not be run{}: {source}",
        program.display(),
        account.as_deref().map(|name| format!(" as {name}")).unwrap_or_default()
    )]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The account it was to run as, if another one than ours.
        account: Option<String>,
        /// What the system said.
        source: io::Error,
    },

    /// `initdb` failed.
    #[error("initdb failed: {output}")]
    Initdb {
        /// What it printed.
        output: String,
    },

    /// A server's folder could not be copied.
    #[error("the folder for a standby could not be copied: {output}")]
    Copy {
        /// What was printed.
        output: String,
    },

    /// The server ended during start-up, or did not get ready in time.
    #[error("the private server {how}. The end of its log:\n{log}")]
    Start {
        /// What happened.
        how: String,
        /// The last lines of its log.
        log: String,
    },

    /// The server runs with less durability than was asked for, which makes every figure measured on it a
    /// lie.
    #[error(
        "the private server runs with {name} = {found}, not on: nothing may be measured on it. \
         Use other binaries, or set {name} in words if that is wanted"
    )]
    NotDurable {
        /// Which setting.
        name: &'static str,
        /// What it is.
        found: String,
    },

    /// The server refused a query.
    #[error("the server refused `{sql}`: {message} (SQLSTATE {sqlstate})")]
    Refused {
        /// What was asked.
        sql: String,
        /// The error code.
        sqlstate: String,
        /// What the server said.
        message: String,
    },

    /// The connection for a query failed.
    #[error("the private server could not be asked `{sql}`: {source}. Has it been stopped?")]
    Connection {
        /// What was asked.
        sql: String,
        /// What the connection said.
        source: io::Error,
    },

    /// A process could not be signalled, or outlived the signal.
    #[error("process {pid} could not be ended: {reason}")]
    Process {
        /// The process.
        pid: u32,
        /// Why not.
        reason: String,
    },
}

impl Error {
    /// For `map_err` on what std::fs does to `path`.
    pub(crate) fn folder(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Folder { path, action, source }
    }
}
