//! Searches for programs of other projects. It runs none.

use hotrow_postgres::Binaries;
use std::path::PathBuf;

/// A program in the server's folder or on PATH.
pub fn find(name: &str, server: Option<&Binaries>) -> Option<PathBuf> {
    // Debian has some in /usr/sbin, which is only on root's PATH.
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let elsewhere = || {
        let places = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
        places.map(|folder| folder.join(name)).find(|program| program.is_file())
    };
    server.and_then(|binaries| binaries.tool(name)).or_else(elsewhere)
}
