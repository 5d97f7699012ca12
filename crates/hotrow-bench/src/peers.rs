//! Queues that others wrote, as techniques to compare with: the programs of `peers/`, found where `make peers` has installed them,
//! told how many orders to enqueue and then to work off; what they do with them is theirs.

use crate::endpoint::Endpoint;
use crate::load::{Answers, Failure, Part};
use crate::scenario::Peer;
use crate::statistics::Latencies;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// The programs on this machine; where one can't be run, why not.
#[derive(Debug)]
pub struct Peers {
    node: Result<Program, Failure>,
    go: Result<Program, Failure>,
}

/// One that says its versions.
#[derive(Debug)]
struct Program {
    path: PathBuf,
    script: Option<PathBuf>,
    versions: String,
}

/// What a program is to do.
#[derive(Debug)]
pub struct Job<'a> {
    /// The program.
    pub peer: Peer,
    /// The part of a run that it makes, with the queue's name as the technique's name.
    pub part: &'a Part,
    /// The server.
    pub server: &'a Endpoint,
    /// Where its workers connect to, if they are Hotrow's.
    pub endpoint: &'a Endpoint,
}

/// What it says when it is done.
#[derive(Debug, Deserialize)]
struct Done {
    orders: u64,
    seconds: f64,
}

impl Peers {
    /// Looks for them.
    pub async fn find(folder: Option<&Path>) -> Self {
        let Some(folder) = folder else {
            let reason = "install its program with `make peers` and name the folder with --peers";
            let missing = || Err(Failure(reason.to_owned()));
            return Self { node: missing(), go: missing() };
        };
        let node = folder.join("node");
        let script = node.join("work.js");
        Self {
            node: Program::find(node.join("node_modules/.bin/node"), Some(script)).await,
            go: Program::find(folder.join("go/river"), None).await,
        }
    }

    /// What those that can be run say of themselves.
    pub fn versions(&self) -> impl Iterator<Item = String> {
        [&self.node, &self.go].into_iter().flatten().map(|program| program.versions.clone())
    }

    /// Whether a program can be run.
    pub fn can_run(&self, peer: Peer) -> Result<(), Failure> {
        self.program(peer).map(drop)
    }

    fn program(&self, peer: Peer) -> Result<&Program, Failure> {
        match peer {
            Peer::Node => self.node.as_ref().map_err(Clone::clone),
            Peer::Go => self.go.as_ref().map_err(Clone::clone),
        }
    }

    /// Lets it make its tables, if it has none yet, and put the orders in.
    pub async fn enqueue(&self, job: &Job<'_>) -> Result<(), Failure> {
        self.run(job, "enqueue").await.map(drop)
    }

    /// Lets it work them off.
    pub async fn work(&self, job: &Job<'_>) -> Result<Answers, Failure> {
        let said = self.run(job, "work").await?;
        let done: Done = serde_json::from_str(said.trim())
            .map_err(|error| Failure(format!("{} said {said:?}: {error}", job.part.run.technique.name)))?;
        Ok(Answers::new(done.orders, done.orders as f64 / done.seconds, Latencies::new()))
    }

    async fn run(&self, job: &Job<'_>, what: &str) -> Result<String, Failure> {
        // Far more than any run should take.
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
        let output = output.map_err(|error| Failure(format!("can't run {path}: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Failure(format!("{path} ended with {}: {}", output.status, complaint(&output))))
    }
}

impl Program {
    async fn find(path: PathBuf, script: Option<PathBuf>) -> Result<Self, Failure> {
        let mut program = Self { path, script, versions: String::new() };
        let output = program.command().arg("versions").output().await;
        let path = program.path.display();
        let output = output
            .map_err(|error| Failure(format!("{path} can't be run ({error}): `make peers` installs it")))?;
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

/// The line that names the error: Node.js surrounds it with the place and all that was under way.
fn complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let named = said.lines().find(|line| line.contains("rror: "));
    named.or_else(|| said.lines().next()).unwrap_or("no output").trim().to_owned()
}
