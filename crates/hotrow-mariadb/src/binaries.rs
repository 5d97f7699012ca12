//! The search for the server and for the SQL of its system tables.

use std::path::{Path, PathBuf};

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

impl Binaries {
    /// The first server on the PATH, or in the folder where packages of distributions put it.
    pub fn find() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
        let servers = folders.map(|folder| folder.join("mariadbd")).filter(|server| server.is_file());
        let found = servers.into_iter().find_map(|server| {
            let prefix = server.parent().and_then(Path::parent)?;
            let shares = ["share/mysql", "share/mariadb", "share"].map(|share| prefix.join(share));
            let share = shares.into_iter().find(|share| share.join(SYSTEM_TABLES[0]).is_file())?;
            Some(Binaries { server, share })
        });
        found.expect(
            "no MariaDB server is installed: install one, for example with `apt install mariadb-server`",
        )
    }
}
