//! The folder for downloaded binaries and private servers on this machine. All its contents can be deleted and
//! created again.
use crate::account::is_root;
use nix::unistd::geteuid;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The candidates, best first. The server's account must be able to reach root's folder, and it cannot reach
/// /root.
pub(crate) fn candidates() -> Vec<PathBuf> {
    let shared = PathBuf::from(format!("/var/tmp/hotrow-{}", geteuid()));
    if is_root() {
        return vec![PathBuf::from("/var/cache/hotrow"), shared];
    }
    user_cache().map(|cache| cache.join("hotrow")).into_iter().chain([shared]).collect()
}

/// The user's cache directory by the rules of the operating system.
fn user_cache() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME").or_else(|| {
        let below = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
        absolute("HOME").map(|home| home.join(below))
    })
}

/// Creates `home/name` if it does not exist. Another user could have created a folder in /var/tmp to replace the
/// programs that run from there. A folder that belongs to another user is therefore refused.
pub(crate) fn open(home: &Path, name: &str) -> io::Result<PathBuf> {
    if let Some(parent) = home.parent() {
        fs::create_dir_all(parent)?;
    }
    create(home)?;
    let found = fs::symlink_metadata(home)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(io::Error::other("it is not a folder that only this user can write to"));
    }
    let folder = home.join(name);
    if create(&folder)? {
        spread(&folder);
    }
    Ok(folder)
}

/// Marks the folder as a top of hierarchies, so that ext4 gives each folder in it another region of the disk. In one region, ext4
/// skips the inodes of files that were removed in the last seconds one by one, and the start of a server after the removal of
/// others takes twice the CPU time. This fails on other file systems, where it is not needed.
fn spread(folder: &Path) {
    let _ = Command::new("chattr").arg("+T").arg(folder).stderr(Stdio::null()).status();
}

/// Creates one folder with the permissions that its readers need, independent of the umask. An existing folder is
/// not changed. Returns whether it was created.
fn create(folder: &Path) -> io::Result<bool> {
    let mode = if is_root() { 0o755 } else { 0o700 };
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(mode)).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let home = outer.path().join("home");
        let folder = open(&home, "servers").unwrap();
        assert!(folder.is_dir());

        fs::set_permissions(&home, Permissions::from_mode(0o777)).unwrap();
        assert!(open(&home, "servers").unwrap_err().to_string().contains("only this user can write"));
    }

    #[test]
    fn a_link_to_a_folder_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let home = outer.path().join("home");
        std::os::unix::fs::symlink(outer.path(), &home).unwrap();
        assert!(open(&home, "servers").is_err());
    }
}
