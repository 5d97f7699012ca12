//! Where programs that others wrote are looked for; runs none.

use hotrow_postgres::Binaries;
use std::path::PathBuf;

/// A program beside the server's own, or wherever the person's commands come from.
pub fn find(name: &str, server: Option<&Binaries>) -> Option<PathBuf> {
    // Debian keeps some in /usr/sbin, where only root's PATH leads.
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let elsewhere = || {
        let places = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
        places.map(|folder| folder.join(name)).find(|program| program.is_file())
    };
    server.and_then(|binaries| binaries.tool(name)).or_else(elsewhere)
}
