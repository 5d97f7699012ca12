//! The account that the server runs as. PostgreSQL refuses to run as root, so root starts the server as `postgres`
//! or `nobody`. Other users run it under their own account. This code never creates an account.
use crate::Error;
use nix::unistd::{User, geteuid};
use std::ffi::OsStr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The owner of the server's processes and files.
#[derive(Debug)]
pub(crate) enum Account {
    Ourselves,
    Other { name: String, uid: u32, gid: u32 },
}

/// Whether this program runs as root.
pub(crate) fn is_root() -> bool {
    geteuid().is_root()
}

impl Account {
    /// Chooses the account for servers.
    pub(crate) fn choose() -> Result<Account, Error> {
        if !is_root() {
            return Ok(Account::Ourselves);
        }
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| User::from_name(name).ok().flatten())
            .map(|user| Account::Other { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() })
            .ok_or(Error::NoAccount)
    }

    /// The account's name, if it is not the caller's own.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Account::Ourselves => None,
            Account::Other { name, .. } => Some(name.clone()),
        }
    }

    /// Makes the account the owner of a file or folder.
    pub(crate) fn give(&self, path: &Path) -> Result<(), Error> {
        match self {
            Account::Ourselves => Ok(()),
            Account::Other { uid, gid, .. } => chown(path, Some(*uid), Some(*gid))
                .map_err(Error::folder(path, "given to the server's account")),
        }
    }

    /// A command that runs as the account, in `folder`, without the caller's environment variables for PostgreSQL.
    pub(crate) fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).stdin(Stdio::null()).env("LC_ALL", "C");
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_libpq(name)) {
            command.env_remove(name);
        }
        if let Account::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid);
        }
        command
    }
}

/// PGPORT, PGDATA and similar variables would change the behaviour of a private server.
fn is_libpq(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"PG")
}
