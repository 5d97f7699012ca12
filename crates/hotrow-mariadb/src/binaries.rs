//! The search for the server and for the SQL of its system tables.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

/// An installed server.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// `mariadbd`.
    pub server: PathBuf,
    /// The folder with the SQL of its system tables.
    pub share: PathBuf,
}

/// The SQL of the system tables, in order.
pub const SYSTEM_TABLES: [&str; 3] =
    ["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"];

/// The version of the server that is installed, as it tells it itself.
pub fn version() -> Result<String, Error> {
    let output = Command::new(Binaries::find()?.server).arg("--version").output();
    let output = output.map_err(Error::system("cannot run the MariaDB server"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let version = printed.split("Ver ").nth(1).and_then(|rest| rest.split(' ').next());
    Ok(format!("MariaDB {}", version.unwrap_or("of an unknown version")))
}

impl Binaries {
    /// The first server on the PATH, or in the folder where packages of distributions put it.
    pub fn find() -> Result<Self, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::among(std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from)))
    }

    fn among(folders: impl Iterator<Item = PathBuf>) -> Result<Self, Error> {
        let servers = folders.map(|folder| folder.join("mariadbd")).filter(|server| server.is_file());
        let mut servers = servers;
        let found = servers.find_map(|server| {
            let prefix = server.parent().and_then(Path::parent)?;
            let shares = ["share/mysql", "share/mariadb", "share"].map(|share| prefix.join(share));
            let share = shares.into_iter().find(|share| share.join(SYSTEM_TABLES[0]).is_file())?;
            Some(Binaries { server, share })
        });
        found.ok_or(Error::NotInstalled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_server_the_error_says_how_to_install_one() {
        let folder = tempfile::tempdir().unwrap();
        let error = Binaries::among(std::iter::once(folder.path().to_owned())).unwrap_err();
        assert!(error.to_string().contains("apt install mariadb-server"), "{error}");
    }

    #[test]
    fn a_server_without_its_system_tables_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let install = |name: &str| {
            let prefix = folder.path().join(name);
            for file in ["bin/mariadbd", "share/mysql_system_tables.sql"] {
                std::fs::create_dir_all(prefix.join(file).parent().unwrap()).unwrap();
                std::fs::write(prefix.join(file), "").unwrap();
            }
            prefix
        };
        let (broken, whole) = (install("broken"), install("whole"));
        std::fs::remove_file(broken.join("share/mysql_system_tables.sql")).unwrap();
        let found = Binaries::among([&broken, &whole].map(|prefix| prefix.join("bin")).into_iter()).unwrap();
        assert_eq!((found.server, found.share), (whole.join("bin/mariadbd"), whole.join("share")));
    }
}
