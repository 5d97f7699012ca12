//! Runs Redis for comparison: a private server that flushes each command before its answer, the reservation as a Lua script,
//! and the load by redis-benchmark. It does not use PostgreSQL.

mod output;

use hotrow_bench::child::Child;
use hotrow_bench::error::Error;
use hotrow_bench::files::temporary_folder;
use hotrow_bench::load::{Answers, Failure, NoFigure};
use hotrow_bench::verdict::Reading;
use nix::unistd::User;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::process::Command;

/// Redis on this machine: the server and two tools.
#[derive(Debug, Clone)]
pub struct Installed {
    server: PathBuf,
    client: PathBuf,
    benchmark: PathBuf,
    /// The version that it prints.
    pub version: String,
}

impl Installed {
    /// Looks for Redis. `None` if one of the three programs is missing.
    pub fn find() -> Option<Self> {
        let find = |name| hotrow_bench::programs::find(name, None);
        let (server, client) = (find("redis-server")?, find("redis-cli")?);
        let benchmark = find("redis-benchmark")?;
        let output = std::process::Command::new(&server).arg("--version").output().ok()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = format!("Redis {}", printed.split("v=").nth(1)?.split(' ').next()?);
        Some(Self { server, client, benchmark, version })
    }
}

/// A Redis that this benchmark started.
#[derive(Debug)]
pub struct Redis {
    installed: Installed,
    /// The process.
    pub child: Child,
    port: u16,
    script: String,
    /// The number of times that redis-benchmark was started.
    loads: AtomicU32,
}

const RESERVE: &str = include_str!("../../sql/redis/reserve.lua");
const REFILL: &str = include_str!("../../sql/redis/refill.lua");
const READING: &str = include_str!("../../sql/redis/reading.lua");

/// The same number as in the SQL techniques.
const BUYERS: &str = "100000";

/// The template of redis-benchmark for a request ID. redis-benchmark seeds its random numbers with the second and its
/// process ID. If both have increased by the same amount, the load after a warm-up has the same numbers. The number of the
/// load makes the IDs different.
fn request_id(load: u32) -> String {
    format!("{load}-__rand_int__-__rand_int__-__rand_int__-__rand_int__")
}

impl Redis {
    /// Starts Redis on a free port of this machine, in a private folder, and loads the script.
    pub async fn start(installed: &Installed) -> Result<Self, Error> {
        let folder = temporary_folder()?;
        let port = hotrow_postgres::free_port();
        let mut command = Command::new(&installed.server);
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
        // As durable as PostgreSQL: a command is answered after it is on disk.
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(folder.path());
        run_unprivileged(&mut command, folder.path())?;
        let mut child = Child::start_with(&installed.server, command, folder)?;
        child.ready(|line| line.contains("Ready to accept connections").then_some(())).await?;
        let (script, loads) = (String::new(), AtomicU32::new(0));
        let mut redis = Self { installed: installed.clone(), child, port, script, loads };
        redis.script = redis.ask(&["script", "load", RESERVE]).await?;
        Ok(redis)
    }

    /// Deletes all reservations and fills the stock.
    pub async fn refill(&self) -> Result<(), Error> {
        self.ask(&["eval", REFILL, "0"]).await.map(drop)
    }

    /// The current state of its keys.
    pub async fn read(&self) -> Result<Reading, Error> {
        let printed = self.ask(&["eval", READING, "0"]).await?;
        let mut numbers = printed.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(done)), Some(Ok(broken))) => Ok(Reading { done, broken }),
            _ => Err(Error::Refused { what: "count what Redis has sold", reason: printed }),
        }
    }

    /// Makes this number of reservations with this number of clients.
    pub async fn reserve(&self, clients: u32, requests: u64) -> Result<Answers, NoFigure> {
        // Much more than any run should take. A request of redis-benchmark has no time limit.
        const PATIENCE: Duration = Duration::from_secs(300);
        let program = &self.installed.benchmark;
        let mut command = Command::new(program);
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-c", &clients.to_string()]);
        command.args(["-n", &requests.to_string(), "-r", BUYERS, "--precision", "3"]);
        // Each `__rand_int__` is another number: a buyer, and the parts of a request ID.
        let request_id = request_id(self.loads.fetch_add(1, Relaxed));
        command.args(["evalsha", &self.script, "0", "__rand_int__", &request_id]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let ended = tokio::time::timeout(PATIENCE, command.output()).await;
        let late = |_| Failure(format!("redis-benchmark had not ended {PATIENCE:?} after it was started"));
        let output = ended.map_err(late)?.map_err(Error::file("run", program))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure(format!("redis-benchmark ended with {}: {complaint}", output.status)).into());
        }
        let answers = output::parse(&String::from_utf8_lossy(&output.stdout));
        Ok(answers.ok_or_else(|| Failure("redis-benchmark's output has no summary".into()))?)
    }

    async fn ask(&self, words: &[&str]) -> Result<String, Error> {
        let program = &self.installed.client;
        let mut command = Command::new(program);
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-e"]).args(words);
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
        let output = output.map_err(Error::file("run", program))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let printed = [output.stdout, output.stderr].concat();
        let reason = String::from_utf8_lossy(&printed).trim().to_owned();
        Err(Error::Refused { what: "do what redis-cli asked it", reason })
    }
}

/// If the benchmark runs as root, Redis runs as `nobody`, which then owns the folder.
fn run_unprivileged(command: &mut Command, folder: &Path) -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let nobody = User::from_name("nobody").map_err(std::io::Error::from);
    let nobody = nobody.and_then(|user| user.ok_or(std::io::ErrorKind::NotFound.into()));
    let nobody = nobody.map_err(Error::system("find the account nobody"))?;
    let (uid, gid) = (nobody.uid.as_raw(), nobody.gid.as_raw());
    chown(folder, Some(uid), Some(gid)).map_err(Error::file("hand over", folder))?;
    command.uid(uid).gid(gid);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::request_id;

    #[test]
    fn two_loads_with_the_same_random_numbers_have_different_requests() {
        let with_equal_numbers = |load| request_id(load).replace("__rand_int__", "000000000007");
        assert_ne!(with_equal_numbers(0), with_equal_numbers(1));
    }
}
