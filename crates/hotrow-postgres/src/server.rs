//! A private server: start, stop, crash, restart, end. Its settings are in `settings.rs`, its folder in
//! `folder.rs`, its addresses in `reach.rs`.
use crate::account::Account;
use crate::folder::{Folder, give_back_shared_memory};
use crate::port::ReservedPort;
use crate::process::{self, LOOK_EVERY, Signal};
use crate::{Binaries, Error};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A restart after a crash replays at most `max_wal_size` of WAL, which takes this long on a slow disk.
const START_TIMEOUT: Duration = Duration::from_secs(180);

/// A fast shutdown writes a checkpoint of everything in `shared_buffers`.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// Number of attempts with another port if another program has taken the chosen one.
const PORT_TRIES: usize = 5;

/// A private PostgreSQL server. Dropping this value ends the server and removes its folder, unless its builder keeps it.
#[derive(Debug)]
pub struct PrivateServer {
    pub(crate) folder: Folder,
    pub(crate) binaries: Binaries,
    pub(crate) account: Account,
    pub(crate) environment: Vec<(String, OsString)>,
    pub(crate) port: ReservedPort,
    pub(crate) running: Mutex<Option<Child>>,
    pub(crate) must_be_on: Vec<&'static str>,
}

impl PrivateServer {
    /// Starts on a free port.
    pub(crate) fn find_port(&mut self) -> Result<(), Error> {
        for _ in 1..PORT_TRIES {
            match self.restart() {
                // Another program took the port between this program's check and the server's start.
                Err(Error::Start { .. })
                    if TcpListener::bind((Ipv4Addr::LOCALHOST, self.port())).is_err() =>
                {
                    self.port = ReservedPort::find();
                }
                outcome => return outcome,
            }
        }
        self.restart()
    }

    pub(crate) fn configure(&self, lines: &str) -> Result<(), Error> {
        let path = self.folder.data().join("postgresql.conf");
        OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(lines.as_bytes()))
            .map_err(Error::folder(&path, "written"))
    }

    /// Starts the postmaster on its port and waits until it answers.
    fn launch(&self, running: &mut Option<Child>) -> Result<(), Error> {
        let path = self.folder.log();
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(Error::folder(&path, "opened"))?;
        let other = log.try_clone().map_err(Error::folder(&path, "opened"))?;

        let mut postgres = self.account.command(&self.binaries.dir().join("postgres"), self.folder.path());
        postgres.envs(self.environment.iter().map(|(name, value)| (name, value)));
        postgres.arg("-D").arg(self.folder.data()).arg("-c").arg(format!("port={}", self.port()));
        // The server has its own process group, so that Ctrl-C at the terminal reaches this program and not the
        // server.
        postgres.stdout(Stdio::from(log)).stderr(Stdio::from(other)).process_group(0);
        let child = postgres.spawn().map_err(Error::spawn(&postgres, &self.account))?;

        let child = running.insert(child);
        let outcome = self.await_ready(child).and_then(|()| self.check_durable());
        outcome.inspect_err(|_| end(running))
    }

    fn await_ready(&self, child: &mut Child) -> Result<(), Error> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(self.start_error(&format!("ended during startup ({status})")));
            }
            match self.ask_socket("select 1") {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => {
                    return Err(self.start_error(&format!("was not ready after {START_TIMEOUT:?} ({error})")));
                }
                Err(_) => sleep(LOOK_EVERY),
            }
        }
    }

    fn check_durable(&self) -> Result<(), Error> {
        for name in &self.must_be_on {
            let found = self.setting_value(name)?;
            if found != "on" {
                return Err(Error::NotDurable { name, found });
            }
        }
        Ok(())
    }

    /// Fast shutdown: running transactions are rolled back, and a checkpoint is written. Returns when the server
    /// has ended.
    pub fn stop(&self) -> Result<(), Error> {
        stop(&mut self.running())
    }

    /// A crash: SIGKILL to the postmaster and all its children. Returns when none of them runs, so the port and
    /// the data directory are free for [`restart`](Self::restart).
    pub fn kill_dash_nine(&self) -> Result<(), Error> {
        let mut running = self.running();
        if let Some(pid) = living(&mut running) {
            process::kill_tree(pid)?;
        }
        forget(&mut running);
        Ok(())
    }

    /// Stops the postmaster and all its children, as on a machine that hangs. [`thaw`](Self::thaw) continues them.
    pub fn freeze(&self) -> Result<(), Error> {
        let Some(pid) = self.postmaster_pid() else { return Ok(()) };
        process::freeze(pid)?;
        process::family(pid)?.into_iter().try_for_each(process::freeze)
    }

    /// Continues the postmaster and all its children.
    pub fn thaw(&self) -> Result<(), Error> {
        self.processes()?.into_iter().try_for_each(|pid| process::send(pid, Signal::SIGCONT))
    }

    /// The postmaster and its children, to measure or to limit them. There are none while the server is stopped.
    pub fn processes(&self) -> Result<Vec<u32>, Error> {
        self.postmaster_pid().map_or_else(|| Ok(Vec::new()), process::family)
    }

    /// Starts the server again on the same port and data directory. A running server is stopped first.
    pub fn restart(&self) -> Result<(), Error> {
        let mut running = self.running();
        stop(&mut running)?;
        self.launch(&mut running)
    }

    /// The postmaster, if one runs. A panic of another thread leaves this value consistent.
    fn running(&self) -> MutexGuard<'_, Option<Child>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.data()
    }

    /// The version of the server, such as `15.18`.
    pub fn version(&self) -> &str {
        self.binaries.version()
    }

    /// The binaries of the server, also for other programs in their directory.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The process to signal or to measure. `None` while the server is stopped.
    pub fn postmaster_pid(&self) -> Option<u32> {
        self.running().as_ref().map(Child::id)
    }

    /// The whole log of the server, for the message of a failed test.
    pub fn log(&self) -> String {
        fs::read(self.folder.log())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Empties the log of the server, also while it runs.
    pub fn clear_log(&self) -> Result<(), Error> {
        let path = self.folder.log();
        fs::write(&path, "").map_err(Error::folder(&path, "emptied"))
    }

    fn start_error(&self, how: &str) -> Error {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        Error::Start { how: how.to_owned(), log: lines[lines.len().saturating_sub(20)..].join("\n") }
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        end(&mut self.running());
        give_back_shared_memory(&self.data_dir());
    }
}

/// Ends the server in order, or kills it if this takes too long.
fn stop(running: &mut Option<Child>) -> Result<(), Error> {
    if let Some(pid) = living(running)
        && !process::end(pid, Signal::SIGINT, STOP_TIMEOUT)?
    {
        process::quit(pid)?;
    }
    forget(running);
    Ok(())
}

/// Ends the server at once. A failure is ignored here, because the next start removes the folder.
fn end(running: &mut Option<Child>) {
    if living(running).is_none_or(|pid| process::quit(pid).is_ok()) {
        forget(running);
    }
}

/// The process to signal. `None` if it has ended by itself, because its ID may belong to another process after
/// this check.
fn living(running: &mut Option<Child>) -> Option<u32> {
    let child = running.as_mut()?;
    matches!(child.try_wait(), Ok(None)).then(|| child.id())
}

/// Waits for the ended postmaster, so that the kernel removes its entry.
fn forget(running: &mut Option<Child>) {
    if let Some(mut child) = running.take() {
        let _ = child.wait();
    }
}
