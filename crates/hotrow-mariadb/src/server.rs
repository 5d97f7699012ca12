//! A running server, and its crashes.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hotrow_postgres::ReservedPort;
use nix::unistd::{User, geteuid};

use crate::binaries::{Binaries, SYSTEM_TABLES};
use crate::error::Error;

/// A user with all rights that authenticates by `mysql_native_password`.
pub const USER: &str = "root";
/// That user's password.
pub const PASSWORD: &str = "roots-password";

/// A recovery after a crash takes this long on a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The first byte of a greeting, behind the packet's header.
const GREETING: u8 = 10;
const HEADER_BYTES: usize = 4;
const NO_LOG: &str = "cannot write to the server's folder";
const NO_PROGRAM: &str = "cannot run the MariaDB server";

/// A private server. Dropping this value ends it and removes its folder. In a static, the end of the program does.
#[derive(Debug)]
pub struct PrivateMariaDb {
    folder: PathBuf,
    binaries: Binaries,
    options: Vec<String>,
    environment: Vec<(&'static str, OsString)>,
    /// The account of the server, if it is not that of this program.
    account: Option<(u32, u32)>,
    port: ReservedPort,
    running: Mutex<Option<Child>>,
    guard: Child,
}

impl PrivateMariaDb {
    /// Starts a server with more options, such as `--max-connections=20`. The binary log is on and durable. Blocks.
    pub fn start(options: &[&str]) -> Result<Self, Error> {
        Self::start_in(Vec::new(), options)
    }

    /// The same with environment variables, such as those of a `SlowFlush`.
    pub fn start_in(environment: Vec<(&'static str, OsString)>, options: &[&str]) -> Result<Self, Error> {
        let binaries = Binaries::find()?;
        let account = account()?;
        let folder = tempfile::Builder::new().prefix("hotrow-mariadb-").tempdir();
        let folder = folder.map_err(Error::system("cannot create the server's folder"))?.keep();
        let guard = Command::new("/bin/sh")
            .args(["-c", include_str!("guard.sh"), "guard"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .process_group(0) // Ctrl-C at the terminal must not end it before the server
            .spawn()
            .map_err(Error::system("cannot run /bin/sh"))?;
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let (port, running) = (ReservedPort::find(), Mutex::new(None));
        let server = PrivateMariaDb { folder, binaries, options, environment, account, port, running, guard };
        server.create_folders().map_err(Error::system("cannot prepare the server's folder"))?;
        server.create_system_tables()?;
        server.restart()?;
        Ok(server)
    }

    /// The folders of the data, which belong to the server's account.
    fn create_folders(&self) -> io::Result<()> {
        fs::set_permissions(&self.folder, Permissions::from_mode(0o711))?;
        let data = self.folder.join("data");
        fs::create_dir_all(data.join("mysql"))?;
        if let Some((uid, gid)) = self.account {
            for folder in [&data, &data.join("mysql")] {
                chown(folder, Some(uid), Some(gid))?;
            }
        }
        Ok(())
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The whole log, for the message of a failed start or test.
    pub fn log(&self) -> String {
        let log = fs::read(self.folder.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// A crash. Returns when the process has ended.
    pub fn kill_dash_nine(&self) {
        end(&mut self.running());
    }

    /// Starts the server again on the same port and data, and waits until it answers. A running one is killed.
    pub fn restart(&self) -> Result<(), Error> {
        let mut running = self.running();
        end(&mut running);
        let log = File::options().create(true).append(true).open(self.folder.join("log"));
        let (log, log_too) =
            log.and_then(|log| Ok((log.try_clone()?, log))).map_err(Error::system(NO_LOG))?;
        let mut command = self.command();
        command.args([
            format!("--port={}", self.port()),
            format!("--pid-file={}", self.folder.join("data/server.pid").display()),
        ]);
        command.args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--log-bin=binlog"]);
        command.args(["--binlog-format=ROW", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"]);
        command.args(["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M"]).args(&self.options);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log).stderr(log_too).process_group(0);
        let child = running.insert(command.spawn().map_err(Error::system(NO_PROGRAM))?);
        fs::write(self.folder.join("pid"), child.id().to_string()).map_err(Error::system(NO_LOG))?;
        let deadline = Instant::now() + PATIENCE;
        while !self.answers() {
            let has_ended = !matches!(child.try_wait(), Ok(None));
            if has_ended || Instant::now() > deadline {
                return Err(Error::Server { what: "the MariaDB server does not start", log: self.log() });
            }
            sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// The server's program with the options that each of its starts needs.
    fn command(&self) -> Command {
        let data = self.folder.join("data");
        let mut command = Command::new(&self.binaries.server);
        command.arg("--no-defaults").current_dir(&data).env("LC_ALL", "C");
        command.args([
            format!("--datadir={}", data.display()),
            format!("--tmpdir={}", data.display()),
            format!("--socket={}", data.join("socket").display()),
        ]);
        if let Some((uid, gid)) = self.account {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Creates the system tables and the user. Nothing is flushed here: a crash of the machine ends this program, too.
    fn create_system_tables(&self) -> Result<(), Error> {
        let mut sql =
            "create database if not exists mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n".to_owned();
        for name in SYSTEM_TABLES {
            let tables = fs::read_to_string(self.binaries.share.join(name));
            sql += &tables.map_err(Error::system("cannot read the SQL of the system tables"))?;
        }
        sql += &format!(
            "\nflush privileges;\ncreate or replace user {USER}@'127.0.0.1' identified by '{PASSWORD}';\n\
             grant all on *.* to {USER}@'127.0.0.1' with grant option;\n"
        );
        let log = File::create(self.folder.join("log"));
        let (log, log_too) =
            log.and_then(|log| Ok((log.try_clone()?, log))).map_err(Error::system(NO_LOG))?;
        let mut command = self.command();
        command.args([
            "--bootstrap",
            "--innodb-flush-method=nosync",
            "--sync-frm=0",
            "--innodb-log-file-size=32M",
        ]);
        command.stdin(Stdio::piped()).stdout(log).stderr(log_too);
        let mut child = command.spawn().map_err(Error::system(NO_PROGRAM))?;
        let written = child.stdin.take().map(|mut stdin| stdin.write_all(sql.as_bytes()));
        let status = child.wait().map_err(Error::system(NO_PROGRAM))?;
        if !matches!(written, Some(Ok(()))) || !status.success() {
            let what = "the MariaDB server cannot create its system tables";
            return Err(Error::Server { what, log: self.log() });
        }
        Ok(())
    }

    /// Whether the server greets clients.
    fn answers(&self) -> bool {
        let mut greeting = [0; HEADER_BYTES + 1];
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port()))
            .and_then(|mut stream| stream.read_exact(&mut greeting))
            .is_ok_and(|()| greeting[HEADER_BYTES] == GREETING)
    }

    fn running(&self) -> MutexGuard<'_, Option<Child>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PrivateMariaDb {
    fn drop(&mut self) {
        end(&mut self.running());
        // The guard removes the folder when its standard input ends.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn end(running: &mut Option<Child>) {
    if let Some(mut child) = running.take() {
        let _ = child.kill(); // it may have ended
        let _ = child.wait();
    }
}

/// The account of the server, if this program runs as root, as which the server refuses to run.
fn account() -> Result<Option<(u32, u32)>, Error> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let mut users = ["mysql", "nobody"].into_iter();
    let user = users.find_map(|name| User::from_name(name).ok().flatten()).ok_or(Error::NoAccount)?;
    Ok(Some((user.uid.as_raw(), user.gid.as_raw())))
}
