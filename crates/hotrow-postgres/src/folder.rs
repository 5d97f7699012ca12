//! The folder of one server: data directory, socket directory, log, and a lock that its owner holds. Creating a
//! folder removes the folders of owners that have ended. This code never touches a folder without its owner file.
use crate::account::{Account, is_root};
use crate::{Error, home, process};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The length of a socket's path that every system allows: 103 bytes on macOS, 107 on Linux.
pub(crate) const LONGEST_SOCKET: usize = 103;

/// The folder's owner holds an exclusive lock on this file. The lock ends with the owner, even after `kill -9`.
const OWNER: &str = "owner";

/// The file of a kept folder whose data directory is complete. It is written last.
const FILLED: &str = "filled";

/// A server's folder. Dropping this value removes the folder, unless it is kept.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    is_kept: bool,
    _owner: Flock<File>,
}

impl Folder {
    /// Removes abandoned folders in `parent` and creates a new one there. Without `parent`, it uses Hotrow's
    /// folder for servers.
    pub(crate) fn create(parent: Option<&Path>, label: &str, account: &Account) -> Result<Folder, Error> {
        let candidates = match parent {
            Some(parent) => vec![(parent.to_owned(), std::path::absolute(parent))],
            None => home::candidates().into_iter().map(|h| (h.clone(), home::open(&h, "servers"))).collect(),
        };
        let mut tried = Vec::new();
        for (place, opened) in candidates {
            match opened.and_then(|parent| Folder::create_in(&parent, label)) {
                Ok(folder) => return folder.furnish(account),
                Err(error) => tried.push(format!("{}: {error}", place.display())),
            }
        }
        Err(Error::NoHome { tried: tried.join("; ") })
    }

    /// This holds the parent's lock, so that no process removes the folder between its creation and its lock.
    fn create_in(parent: &Path, label: &str) -> io::Result<Folder> {
        let _turn = lock(&parent.join(".hotrow.lock"), FlockArg::LockExclusive)?;
        sweep(parent)?;

        let mut number = 0;
        let path = loop {
            let path = parent.join(format!("{label}-{}-{number}", std::process::id()));
            if socket_file(&path.join("socket"), u16::MAX).as_os_str().len() > LONGEST_SOCKET {
                return Err(io::Error::other("its path is too long"));
            }
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                // The name belongs to another server of this process, or of a container that shares the folder but
                // not the process IDs.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        };
        let owner = lock(&path.join(OWNER), FlockArg::LockExclusive)?;
        Ok(Folder { path, is_kept: false, _owner: owner })
    }

    /// Opens a folder that is kept after its owner's end, or creates it. A server that an earlier owner has left in it is stopped.
    pub(crate) fn keep(path: &Path, account: &Account) -> Result<Folder, Error> {
        let opened = Folder::open_kept(path).map_err(Error::folder(path, "opened"))?;
        stop_orphan(&opened.path)?;
        if opened.is_filled() {
            return Ok(opened);
        }
        // The creation of its files was interrupted.
        for begun in [opened.data(), opened.socket()].iter().filter(|begun| begun.exists()) {
            fs::remove_dir_all(begun).map_err(Error::folder(begun, "removed"))?;
        }
        opened.furnish(account)
    }

    fn open_kept(path: &Path) -> io::Result<Folder> {
        let path = std::path::absolute(path)?;
        if socket_file(&path.join("socket"), u16::MAX).as_os_str().len() > LONGEST_SOCKET {
            let most = format!("the path of a socket in it can have at most {LONGEST_SOCKET} bytes");
            return Err(io::Error::other(format!("its path is too long; {most}")));
        }
        fs::create_dir_all(&path)?;
        let owner =
            lock(&path.join(OWNER), FlockArg::LockExclusiveNonblock).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => io::Error::other("another program uses it; wait for its end"),
                _ => error,
            })?;
        Ok(Folder { path, is_kept: true, _owner: owner })
    }

    /// Whether a kept folder has all files of a server.
    pub(crate) fn is_filled(&self) -> bool {
        self.is_kept && self.path.join(FILLED).exists()
    }

    /// Records that a kept folder has all files of a server.
    pub(crate) fn set_filled(&self) -> Result<(), Error> {
        let path = self.path.join(FILLED);
        if self.is_kept { fs::write(&path, "").map_err(Error::folder(&path, "written")) } else { Ok(()) }
    }

    /// Creates the directories that the server writes to, and gives the server's account and clients access to
    /// them.
    fn furnish(self, account: &Account) -> Result<Folder, Error> {
        for (folder, mode) in [(self.data(), 0o700), (self.socket(), 0o755)] {
            fs::create_dir(&folder).map_err(Error::folder(&folder, "created"))?;
            fs::set_permissions(&folder, Permissions::from_mode(mode))
                .map_err(Error::folder(&folder, "opened"))?;
            account.give(&folder)?;
        }
        if is_root() {
            fs::set_permissions(&self.path, Permissions::from_mode(0o711))
                .map_err(Error::folder(&self.path, "opened"))?;
        }
        Ok(self)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            remove(&self.path);
        }
    }
}

/// The owner file is removed last. If the removal fails or is interrupted, the next sweep removes the rest.
fn remove(path: &Path) {
    let _ = fs::remove_dir_all(path.join("data"));
    let _ = fs::remove_dir_all(path.join("socket"));
    if !path.join("data").exists() {
        let _ = fs::remove_dir_all(path);
    }
}

/// The socket that a server on `port` creates in its socket directory.
pub(crate) fn socket_file(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// Removes the folders of owners that have ended, and stops servers that still run in them.
fn sweep(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        if !path.join(OWNER).is_file() {
            continue;
        }
        // A locked folder is in use. A folder without permission to open or remove it is left alone.
        if let Ok(_owner) = lock(&path.join(OWNER), FlockArg::LockExclusiveNonblock)
            && stop_orphan(&path).is_ok()
        {
            remove(&path);
        }
    }
    Ok(())
}

/// Stops a server in the folder of an owner that has ended. The process ID in `postmaster.pid` may belong to
/// another process by now, so it is used only while the server's own socket answers. A server that has no socket
/// yet ends by itself: PostgreSQL checks once a minute whether its `postmaster.pid` still exists.
fn stop_orphan(path: &Path) -> Result<(), Error> {
    let Some(postmaster) = Postmaster::read(&path.join("data")) else { return Ok(()) };
    // The connection is closed before the server is told to quit, because the server would wait for a client that
    // is about to log in.
    let answers = UnixStream::connect(socket_file(&path.join("socket"), postmaster.port)).is_ok();
    if answers {
        process::quit(postmaster.pid)?;
        give_back_shared_memory(&path.join("data"));
    }
    Ok(())
}

/// A killed server leaves a segment of shared memory, which a restart would remove. Without a restart, the segment
/// would outlive the folder, and macOS allows only 32. Immediately after the server's end, the number certainly
/// still refers to its segment.
pub(crate) fn give_back_shared_memory(data: &Path) {
    if let Some(segment) = Postmaster::read(data).and_then(|killed| killed.shared_memory) {
        let _ = Command::new("ipcrm").arg("-m").arg(segment.to_string()).output();
    }
}

/// The contents of `postmaster.pid`, the file of a running or killed server in its data directory.
#[derive(Debug, PartialEq)]
struct Postmaster {
    pid: u32,
    port: u16,
    /// The segment of System V shared memory that prevents two servers from using one data directory.
    shared_memory: Option<u32>,
}

impl Postmaster {
    fn read(data: &Path) -> Option<Postmaster> {
        Postmaster::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<Postmaster> {
        let lines: Vec<&str> = text.lines().collect();
        Some(Postmaster {
            pid: lines.first()?.trim().parse().ok()?,
            port: lines.get(3)?.trim().parse().ok()?,
            shared_memory: lines.get(6).and_then(|line| line.split_whitespace().nth(1)?.parse().ok()),
        })
    }
}

pub(crate) fn lock(path: &Path, how: FlockArg) -> io::Result<Flock<File>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    Flock::lock(file, how).map_err(|(_, error)| error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_ended_owners_with_an_owner_file_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let (dead, foreign) = (parent.path().join("demo-1-0"), parent.path().join("photos"));
        for folder in [&dead, &foreign] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), "").unwrap();
        }
        fs::write(dead.join(OWNER), "").unwrap();

        let first = Folder::create(Some(parent.path()), "demo", &Account::Ourselves).unwrap();
        let second = Folder::create(Some(parent.path()), "demo", &Account::Ourselves).unwrap();
        assert!(!dead.exists());
        assert!(foreign.join("file").exists());
        assert!(first.data().is_dir() && second.data().is_dir(), "a folder in use was removed");
        assert_ne!(first.path(), second.path());

        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn a_kept_folder_stays_and_has_one_owner() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run/server");
        let first = Folder::keep(&path, &Account::Ourselves).unwrap();
        fs::write(first.data().join("begun"), "").unwrap();
        let error = Folder::keep(&path, &Account::Ourselves).unwrap_err();
        assert!(error.to_string().contains("another program uses it"), "{error}");
        drop(first);

        let second = Folder::keep(&path, &Account::Ourselves).unwrap();
        assert!(!second.data().join("begun").exists(), "the files of an interrupted creation were used");
        fs::write(second.data().join("row"), "").unwrap();
        second.set_filled().unwrap();
        drop(second);
        let third = Folder::keep(&path, &Account::Ourselves).unwrap();
        assert!(third.is_filled() && third.data().join("row").exists());
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let long = parent.path().join("x".repeat(90));
        fs::create_dir(&long).unwrap();
        let error = Folder::create(Some(&long), "demo", &Account::Ourselves).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
        assert_eq!(fs::read_dir(&long).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).count(), 0);
    }

    #[test]
    fn the_pid_file_is_parsed_as_postgresql_writes_it() {
        let text = "4711\n/x/data\n1790000000\n15432\n/x/socket\n127.0.0.1\n  5300001    196608\nready   \n";
        let read = Postmaster::parse(text);
        assert_eq!(read, Some(Postmaster { pid: 4711, port: 15432, shared_memory: Some(196_608) }));
        // The server writes the lines one by one during startup.
        assert_eq!(Postmaster::parse("4711\n/x/data\n"), None);
        assert_eq!(Postmaster::parse(""), None);
    }
}
