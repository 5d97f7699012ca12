//! A framework's program: how it is started, what it prints, and the check of its row.

use std::convert::Infallible;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hotrow_testkit::{config, connect, value};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;
use tokio::process::Command;

/// Time limit of a program in addition to its measured time: compilers and virtual machines take seconds to start.
const TIME: Duration = Duration::from_secs(120);

/// A program under examples/frameworks.
pub struct Framework {
    /// The framework.
    pub name: &'static str,
    /// Its folder under examples/frameworks.
    pub folder: &'static str,
    /// The command in this folder, before its arguments.
    pub command: &'static [&'static str],
    /// The table that it creates, as SQL names it.
    pub table: &'static str,
    /// Whether it wraps a single statement in a transaction by default.
    pub wraps: bool,
}

/// A row of the table of programs.
pub const fn framework(
    name: &'static str,
    folder: &'static str,
    command: &'static [&'static str],
    table: &'static str,
) -> Framework {
    Framework { name, folder, command, table, wraps: false }
}

/// How the update is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// One statement that commits on its own.
    Autocommit,
    /// The same statement in the transaction that the framework opens for it by default.
    Wrapped,
    /// A transaction that reads the row with a lock, changes it and writes it, with a round trip for each statement.
    Transaction,
}

impl Variant {
    /// Its name as an argument and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Autocommit => "autocommit",
            Variant::Wrapped => "wrapped",
            Variant::Transaction => "transaction",
        }
    }
}

/// What a program prints.
#[derive(Deserialize)]
struct Printed {
    updates: u64,
    per_second: f64,
}

/// One run of a program under load.
pub struct Run<'f> {
    /// The program.
    pub framework: &'f Framework,
    /// The form of its update.
    pub variant: Variant,
    /// The server's port.
    pub server: u16,
    /// Concurrent workers.
    pub workers: usize,
    /// Measured seconds.
    pub seconds: usize,
}

impl Run<'_> {
    /// Runs the program against a port while `watching` is polled. Checks that the row contains each acknowledged
    /// update once, and returns the updates per second.
    pub async fn checked(&self, port: u16, watching: impl Future<Output = Infallible>) -> f64 {
        let before = self.framework.sold(self.server).await;
        let arguments = [self.workers.to_string(), self.seconds.to_string()];
        let running = self.framework.run(self.variant.name(), port, &arguments);
        let output = tokio::select! {
            output = running => output,
            never = watching => match never {},
        };
        let last = output.lines().last().unwrap_or_default();
        let printed: Printed = serde_json::from_str(last)
            .unwrap_or_else(|error| panic!("{}: {error}: {output}", self.framework.name));
        let sold = self.framework.sold(self.server).await - before;
        assert_eq!(sold, printed.updates, "{}: the row and the acknowledged updates", self.framework.name);
        printed.per_second
    }
}

impl Framework {
    /// The same for a framework that wraps a single statement in a transaction by default.
    pub const fn wrapping(mut self) -> Self {
        self.wraps = true;
        self
    }

    /// The forms of its update.
    pub fn variants(&self) -> impl Iterator<Item = Variant> {
        let all = [Variant::Autocommit, Variant::Wrapped, Variant::Transaction];
        all.into_iter().filter(|variant| self.wraps || *variant != Variant::Wrapped)
    }

    /// Creates the table with one row.
    pub async fn set_up(&self, port: u16) {
        self.run("setup", port, &[]).await;
    }

    /// The row's value on the server with this port.
    async fn sold(&self, server: u16) -> u64 {
        let mut config = config(server);
        let direct = connect(config.dbname(self.name)).await;
        value(&direct, &format!("select sold from {} where id = 1", self.table)).await.parse().unwrap()
    }

    /// Runs the program and returns what it prints. Ends it with its children if it takes too long.
    async fn run(&self, variant: &str, port: u16, arguments: &[String]) -> String {
        let folder = root().join("examples/frameworks").join(self.folder);
        let (program, first) = self.command.split_first().unwrap();
        let program = if program.contains('/') { folder.join(program) } else { PathBuf::from(program) };
        let url = format!("postgres://postgres@127.0.0.1:{port}/{}", self.name);
        let child = Command::new(program)
            .args(first)
            .args([variant, &url])
            .args(arguments)
            .current_dir(folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}: run make frameworks", self.name));
        let group = Pid::from_raw(child.id().unwrap().cast_signed());
        let Ok(output) = tokio::time::timeout(TIME, child.wait_with_output()).await else {
            killpg(group, Signal::SIGKILL).unwrap();
            panic!("{} {variant} took longer than {TIME:?}", self.name);
        };
        let output = output.unwrap();
        let (printed, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{} {variant}: {}\n{printed}{errors}", self.name, output.status);
        printed.into_owned()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
