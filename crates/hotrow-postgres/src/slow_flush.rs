//! Makes the flushes of private servers take longer, as on a slow disk: a small library, compiled on the spot and preloaded by
//! the servers, sleeps after each `fdatasync`. It measures no flush.
use crate::account::Account;
use crate::builder::Builder;
use crate::{Error, search};
use std::ffi::OsString;
use std::fs::{File, Permissions, set_permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The compiled library, and the delay that servers with it use. Servers need both at each start.
#[derive(Debug)]
pub struct SlowFlush {
    /// Contains the library and the file with the delay.
    folder: TempDir,
    delay: File,
}

const SOURCE: &str = include_str!("slow_flush.c");
const LIBRARY: &str = "slow_flush.so";
const DELAY: &str = "delay";

impl SlowFlush {
    /// Compiles the library. The inner error says why flushes cannot be delayed here.
    pub fn prepare() -> Result<Result<Self, String>, Error> {
        Self::prepare_with(&search::path())
    }

    /// The same with a compiler from one of these directories.
    fn prepare_with(places: &[PathBuf]) -> Result<Result<Self, String>, Error> {
        if !cfg!(target_os = "linux") {
            return Ok(Err("flushes can be delayed on Linux only".into()));
        }
        let Some(cc) = places.iter().map(|place| place.join("cc")).find(|program| program.is_file()) else {
            return Ok(Err(
                "cc, which compiles the library that delays flushes, is not installed: install a C \
                compiler (`apt install gcc libc6-dev`, `dnf install gcc`)"
                    .into(),
            ));
        };
        let folder = tempfile::Builder::new().prefix("hotrow-flush-").tempdir();
        let folder = folder.map_err(Error::folder(&std::env::temp_dir(), "used for a temporary folder"))?;
        let source = folder.path().join("slow_flush.c");
        std::fs::write(&source, SOURCE).map_err(Error::folder(&source, "written"))?;
        let library = folder.path().join(LIBRARY);
        let mut compile = Command::new(&cc);
        compile.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&source);
        let output = compile.output().map_err(Error::spawn(&compile, &Account::Ourselves))?;
        if !output.status.success() {
            let printed = String::from_utf8_lossy(&output.stderr);
            return Ok(Err(format!(
                "cc cannot compile the library that delays flushes (are the C library's headers installed?): {}",
                printed.trim()
            )));
        }
        let path = folder.path().join(DELAY);
        let delay = File::create_new(&path).map_err(Error::folder(&path, "created"))?;
        // The server may run as another user.
        for (path, mode) in [(folder.path(), 0o711), (&library, 0o755), (&path, 0o644)] {
            set_permissions(path, Permissions::from_mode(mode)).map_err(Error::folder(path, "shared"))?;
        }
        let slow_flush = Self { folder, delay };
        slow_flush.set(0)?;
        Ok(Ok(slow_flush))
    }

    /// Delays each flush of these servers by this time from now on.
    pub fn set(&self, delay_us: u32) -> Result<(), Error> {
        let written = self.delay.write_all_at(&delay_us.to_ne_bytes(), 0);
        written.map_err(Error::folder(&self.path(DELAY), "written"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The variables that a server needs when it starts.
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        let path = |name| self.path(name).into_os_string();
        [("LD_PRELOAD", path(LIBRARY)), ("HOTROW_FLUSH_DELAY_FILE", path(DELAY))]
    }
}

impl Builder {
    /// The flushes of the server, and of its standbys, take longer by the delay that is set there.
    pub fn slow_flush(mut self, slow_flush: &SlowFlush) -> Self {
        for (name, value) in slow_flush.environment() {
            self = self.environment(name, value);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::SlowFlush;
    use crate::PrivateServer;
    use std::time::{Duration, Instant};

    /// The average time of a commit.
    fn commit_takes(server: &PrivateServer) -> Duration {
        const COMMITS: u32 = 20;
        let commits = format!(
            "do $$ begin for i in 1..{COMMITS} loop insert into t values (i); commit; end loop; end $$"
        );
        let began = Instant::now();
        server.query(&commits).unwrap();
        began.elapsed() / COMMITS
    }

    #[test]
    fn flushes_take_as_much_longer_as_set() {
        let slow_flush = match SlowFlush::prepare().unwrap() {
            Ok(slow_flush) => slow_flush,
            // The reports of measurements say this too. Nothing can be tested.
            Err(reason) => return eprintln!("{reason}"),
        };
        let server = PrivateServer::builder().label("slow").slow_flush(&slow_flush).start().unwrap();
        server.query("create table t (id int)").unwrap();
        for delay_us in [50_000, 0, 5_000] {
            slow_flush.set(delay_us).unwrap();
            let (delay, took) = (Duration::from_micros(delay_us.into()), commit_takes(&server));
            assert!(took >= delay, "{delay:?}: a commit took {took:?}");
            assert!(delay_us > 0 || took < Duration::from_millis(50), "no delay: a commit took {took:?}");
        }
    }

    #[test]
    fn without_a_compiler_the_reason_names_what_to_install() {
        if !cfg!(target_os = "linux") {
            return;
        }
        let empty = tempfile::tempdir().unwrap();
        let reason = SlowFlush::prepare_with(&[empty.path().to_owned()]).unwrap().unwrap_err();
        assert!(reason.starts_with("cc, which compiles"), "{reason}");
        assert!(reason.contains("is not installed: install a C compiler"), "{reason}");
        // A compiler that fails is another reason.
        let cc = empty.path().join("cc");
        std::fs::write(&cc, "#!/bin/sh\necho no headers >&2\nexit 1\n").unwrap();
        std::fs::set_permissions(&cc, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let reason = SlowFlush::prepare_with(&[empty.path().to_owned()]).unwrap().unwrap_err();
        assert!(reason.ends_with("no headers"), "{reason}");
    }

    #[test]
    fn a_server_without_its_delay_does_not_start() {
        let Ok(slow_flush) = SlowFlush::prepare().unwrap() else { return };
        let [(preload, library), _] = slow_flush.environment();
        let builder = PrivateServer::builder().label("slow").environment(preload, library);
        let error = builder.start().unwrap_err().to_string();
        assert!(error.contains("cannot map HOTROW_FLUSH_DELAY_FILE"), "{error}");
    }
}
