//! One run of pgbench against one endpoint. It does not depend on scenarios, rows or reports.

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

/// pgbench on this machine.
#[derive(Debug)]
pub struct Pgbench {
    program: PathBuf,
    /// The version that it prints.
    pub version: String,
    threads: u32,
}

/// The parameters of one run of pgbench.
#[derive(Debug, Clone)]
pub struct Load<'a> {
    /// The address to connect to.
    pub endpoint: &'a Endpoint,
    /// The script. It finds the variables `rows`, `run`, `clients`, and `previous`, which is 0 until the script sets it.
    pub script: &'a str,
    /// The protocol for its statements.
    pub protocol: Protocol,
    /// The number of connections.
    pub clients: u32,
    /// Requests per second in an open loop. Otherwise, each client sends its next request after the last answer.
    pub rate: Option<u32>,
    /// The share of the transactions to log. Zero logs none.
    pub logged_part: f64,
    /// The part of a run.
    pub part: &'a Part,
}

/// The requests of each client in a quick run.
const QUICK_REQUESTS: u32 = 5;

/// pgbench writes a line for each logged transaction, which takes about 0.2 µs: this number per second takes 0.2 % of a
/// core.
const LOGGED_PER_SECOND: f64 = 10_000.0;

impl<'a> Load<'a> {
    /// The load of a part by this number of clients.
    pub fn of(part: &'a Part, endpoint: &'a Endpoint, clients: u32) -> Self {
        let logged_part =
            |per_second: f64| if part.quick { 1.0 } else { (LOGGED_PER_SECOND / per_second).min(1.0) };
        Self {
            endpoint,
            script: part.script,
            protocol: part.protocol(),
            clients,
            rate: part.rate,
            logged_part: part.warmed_up.map_or(0.0, logged_part),
            part,
        }
    }
}

impl Pgbench {
    /// Looks for pgbench.
    pub async fn find(server: Option<&Binaries>) -> Result<Self, Error> {
        let program = crate::programs::find("pgbench", server).ok_or(Error::NoPgbench)?;
        let output = Command::new(&program).arg("--version").output().await;
        let output = output.map_err(Error::file("run", &program))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        // Half of the cores: the system under test shares the machine with its load, and must be the bottleneck.
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
        if load.part.quick {
            command.arg("--transactions").arg(QUICK_REQUESTS.to_string());
        } else {
            command.arg("--time").arg((load.part.seconds + seconds_to_connect(load)).to_string());
        }
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
        // Settings of the user for other uses of libpq must not affect some techniques and not others.
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

/// The time of a pgbench run includes connecting, but its rate does not. Without these extra seconds, hundreds of clients
/// would have no time left for requests, and so would a few clients on a busy machine in a run of one second.
fn seconds_to_connect(load: &Load<'_>) -> u32 {
    const CONNECTIONS_A_SECOND: u32 = 100; // on a busy machine
    load.clients / CONNECTIONS_A_SECOND + u32::from(load.part.seconds == 1)
}

/// Time limit for the run. If hundreds of clients wait for one row, connecting and the last transactions take long.
fn patience(load: &Load<'_>) -> Duration {
    const FOR_CONNECTING_AND_ENDING: Duration = Duration::from_secs(60);
    Duration::from_secs((load.part.seconds + seconds_to_connect(load)).into()) + FOR_CONNECTING_AND_ENDING
}

/// The first error of pgbench. Later ones are mostly its consequences.
fn complaint(output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stderr);
    let first = printed.lines().find(|line| line.contains("error:") || line.contains("fatal:"));
    match first.or_else(|| printed.lines().next()) {
        Some(line) => line.trim().to_owned(),
        None => format!("pgbench ended with {}", output.status),
    }
}
