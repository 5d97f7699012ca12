//! The load: one run of pgbench against one endpoint; it knows nothing of scenarios, rows or reports.

mod log;
mod output;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::load::{Answers, Failure};
use crate::scenario::Protocol;
use hotrow_postgres::Binaries;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// pgbench, as found on this machine.
#[derive(Debug)]
pub struct Pgbench {
    program: PathBuf,
    /// What it says its version is.
    pub version: String,
    threads: u32,
}

/// What one run of pgbench is to do.
#[derive(Debug, Clone)]
pub struct Load<'a> {
    /// Whom to connect to.
    pub endpoint: &'a Endpoint,
    /// What each transaction does.
    pub script: &'a str,
    /// How its statements are sent.
    pub protocol: Protocol,
    /// How many connections.
    pub clients: u32,
    /// How long.
    pub seconds: u32,
    /// Requests a second, unless each client sends its next one when it has its answer.
    pub rate: Option<u32>,
    /// The script's variable `rows`. Beside it, `run` and `clients` it finds `previous`, which is 0 until it sets it.
    pub rows: u32,
    /// The script's variable `run`: a number that no other run has.
    pub run: u32,
    /// Which part of the transactions to log; none are at zero.
    pub logged_part: f64,
}

impl Pgbench {
    /// Looks for it.
    pub async fn find(server: Option<&Binaries>) -> Result<Self, Error> {
        let program = crate::programs::find("pgbench", server).ok_or(Error::NoPgbench)?;
        let output = Command::new(&program).arg("--version").output().await;
        let output = output.map_err(|source| Error::File { what: "run", path: program.clone(), source })?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        // Half of the cores: what is measured shares the machine with its load, and must be what is short.
        let threads = u32::try_from(cores / 2).unwrap_or(u32::MAX).max(1);
        Ok(Self { program, version, threads })
    }

    /// Runs a load to its end. What goes wrong with the load is a failure; what goes wrong with this machine is an error.
    pub async fn run(&self, load: &Load<'_>) -> Result<Result<Answers, Failure>, Error> {
        let folder = tempfile::Builder::new().prefix("hotrow-bench-").tempdir();
        let folder = folder.map_err(|source| Error::System { what: "make a temporary folder", source })?;
        let script = folder.path().join("script.sql");
        std::fs::write(&script, load.script).map_err(|source| Error::File {
            what: "write",
            path: script.clone(),
            source,
        })?;

        let child = self.command(load, &script, &folder.path().join("log")).output();
        let Ok(output) = tokio::time::timeout(patience(load), child).await else {
            return Ok(Err(Failure(format!(
                "pgbench had not ended {:?} after it was started, for a run of {} s",
                patience(load),
                load.seconds
            ))));
        };
        let output =
            output.map_err(|source| Error::File { what: "run", path: self.program.clone(), source })?;
        if !output.status.success() {
            return Ok(Err(Failure(complaint(&output))));
        }
        let counts = output::parse(&String::from_utf8_lossy(&output.stdout))?;
        if counts.failed > 0 {
            return Ok(Err(Failure(format!("{} transactions failed", counts.failed))));
        }
        let latencies = log::read(folder.path())?;
        Ok(Ok(Answers {
            acknowledged: counts.processed,
            beside: 0,
            per_second: counts.per_second,
            latencies,
            pace: None,
        }))
    }

    fn command(&self, load: &Load<'_>, script: &Path, log: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--no-vacuum").arg("--protocol").arg(load.protocol.name());
        command.arg("--client").arg(load.clients.to_string());
        command.arg("--jobs").arg(load.clients.min(self.threads).to_string());
        command.arg("--time").arg((load.seconds + seconds_to_connect(load)).to_string());
        command.arg("--define").arg(format!("rows={}", load.rows));
        command.arg("--define").arg(format!("run={}", load.run));
        command.arg("--define").arg(format!("clients={}", load.clients));
        command.arg("--define").arg("previous=0");
        command.arg("--file").arg(script);
        if let Some(rate) = load.rate {
            command.arg("--rate").arg(rate.to_string());
        }
        if load.logged_part > 0.0 {
            command.arg("--log").arg("--log-prefix").arg(log);
        }
        if load.logged_part > 0.0 && load.logged_part < 1.0 {
            command.arg("--sampling-rate").arg(format!("{:.6}", load.logged_part));
        }
        // What the person has set for other uses of libpq must not reach some techniques and not others.
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("PG") {
                command.env_remove(variable);
            }
        }
        command.envs(load.endpoint.environment()).env("LC_ALL", "C");
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }
}

/// pgbench's clock runs while it connects, which it then leaves out of its rate: without this, hundreds of clients would have
/// no time left to do anything, and neither would a few on a busy machine in a run of a second.
fn seconds_to_connect(load: &Load<'_>) -> u32 {
    const CONNECTIONS_A_SECOND: u32 = 250;
    load.clients / CONNECTIONS_A_SECOND + u32::from(load.seconds == 1)
}

/// How long to wait for the end: connecting and the last transactions take their time where hundreds wait for one row.
fn patience(load: &Load<'_>) -> Duration {
    const FOR_CONNECTING_AND_ENDING: Duration = Duration::from_secs(60);
    Duration::from_secs((load.seconds + seconds_to_connect(load)).into()) + FOR_CONNECTING_AND_ENDING
}

/// The first thing pgbench complained of: what follows is mostly its echo.
fn complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| line.contains("error:") || line.contains("fatal:"));
    match first.or_else(|| said.lines().next()) {
        Some(line) => line.trim().to_owned(),
        None => format!("pgbench ended with {}", output.status),
    }
}
