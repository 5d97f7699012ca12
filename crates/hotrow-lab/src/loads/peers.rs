//! Runs queues of other projects for comparison: finds the programs of `peers/` that `make peers` has installed, and gives
//! each the number of orders to enqueue and then to process. The programs decide how they do this.

use super::Peer;
use hotrow_bench::endpoint::Endpoint;
use hotrow_bench::load::{Answers, Failure, Part};
use hotrow_bench::statistics::Latencies;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// The programs on this machine, or the reason why one cannot run.
#[derive(Debug, Clone)]
pub struct Peers {
    node: Result<Program, Failure>,
    go: Result<Program, Failure>,
}

/// A program and the versions that it reports.
#[derive(Debug, Clone)]
struct Program {
    path: PathBuf,
    script: Option<PathBuf>,
    versions: String,
}

#[derive(Debug)]
pub struct Job<'a> {
    /// The program.
    pub peer: Peer,
    /// The part of a run. The technique's name is the name of the queue.
    pub part: &'a Part,
    pub server: &'a Endpoint,
    /// The address for its workers, if they are clients of Hotrow.
    pub endpoint: &'a Endpoint,
}

/// The output of a program at its end.
#[derive(Debug, Deserialize)]
struct Done {
    orders: u64,
    seconds: f64,
}

impl Peers {
    /// Looks for the programs.
    pub fn find(folder: Option<&Path>) -> Self {
        let Some(folder) = folder else {
            let reason = "install its program with `make peers` and name the folder with --peers";
            let missing = || Err(Failure(reason.to_owned()));
            return Self { node: missing(), go: missing() };
        };
        let node = folder.join("node");
        let script = node.join("work.js");
        Self {
            node: Program::find(node.join("node_modules/.bin/node"), Some(script)),
            go: Program::find(folder.join("go/river"), None),
        }
    }

    /// The versions that the programs report.
    pub fn versions(&self) -> impl Iterator<Item = String> {
        [&self.node, &self.go].into_iter().flatten().map(|program| program.versions.clone())
    }

    /// Whether a program can run.
    pub fn can_run(&self, peer: Peer) -> Result<(), Failure> {
        self.program(peer).map(drop)
    }

    fn program(&self, peer: Peer) -> Result<&Program, Failure> {
        match peer {
            Peer::Node => self.node.as_ref().map_err(Clone::clone),
            Peer::Go => self.go.as_ref().map_err(Clone::clone),
        }
    }

    /// Runs the program to create its tables, if there are none, and to enqueue the orders.
    pub async fn enqueue(&self, job: &Job<'_>) -> Result<(), Failure> {
        self.run(job, "enqueue").await.map(drop)
    }

    /// Runs the program to process the orders.
    pub async fn work(&self, job: &Job<'_>) -> Result<Answers, Failure> {
        let printed = self.run(job, "work").await?;
        let done: Done = serde_json::from_str(printed.trim()).map_err(|error| {
            Failure(format!("{} printed {printed:?}: {error}", job.part.run.technique.name))
        })?;
        Ok(Answers::new(done.orders, done.orders as f64 / done.seconds, Latencies::new()))
    }

    async fn run(&self, job: &Job<'_>, what: &str) -> Result<String, Failure> {
        // Much more than any run should take.
        const PATIENCE: Duration = Duration::from_secs(300);
        let program = self.program(job.peer)?;
        let mut command = program.command();
        command.args([what, job.part.run.technique.name]);
        let (workers, run) = (job.part.run.clients.into(), job.part.number.into());
        command.args([job.part.requests(), workers, run].map(|number: u64| number.to_string()));
        command.env("DATABASE_URL", job.server.url()).env("GATEWAY_URL", job.endpoint.url());
        let path = program.path.display();
        let Ok(output) = tokio::time::timeout(PATIENCE, command.output()).await else {
            return Err(Failure(format!("{path} had not ended {PATIENCE:?} after it was started")));
        };
        let output = output.map_err(|error| Failure(format!("cannot run {path}: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Failure(format!("{path} ended with {}: {}", output.status, complaint(&output))))
    }
}

impl Program {
    fn find(path: PathBuf, script: Option<PathBuf>) -> Result<Self, Failure> {
        let mut program = Self { path, script, versions: String::new() };
        let output = program.command().as_std_mut().arg("versions").output();
        let path = program.path.display();
        let output = output
            .map_err(|error| Failure(format!("cannot run {path} ({error}): `make peers` installs it")))?;
        if !output.status.success() {
            let (status, complaint) = (output.status, String::from_utf8_lossy(&output.stderr));
            let complaint = complaint.trim();
            return Err(Failure(format!(
                "{path} ended with {status} ({complaint}): `make peers` installs it"
            )));
        }
        program.versions = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(program)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.script).stdin(Stdio::null()).kill_on_drop(true);
        command
    }
}

/// The line that names the error. Node.js prints it between the source line and the stack.
fn complaint(output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stderr);
    let named = printed.lines().find(|line| line.contains("rror: "));
    named.or_else(|| printed.lines().next()).unwrap_or("no output").trim().to_owned()
}
