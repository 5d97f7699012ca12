//! A new cluster in the data directory of a server. `initdb` takes half a second of processor time, a copy of its result a
//! tenth of that, so the result is kept in Hotrow's folder, one for each major version. PostgreSQL's own tests do the same.
use crate::account::Account;
use crate::binaries::major;
use crate::folder::{Folder, lock};
use crate::{Binaries, Error, home};
use nix::fcntl::FlockArg;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// The file beside a kept cluster that says which programs have made it. It is written last.
const MADE_BY: &str = "made-by";

/// Fills the data directory. If clusters cannot be kept anywhere, or if `own_identifier` is true, `initdb` makes this one.
pub(crate) fn fill(
    folder: &Folder,
    binaries: &Binaries,
    account: &Account,
    own_identifier: bool,
) -> Result<(), Error> {
    let kept = home::candidates().into_iter().find_map(|home| home::open(&home, "clusters").ok());
    let Some(kept) = kept.filter(|_| !own_identifier) else {
        // A crash of the machine during initdb loses nothing of value. Everything after it is synced.
        return initdb(&folder.data(), binaries, account, &["--no-sync"]);
    };
    let kept = kept.join(major(binaries.version()).to_string());
    // No process replaces the kept cluster while another one copies it.
    let file = kept.with_extension("lock");
    let turn = |how| lock(&file, how).map_err(Error::folder(&file, "locked"));
    let reading = turn(FlockArg::LockShared)?;
    if is_made_by(&kept, binaries, account) {
        return copy(&kept.join("data"), &folder.data(), account);
    }
    drop(reading);
    let _writing = turn(FlockArg::LockExclusive)?;
    if !is_made_by(&kept, binaries, account) {
        make(&kept, binaries, account)?;
    }
    copy(&kept.join("data"), &folder.data(), account)
}

fn make(kept: &Path, binaries: &Binaries, account: &Account) -> Result<(), Error> {
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
    initdb(&data, binaries, account, &[])?;
    let file = kept.join(MADE_BY);
    fs::write(&file, maker(binaries, account)).map_err(Error::folder(&file, "written"))
}

fn is_made_by(kept: &Path, binaries: &Binaries, account: &Account) -> bool {
    fs::read_to_string(kept.join(MADE_BY)).is_ok_and(|found| found == maker(binaries, account))
}

/// The version, size and time of the server's program, because builds of one version can have files of different formats, and
/// the account that can read the files.
fn maker(binaries: &Binaries, account: &Account) -> String {
    let about = fs::metadata(binaries.dir().join("postgres")).ok();
    let [size, time] = about.map_or([0, 0], |about| [about.len().cast_signed(), about.mtime()]);
    format!("{} {size} {time} {account:?}\n", binaries.version())
}

fn initdb(data: &Path, binaries: &Binaries, account: &Account, options: &[&str]) -> Result<(), Error> {
    let mut initdb = account.command(&binaries.dir().join("initdb"), data);
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
