//! Finds a directory of working server binaries. It never starts a server.
use crate::account::Account;
use crate::{Error, search};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread::sleep;
use std::time::Duration;

/// The oldest major version of PostgreSQL that Hotrow works with.
pub const OLDEST: u32 = 14;

const BUSY_TRIES: usize = 100;
const BUSY_WAIT: Duration = Duration::from_millis(10);

/// The progress of a download, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes received so far.
    pub received: u64,
    /// Total size, if the repository reports it.
    pub total: Option<u64>,
}

/// The binaries of one PostgreSQL server: `postgres`, `initdb`, and other programs in the same directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    dir: PathBuf,
    version: String,
}

impl Binaries {
    /// The same as [`find_with`](Self::find_with), without progress reports.
    pub fn find() -> Result<Binaries, Error> {
        Binaries::find_with(|_| ())
    }

    /// The binaries that HOTROW_PG_BIN names, or else installed ones, or else downloaded ones. A download calls
    /// `progress`.
    pub fn find_with(progress: impl FnMut(Progress)) -> Result<Binaries, Error> {
        match Binaries::installed()? {
            Some(binaries) => Ok(binaries),
            None => fetch(progress).map_err(|error| Error::NoBinaries { fetch: error.to_string() }),
        }
    }

    /// The binaries that HOTROW_PG_BIN names, or else the first usable ones in the usual directories.
    pub fn installed() -> Result<Option<Binaries>, Error> {
        if let Some(dir) = std::env::var_os("HOTROW_PG_BIN").filter(|dir| !dir.is_empty()) {
            return Binaries::in_dir(Path::new(&dir)).map(Some);
        }
        Ok(search::places().iter().find_map(|dir| Binaries::in_dir(dir).ok()))
    }

    /// The binaries of the default version from Maven Central: from the cache, or downloaded into it.
    #[cfg(feature = "fetch")]
    pub fn fetch(progress: impl FnMut(Progress)) -> Result<Binaries, Error> {
        crate::fetch::pinned(progress)
    }

    /// The same for a major version, such as 14.
    #[cfg(feature = "fetch")]
    pub fn fetch_version(version: u32, progress: impl FnMut(Progress)) -> Result<Binaries, Error> {
        crate::fetch::of_version(version, progress)
    }

    /// The binaries in this directory, if they are complete, run on this machine, and are not too old.
    pub fn in_dir(dir: &Path) -> Result<Binaries, Error> {
        // The path must be absolute, because the programs run in other directories.
        let dir = &std::path::absolute(dir).map_err(Error::folder(dir, "found"))?;
        let unusable = |reason: String| Error::BinDir { dir: dir.clone(), reason };
        if let Some(missing) = ["postgres", "initdb"].into_iter().find(|name| !dir.join(name).is_file()) {
            return Err(unusable(format!("it has no `{missing}`")));
        }
        let output = ask_version(&dir.join("postgres")).map_err(|error| unusable(error.to_string()))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let version = parse_version(&printed).filter(|_| output.status.success()).ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            unusable(
                format!("`postgres --version` fails ({}): {printed}{said}", output.status).trim().to_owned(),
            )
        })?;
        if major(version) < OLDEST {
            return Err(unusable(format!("it is version {version}")));
        }
        Ok(Binaries { dir: dir.to_owned(), version: version.to_owned() })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The version, such as `15.18`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The path of another program, such as `psql` or `pgbench`, in the server's directory or on PATH. Downloaded
    /// binaries include neither of these two.
    pub fn tool(&self, name: &str) -> Option<PathBuf> {
        std::iter::once(self.dir.clone())
            .chain(search::path())
            .map(|dir| dir.join(name))
            .find(|file| file.is_file())
    }
}

#[cfg(feature = "fetch")]
use crate::fetch::pinned as fetch;

#[cfg(not(feature = "fetch"))]
fn fetch(_: impl FnMut(Progress)) -> Result<Binaries, &'static str> {
    Err("this build of Hotrow has no downloader")
}

/// A program that was just unpacked is busy as long as a process that another thread forked at that moment has not
/// closed the inherited file.
fn ask_version(postgres: &Path) -> io::Result<Output> {
    let mut command = Account::Ourselves.command(postgres, Path::new("/"));
    command.arg("--version");
    for _ in 0..BUSY_TRIES {
        match command.output() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => sleep(BUSY_WAIT),
            outcome => return outcome,
        }
    }
    command.output()
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`
fn parse_version(printed: &str) -> Option<&str> {
    let version = printed.strip_prefix("postgres (PostgreSQL) ")?.split_whitespace().next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
}

/// `15` for `15.18` and for `15beta1`.
pub(crate) fn major(version: &str) -> u32 {
    version.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::tests::fake_bin;

    #[test]
    fn versions_are_parsed_as_servers_print_them() {
        assert_eq!(parse_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some("15.18"));
        assert_eq!(parse_version("postgres (PostgreSQL) 19devel\n"), Some("19devel"));
        assert_eq!(parse_version("postgres (EnterpriseDB) 15\n"), None);
        assert_eq!((major("15.18"), major("19devel"), major("devel")), (15, 19, 0));
    }

    #[test]
    fn a_directory_without_a_usable_server_is_rejected_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        let reason = |dir: &Path| Binaries::in_dir(dir).unwrap_err().to_string();
        assert!(reason(root.path()).contains("no `postgres`"), "{}", reason(root.path()));

        let old = fake_bin(root.path(), "old", "echo 'postgres (PostgreSQL) 9.6.24'");
        assert!(reason(&old).contains("version 9.6.24"), "{}", reason(&old));

        let broken = fake_bin(root.path(), "broken", "echo 'libssl.so.1.1: not found' >&2; exit 127");
        assert!(reason(&broken).contains("libssl.so.1.1"), "{}", reason(&broken));
    }

    #[test]
    fn tools_in_the_folder_of_the_server_come_first() {
        let root = tempfile::tempdir().unwrap();
        let dir = fake_bin(root.path(), "bin", "echo 'postgres (PostgreSQL) 17.11'");
        let binaries = Binaries::in_dir(&dir).unwrap();
        assert_eq!(binaries.version(), "17.11");
        assert_eq!(binaries.tool("initdb"), Some(dir.join("initdb")));
        assert!(binaries.tool("sh").is_some_and(|sh| sh.is_absolute() && !sh.starts_with(&dir)));
        assert_eq!(binaries.tool("no-such-tool-of-postgresql"), None);
    }
}
