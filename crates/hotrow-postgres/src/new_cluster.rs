//! A new cluster in the data directory of a server. `initdb` takes half a second of CPU time, a copy of its result a
//! tenth of that, so the result is kept in Hotrow's folder, one for each major version. PostgreSQL's own tests do the same.
use crate::account::Account;
use crate::binaries::major;
use crate::folder::{Folder, lock};
use crate::{Binaries, Error, home};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The file beside a kept cluster that says which programs have made it. It is written last.
const MADE_BY: &str = "made-by";

/// Fills the data directory. If clusters cannot be kept anywhere, or if `own_identifier` is true, `initdb` makes this one.
pub(crate) fn fill(
    folder: &Folder,
    binaries: &Binaries,
    account: &Account,
    own_identifier: bool,
) -> Result<(), Error> {
    let home = home::candidates().into_iter().find_map(|home| home::open(&home, "clusters").ok());
    match home.filter(|_| !own_identifier) {
        Some(home) => copy(&kept(&home, binaries, account)?.data, &folder.data(), account),
        // A crash of the machine during initdb loses nothing of value. Everything after it is synced.
        None => initdb(&folder.data(), binaries, account, Stdio::null(), &["--no-sync"]),
    }
}

/// A kept cluster. No process replaces it while this value exists.
struct Kept {
    data: PathBuf,
    _turn: Flock<File>,
}

/// The kept cluster of these programs. It is made if it does not exist, or if other programs have made it.
fn kept(home: &Path, binaries: &Binaries, account: &Account) -> Result<Kept, Error> {
    let kept = home.join(major(binaries.version()).to_string());
    let file = kept.with_extension("lock");
    let turn = |how| lock(&file, how).map_err(Error::folder(&file, "locked"));
    let maker = maker(binaries, account);
    let is_made = || fs::read_to_string(kept.join(MADE_BY)).is_ok_and(|found| found == maker);
    let data = kept.join("data");
    let shared = turn(FlockArg::LockShared)?;
    if is_made() {
        return Ok(Kept { data, _turn: shared });
    }
    drop(shared);
    let turn = turn(FlockArg::LockExclusive)?;
    if !is_made() {
        // initdb has the lock too, and keeps it if this process is killed.
        let same_lock = turn.try_clone().map_err(Error::folder(&file, "opened"))?;
        make(&kept, binaries, account, same_lock.into())?;
        let made_by = kept.join(MADE_BY);
        fs::write(&made_by, &maker).map_err(Error::folder(&made_by, "written"))?;
    }
    Ok(Kept { data, _turn: turn })
}

fn make(kept: &Path, binaries: &Binaries, account: &Account, lock: Stdio) -> Result<(), Error> {
    match fs::remove_dir_all(kept) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::folder(kept, "removed")(error));
        }
        _ => {}
    }
    let data = kept.join("data");
    fs::create_dir_all(&data).map_err(Error::folder(&data, "created"))?;
    for (folder, mode) in [(kept, 0o755), (&data, 0o700)] {
        fs::set_permissions(folder, Permissions::from_mode(mode)).map_err(Error::folder(folder, "opened"))?;
    }
    account.give(&data)?;
    initdb(&data, binaries, account, lock, &[])
}

/// The version, size and time of the server's program, because builds of one version can have files of different formats, and
/// the account that can read the files.
fn maker(binaries: &Binaries, account: &Account) -> String {
    let about = fs::metadata(binaries.dir().join("postgres")).ok();
    let [size, time] = about.map_or([0, 0], |about| [about.len().cast_signed(), about.mtime()]);
    format!("{} {size} {time} {account:?}\n", binaries.version())
}

fn initdb(
    data: &Path,
    binaries: &Binaries,
    account: &Account,
    input: Stdio,
    options: &[&str],
) -> Result<(), Error> {
    let mut initdb = account.command(&binaries.dir().join("initdb"), data);
    initdb.stdin(input);
    initdb.args(options).args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-D"]).arg(data);
    let output = initdb.output().map_err(Error::spawn(&initdb, account))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stdout, output.stderr].concat();
    Err(Error::Initdb { output: String::from_utf8_lossy(&printed).trim().to_owned() })
}

/// Copies a data directory whose server does not run. The account owns the copy.
pub(crate) fn copy(from: &Path, to: &Path, account: &Account) -> Result<(), Error> {
    for entry in fs::read_dir(from).map_err(Error::folder(from, "read"))? {
        let entry = entry.map_err(Error::folder(from, "read"))?;
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        if old.is_dir() {
            fs::create_dir(&new)
                .and_then(|()| fs::set_permissions(&new, old.metadata()?.permissions()))
                .map_err(Error::folder(&new, "created"))?;
            copy(&old, &new, account)?;
        } else {
            fs::copy(&old, &new).map_err(Error::folder(&old, "copied"))?;
        }
        account.give(&new)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_made_once_and_again_for_other_programs() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        let (binaries, account) = (Binaries::find().unwrap(), Account::choose().unwrap());
        let made = || fs::metadata(kept(home.path(), &binaries, &account).unwrap().data).unwrap().ino();
        let first = made();
        let made_by = home.path().join(major(binaries.version()).to_string()).join(MADE_BY);
        fs::write(made_by.with_file_name("present"), "").unwrap();
        assert_eq!(made(), first);

        fs::write(&made_by, "15.0 0 0 another build").unwrap();
        made();
        assert!(!made_by.with_file_name("present").exists(), "the cluster of other programs was kept");
        assert_eq!(fs::read_to_string(made_by).unwrap(), maker(&binaries, &account));
    }
}
