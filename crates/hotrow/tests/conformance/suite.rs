//! One suite: what `conformance/suites.toml` says of it, and how its tests are run at one port. Its folder has
//! `prepare.sh`, which fetches it, `run.sh`, which writes an outcome a line to $RESULTS, and perhaps `setup.sql`.

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

/// A suite that takes longer hangs.
const TIME: Duration = Duration::from_secs(20 * 60);
/// How much of what a suite that ends badly has printed is shown.
const LAST_WORDS: usize = 4000;

/// A line of `suites.toml`.
#[derive(Clone, Debug, Deserialize)]
pub struct Suite {
    /// Its folder.
    pub name: String,
    /// What it is, with its version.
    pub what: String,
    /// Whether it runs also where there is little time and only package managers.
    #[serde(default)]
    pub quick: bool,
}

/// What became of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Skipped,
    /// With its message.
    Failed(String),
}

/// The tests of a run by their names.
pub type Outcomes = BTreeMap<String, Outcome>;

/// What is written to $RESULTS.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Test { test: String, outcome: Word, message: String },
    End { end: usize },
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Passed,
    Skipped,
    Failed,
}

/// The folder of all suites.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").canonicalize().expect("it is there")
}

impl Suite {
    fn folder(&self) -> PathBuf {
        folder().join(&self.name)
    }

    /// What the server must hold before a run.
    pub fn setup(&self) -> Option<String> {
        std::fs::read_to_string(self.folder().join("setup.sql")).ok()
    }

    /// Fetches what it needs, where that is not there.
    pub fn prepare(&self) -> Result<(), String> {
        run(&mut Command::new(self.folder().join("prepare.sh"))).map(drop)
    }

    /// Runs all its tests, or only some, in this database at this port.
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
        let said = run(&mut command);
        let written = std::fs::read_to_string(results.path()).map_err(|error| error.to_string())?;
        // A suite with failures ends with an error: what counts is whether it has come to its end.
        read(&written).ok_or_else(|| match said {
            Ok(said) | Err(said) => format!("{} did not come to its end:\n{said}", self.name),
        })
    }
}

/// The outcomes that a suite has written; none if it was not all.
fn read(written: &str) -> Option<Outcomes> {
    let mut outcomes = Outcomes::new();
    for line in written.lines() {
        match serde_json::from_str(line).ok()? {
            Line::End { end } => return (end == outcomes.len()).then_some(outcomes),
            Line::Test { test, outcome, message } => {
                let outcome = match outcome {
                    Word::Passed => Outcome::Passed,
                    Word::Skipped => Outcome::Skipped,
                    Word::Failed => Outcome::Failed(message),
                };
                outcomes.insert(test, outcome);
            }
        }
    }
    None
}

/// Runs a program to its end, with all its children; the last of what it printed, as an error if it failed.
fn run(command: &mut Command) -> Result<String, String> {
    let (mut output, ours) = std::io::pipe().map_err(|error| error.to_string())?;
    let theirs = ours.try_clone().map_err(|error| error.to_string())?;
    let spawned = command.process_group(0).stdin(Stdio::null()).stdout(ours).stderr(theirs).spawn();
    let mut child = spawned.map_err(|error| format!("{command:?}: {error}"))?;
    command.stdout(Stdio::null()).stderr(Stdio::null()); // so that the pipe ends with the child
    let group = Pid::from_raw(child.id().cast_signed());
    let (ended, end) = channel();
    thread::spawn(move || {
        let mut said = Vec::new();
        let read = std::io::Read::read_to_end(&mut output, &mut said);
        // Nobody listens any more when it took too long.
        let _ = ended.send(read.and_then(|_| child.wait()).map(|status| (status, said)));
    });
    let Ok(ended) = end.recv_timeout(TIME) else {
        killpg(group, Signal::SIGKILL).map_err(|error| error.to_string())?;
        return Err(format!("{command:?} takes longer than {TIME:?}"));
    };
    let (status, said) = ended.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&said);
    let skipped = said.char_indices().rev().nth(LAST_WORDS).map_or(0, |(index, _)| index);
    let last = said[skipped..].to_owned();
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
    fn last_words_are_the_last() {
        let failed = run(Command::new("sh").args(["-c", "echo before; echo ümläut; exit 3"])).unwrap_err();
        assert!(failed.ends_with("before\nümläut\n") && failed.contains('3'), "{failed}");
    }
}
