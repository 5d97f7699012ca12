//! The usual directories of PostgreSQL servers, in the order of the search. It does not check whether a server
//! works.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Places where packages create one directory for each major version: the parent, and the prefix of the version.
const VERSIONED: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql@"),
    ("/usr/local/opt", "postgresql@"),
    ("/Applications/Postgres.app/Contents/Versions", ""),
];

/// Directories on the user's PATH come first, then those of packages, the newest version first.
pub(crate) fn places() -> Vec<PathBuf> {
    let versioned = VERSIONED.iter().flat_map(|(parent, prefix)| newest_first(Path::new(parent), prefix));
    pg_config()
        .into_iter()
        .chain(path())
        .chain(versioned)
        .filter(|dir| dir.join("postgres").is_file())
        .collect()
}

/// The directories of PATH.
pub(crate) fn path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// The directory that `pg_config` reports. If only libpq is installed, this directory has no server.
fn pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").stdin(Stdio::null()).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(printed.trim()))
}

/// `parent/PREFIX17/bin`, `parent/PREFIX16/bin`, ...: compared as numbers, because 9.6 is older than 17.
fn newest_first(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.strip_prefix(prefix)?;
            let numbers = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
            Some((numbers, path.join("bin")))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, dir)| dir).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A bin directory whose `postgres` is this line of shell.
    pub(crate) fn fake_bin(root: &Path, name: &str, line: &str) -> PathBuf {
        let dir = root.join(name);
        fs::create_dir_all(&dir).unwrap();
        for program in ["postgres", "initdb"] {
            fs::write(dir.join(program), format!("#!/bin/sh\n{line}\n")).unwrap();
            fs::set_permissions(dir.join(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        dir
    }

    #[test]
    fn the_newest_version_comes_first_and_other_names_do_not_count() {
        let root = tempfile::tempdir().unwrap();
        for name in
            ["postgresql@9.6", "postgresql@17", "postgresql@16", "postgresql@beta", "postgresql", "redis@7"]
        {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let bin = |name: &str| root.path().join(name).join("bin");
        let expected = ["postgresql@17", "postgresql@16", "postgresql@9.6"].map(bin);
        assert_eq!(newest_first(root.path(), "postgresql@"), expected);
        assert_eq!(newest_first(&root.path().join("missing"), ""), Vec::<PathBuf>::new());
    }
}
