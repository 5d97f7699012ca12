//! A program under examples in another language: how it is started, and what it prints.

use std::convert::Infallible;
use std::env;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use tokio::process::Command;

/// Time limit of a program in addition to its measured time: compilers and virtual machines take seconds to start.
const TIME: Duration = Duration::from_secs(120);

/// A program.
pub struct Program {
    /// Its name in the report.
    pub name: &'static str,
    /// Its folder under examples, and the one in there.
    pub folders: [&'static str; 2],
    /// The command in this folder, before its arguments.
    pub command: &'static [&'static str],
}

impl Program {
    /// Runs the program with its first argument, the URL of a database and more arguments, and returns what it prints. Ends
    /// it with its children if it takes too long.
    pub async fn run(&self, step: &str, port: u16, database: &str, arguments: &[String]) -> String {
        let folder = self.folders.iter().fold(root().join("examples"), |folder, inner| folder.join(inner));
        let (program, first) = self.command.split_first().unwrap();
        let program = if program.contains('/') { folder.join(program) } else { PathBuf::from(program) };
        let url = format!("postgres://postgres@127.0.0.1:{port}/{database}");
        let child = Command::new(program)
            .args(first)
            .args([step, &url])
            .args(arguments)
            .current_dir(folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}: use make, which downloads it", self.name));
        let group = Pid::from_raw(child.id().unwrap().cast_signed());
        let Ok(output) = tokio::time::timeout(TIME, child.wait_with_output()).await else {
            killpg(group, Signal::SIGKILL).unwrap();
            panic!("{} {step} took longer than {TIME:?}", self.name);
        };
        let output = output.unwrap();
        let (printed, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{} {step}: {}\n{printed}{errors}", self.name, output.status);
        printed.into_owned()
    }

    /// The same while `watching` is polled.
    pub async fn run_watched(
        &self,
        step: &str,
        port: u16,
        database: &str,
        arguments: &[String],
        watching: impl Future<Output = Infallible>,
    ) -> String {
        tokio::select! {
            output = self.run(step, port, database, arguments) => output,
            never = watching => match never {},
        }
    }

    /// The last line of what it printed, as a JSON document.
    pub fn result<T: DeserializeOwned>(&self, output: &str) -> T {
        let last = output.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{}: {error}: {output}", self.name))
    }
}

/// Those that `HOTROW_TEST_ONLY` names, or all.
pub fn chosen<T>(all: &[T], name: impl Fn(&T) -> &'static str) -> Vec<&T> {
    let only = env::var("HOTROW_TEST_ONLY").unwrap_or_default();
    let only: Vec<&str> = only.split_whitespace().collect();
    for wanted in &only {
        assert!(all.iter().any(|one| name(one) == *wanted), "nothing is called {wanted}");
    }
    all.iter().filter(|one| only.is_empty() || only.contains(&name(one))).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
