//! Folders and files for programs that run during the benchmark. The report is never in them.

use crate::error::Error;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A folder that is removed when the result is dropped.
pub fn temporary_folder() -> Result<TempDir, Error> {
    let folder = tempfile::Builder::new().prefix("hotrow-bench-").tempdir();
    folder.map_err(Error::system("create a temporary folder"))
}

/// Writes a file that other users cannot read, because it can contain a key or the server's password.
pub fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::file("write", path))
}
