//! The load: one run of pgbench against one endpoint; it knows nothing of scenarios, rows or reports.

mod log;
mod output;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::files::temporary_folder;
use crate::load::{Answers, Failure, NoFigure, Part};
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
    /// Where to connect.
    pub endpoint: &'a Endpoint,
    /// The script. It finds the variables `rows`, `run`, `clients`, and `previous`, which is 0 until the script sets it.
    pub script: &'a str,
    /// How its statements are sent.
    pub protocol: Protocol,
    /// The number of connections.
    pub clients: u32,
    /// Requests per second, unless each client sends its next one when it has its answer.
    pub rate: Option<u32>,
    /// The share of the transactions to log; none are logged at zero.
    pub logged_part: f64,
    /// The part of a run that it makes.
    pub part: &'a Part,
}

impl Pgbench {
    /// Looks for it.
    pub async fn find(server: Option<&Binaries>) -> Result<Self, Error> {
        let program = crate::programs::find("pgbench", server).ok_or(Error::NoPgbench)?;
        let output = Command::new(&program).arg("--version").output().await;
        let output = output.map_err(Error::file("run", &program))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        // Half of the cores: what is measured shares the machine with its load, and must be what is short.
        let threads = u32::try_from(cores / 2).unwrap_or(u32::MAX).max(1);
        Ok(Self { program, version, threads })
    }

    /// Runs a load to its end.
    pub async fn run(&self, load: &Load<'_>) -> Result<Answers, NoFigure> {
        let folder = temporary_folder()?;
        let script = folder.path().join("script.sql");
        std::fs::write(&script, load.script).map_err(Error::file("write", &script))?;

        let child = self.command(load, &script, &folder.path().join("log")).output();
        let Ok(output) = tokio::time::timeout(patience(load), child).await else {
            let (waited, seconds) = (patience(load), load.part.seconds);
            let reason =
                format!("pgbench had not ended {waited:?} after it was started, for a run of {seconds} s");
            return Err(Failure(reason).into());
        };
        let output = output.map_err(Error::file("run", &self.program))?;
        if !output.status.success() {
            return Err(Failure(complaint(&output)).into());
        }
        let counts = output::parse(&String::from_utf8_lossy(&output.stdout))?;
        if counts.failed > 0 {
            return Err(Failure(format!("{} transactions failed", counts.failed)).into());
        }
        Ok(Answers::new(counts.processed, counts.per_second, log::read(folder.path())?))
    }

    fn command(&self, load: &Load<'_>, script: &Path, log: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--no-vacuum").arg("--protocol").arg(load.protocol.name());
        command.arg("--client").arg(load.clients.to_string());
        command.arg("--jobs").arg(load.clients.min(self.threads).to_string());
        command.arg("--time").arg((load.part.seconds + seconds_to_connect(load)).to_string());
        command.arg("--define").arg(format!("rows={}", load.part.rows));
        command.arg("--define").arg(format!("run={}", load.part.number));
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
    load.clients / CONNECTIONS_A_SECOND + u32::from(load.part.seconds == 1)
}

/// How long to wait for the end: connecting and the last transactions take their time where hundreds wait for one row.
fn patience(load: &Load<'_>) -> Duration {
    const FOR_CONNECTING_AND_ENDING: Duration = Duration::from_secs(60);
    Duration::from_secs((load.part.seconds + seconds_to_connect(load)).into()) + FOR_CONNECTING_AND_ENDING
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
