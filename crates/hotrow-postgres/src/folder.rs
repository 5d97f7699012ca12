//! One server's folder: data directory, socket directory, log, and the lock that says that its owner lives.
//! Folders whose owner died are swept when the next one is made. Never touches a folder without our owner
//! file.
use crate::account::{Account, is_root};
use crate::{Error, home, process};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The length that every system allows a socket's path: macOS takes 103 bytes, Linux 107.
pub(crate) const LONGEST_SOCKET: usize = 103;

/// Holds an exclusive lock for as long as the folder's owner lives, `kill -9` included.
const OWNER: &str = "owner";

/// A server's folder. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _owner: Flock<File>,
}

impl Folder {
    /// Sweeps `parent` and makes a new folder in it, or where Hotrow keeps its servers if none is given.
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

    /// Under the parent's lock, so that nobody sweeps the folder between its making and its locking.
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
                // Another server of this process, or of a container that shares the folder but not the ids.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        };
        let owner = lock(&path.join(OWNER), FlockArg::LockExclusive)?;
        Ok(Folder { path, _owner: owner })
    }

    /// Makes what the server writes to, and opens the way to it for the server's account and for clients.
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
        remove(&self.path);
    }
}

/// The owner file goes last: what can't be removed now, or is interrupted, is left to the next sweep.
fn remove(path: &Path) {
    let _ = fs::remove_dir_all(path.join("data"));
    let _ = fs::remove_dir_all(path.join("socket"));
    if !path.join("data").exists() {
        let _ = fs::remove_dir_all(path);
    }
}

/// The socket that a server on `port` makes in its socket directory.
pub(crate) fn socket_file(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// Removes the folders whose owners are dead, and stops the servers that still run in them.
fn sweep(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        if !path.join(OWNER).is_file() {
            continue;
        }
        // A folder that is locked lives; one that is not ours to open or to remove is left alone.
        if let Ok(_owner) = lock(&path.join(OWNER), FlockArg::LockExclusiveNonblock)
            && stop_orphan(&path).is_ok()
        {
            remove(&path);
        }
    }
    Ok(())
}

/// Stops the server that runs in a dead owner's folder. The process id in `postmaster.pid` may belong to
/// somebody else by now, so it counts only while somebody answers on the server's own socket. A server too
/// young to have one ends by itself: PostgreSQL looks once a minute whether its `postmaster.pid` is still
/// there.
fn stop_orphan(path: &Path) -> Result<(), Error> {
    let Some(postmaster) = Postmaster::read(&path.join("data")) else { return Ok(()) };
    // Closed before the server is told to quit: it would wait for a client that is about to log in.
    let answers = UnixStream::connect(socket_file(&path.join("socket"), postmaster.port)).is_ok();
    if answers {
        process::quit(postmaster.pid)?;
        give_back_shared_memory(&path.join("data"));
    }
    Ok(())
}

/// A server that was killed leaves a segment of shared memory behind, which its restart would have removed.
/// Without one it would outlive the folder, and macOS has room for 32. Right after the server's end, the
/// number is surely still its.
pub(crate) fn give_back_shared_memory(data: &Path) {
    if let Some(segment) = Postmaster::read(data).and_then(|killed| killed.shared_memory) {
        let _ = Command::new("ipcrm").arg("-m").arg(segment.to_string()).output();
    }
}

/// What a running server, or one that was killed, says about itself in its data directory.
#[derive(Debug, PartialEq)]
struct Postmaster {
    pid: u32,
    port: u16,
    /// The segment of System V shared memory that keeps two servers from one data directory.
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

fn lock(path: &Path, how: FlockArg) -> io::Result<Flock<File>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    Flock::lock(file, how).map_err(|(_, error)| error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_with_an_owner_file_and_a_dead_owner_are_swept() {
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
        assert!(first.data().is_dir() && second.data().is_dir(), "a living folder was swept");
        assert_ne!(first.path(), second.path());

        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_too_long_for_a_socket_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let long = parent.path().join("x".repeat(90));
        fs::create_dir(&long).unwrap();
        let error = Folder::create(Some(&long), "demo", &Account::Ourselves).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
        assert_eq!(fs::read_dir(&long).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).count(), 0);
    }

    #[test]
    fn the_pid_file_is_read_as_postgresql_writes_it() {
        let text = "4711\n/x/data\n1790000000\n15432\n/x/socket\n127.0.0.1\n  5300001    196608\nready   \n";
        let read = Postmaster::parse(text);
        assert_eq!(read, Some(Postmaster { pid: 4711, port: 15432, shared_memory: Some(196_608) }));
        // The lines come one by one during start-up.
        assert_eq!(Postmaster::parse("4711\n/x/data\n"), None);
        assert_eq!(Postmaster::parse(""), None);
    }
}
