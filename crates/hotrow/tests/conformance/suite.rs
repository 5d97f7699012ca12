//! One suite: its entry in `conformance/suites.toml`, and how its tests run at one port. Its folder has `prepare.sh`,
//! which fetches the suite, `run.sh`, which writes one outcome per line to $RESULTS, and sometimes `setup.sql`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;

/// A suite that takes longer is considered hung.
const TIME: Duration = Duration::from_secs(20 * 60);
/// The number of characters shown of the output of a suite that fails.
const OUTPUT_TAIL: usize = 4000;

/// An entry of `suites.toml`.
#[derive(Clone, Debug, Deserialize)]
pub struct Suite {
    /// Its folder.
    pub name: String,
    /// Its description, with its version.
    pub what: String,
    /// Whether the suite is also part of a quick run, with little time and only package managers.
    #[serde(default)]
    pub quick: bool,
}

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Skipped,
    /// With its message.
    Failed(String),
}

/// The tests of a run by their names.
pub type Outcomes = BTreeMap<String, Outcome>;

/// A line of $RESULTS.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Test { test: String, outcome: OutcomeName, message: String },
    End { end: usize },
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum OutcomeName {
    Passed,
    Skipped,
    Failed,
}

/// The folder of all suites.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").canonicalize().expect("the folder exists")
}

impl Suite {
    fn folder(&self) -> PathBuf {
        folder().join(&self.name)
    }

    /// SQL that the server must run before the suite.
    pub fn setup(&self) -> Option<String> {
        std::fs::read_to_string(self.folder().join("setup.sql")).ok()
    }

    /// Fetches the suite, if it is missing.
    pub fn prepare(&self) -> Result<(), String> {
        run(&mut Command::new(self.folder().join("prepare.sh"))).map(drop)
    }

    /// Runs all its tests, or some, in this database at this port.
    pub fn run(
        &self,
        port: u16,
        database: &str,
        only: Option<&BTreeSet<String>>,
    ) -> Result<Outcomes, String> {
        let results = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let mut command = Command::new(self.folder().join("run.sh"));
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", port.to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", database)
            .env("RESULTS", results.path());
        let mut list = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        if let Some(only) = only {
            only.iter().try_for_each(|test| writeln!(list, "{test}")).map_err(|error| error.to_string())?;
            command.env("ONLY", list.path());
        }
        let output = run(&mut command);
        let written = std::fs::read_to_string(results.path()).map_err(|error| error.to_string())?;
        // A suite with failures exits with an error. Its results are valid if it came to its end.
        read(&written).ok_or_else(|| match output {
            Ok(output) | Err(output) => format!("{} did not complete:\n{output}", self.name),
        })
    }
}

/// The outcomes that a suite has written, or none if the suite did not come to its end.
fn read(written: &str) -> Option<Outcomes> {
    let mut outcomes = Outcomes::new();
    for line in written.lines() {
        match serde_json::from_str(line).ok()? {
            Line::End { end } => return (end == outcomes.len()).then_some(outcomes),
            Line::Test { test, outcome, message } => {
                let outcome = match outcome {
                    OutcomeName::Passed => Outcome::Passed,
                    OutcomeName::Skipped => Outcome::Skipped,
                    OutcomeName::Failed => Outcome::Failed(message),
                };
                outcomes.insert(test, outcome);
            }
        }
    }
    None
}

/// Runs a program to its end, with all its children. Returns the end of its output, as an error if the program failed.
fn run(command: &mut Command) -> Result<String, String> {
    let (mut reader, ours) = std::io::pipe().map_err(|error| error.to_string())?;
    let theirs = ours.try_clone().map_err(|error| error.to_string())?;
    let spawned = command.process_group(0).stdin(Stdio::null()).stdout(ours).stderr(theirs).spawn();
    let mut child = spawned.map_err(|error| format!("{command:?}: {error}"))?;
    command.stdout(Stdio::null()).stderr(Stdio::null()); // the pipe must end with the child
    let group = Pid::from_raw(child.id().cast_signed());
    let (ended, end) = channel();
    thread::spawn(move || {
        let mut output = Vec::new();
        let read = std::io::Read::read_to_end(&mut reader, &mut output);
        // The receiver is gone if the suite took too long.
        let _ = ended.send(read.and_then(|_| child.wait()).map(|status| (status, output)));
    });
    let Ok(ended) = end.recv_timeout(TIME) else {
        killpg(group, Signal::SIGKILL).map_err(|error| error.to_string())?;
        return Err(format!("{command:?} took longer than {TIME:?}"));
    };
    let (status, output) = ended.map_err(|error| error.to_string())?;
    let output = String::from_utf8_lossy(&output);
    let skipped = output.char_indices().rev().nth(OUTPUT_TAIL).map_or(0, |(index, _)| index);
    let last = output[skipped..].to_owned();
    if status.success() { Ok(last) } else { Err(format!("{status}\n{last}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_cut_off_has_no_outcomes() {
        let test = r#"{"test": "a", "outcome": "failed", "message": "no"}"#;
        assert_eq!(read(test), None);
        assert_eq!(read(&format!("{test}\n{{\"end\": 2}}")), None);
        let outcomes = read(&format!("{test}\n{{\"end\": 1}}")).unwrap();
        assert_eq!(outcomes["a"], Outcome::Failed("no".to_owned()));
    }

    #[test]
    fn a_failure_contains_the_end_of_the_output() {
        let failed = run(Command::new("sh").args(["-c", "echo before; echo ümläut; exit 3"])).unwrap_err();
        assert!(failed.ends_with("before\nümläut\n") && failed.contains('3'), "{failed}");
    }
}
