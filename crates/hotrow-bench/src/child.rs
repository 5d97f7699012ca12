//! A program that runs during the benchmark, such as a gateway. Its output is kept, and the program ends with the benchmark.

use crate::error::Error;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

/// Lines of a child's output that are kept, and those among them that an error message has.
const KEPT_LINES: usize = 500;
const TOLD_LINES: usize = 20;

/// A child's output.
#[derive(Debug, Default)]
struct Output {
    last_lines: VecDeque<String>,
    /// All bytes since the start, with the ends of lines.
    bytes: u64,
}

type SharedOutput = Arc<Mutex<Output>>;

/// A running child process. Dropping it kills the process.
#[derive(Debug)]
pub struct Child {
    program: PathBuf,
    process: tokio::process::Child,
    lines: Receiver<String>,
    output: SharedOutput,
    /// The program's folder, which it can use until its end.
    _folder: Option<TempDir>,
}

impl Child {
    /// Time limit for a program to become ready, and for its end.
    const PATIENCE: Duration = Duration::from_secs(30);

    pub fn start(program: &Path, command: Command) -> Result<Self, Error> {
        Self::start_with(program, command, None)
    }

    /// Starts a program with a folder that is removed after the program's end.
    pub fn start_with(
        program: &Path,
        mut command: Command,
        folder: impl Into<Option<TempDir>>,
    ) -> Result<Self, Error> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // Nothing is written to the program's input. Its end shows a script that this program has ended, for whatever
        // reason. The program has a process group of its own: after Ctrl-C the load ends first, then the gateway, then the
        // server.
        command.process_group(0);
        let mut process = command.spawn().map_err(Error::file("run", program))?;
        let output = SharedOutput::default();
        let (sender, lines) = channel(64);
        if let Some(stdout) = process.stdout.take() {
            tokio::spawn(listen(stdout, sender.clone(), Arc::clone(&output)));
        }
        if let Some(stderr) = process.stderr.take() {
            tokio::spawn(listen(stderr, sender, Arc::clone(&output)));
        }
        Ok(Self { program: program.to_owned(), process, lines, output, _folder: folder.into() })
    }

    /// Waits for a line of output in which `find` finds something.
    pub async fn ready<T>(&mut self, find: impl FnMut(&str) -> Option<T>) -> Result<T, Error> {
        self.ready_within(Self::PATIENCE, find).await
    }

    /// The same with a longer time limit.
    pub async fn ready_within<T>(
        &mut self,
        patience: Duration,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, Error> {
        let ready = async {
            while let Some(line) = self.lines.recv().await {
                if let Some(found) = find(&line) {
                    return Some(found);
                }
            }
            None
        };
        match timeout(patience, ready).await {
            Ok(Some(found)) => {
                self.lines.close();
                Ok(found)
            }
            Ok(None) => Err(Error::Ended { program: self.program.clone(), printed: self.last_lines() }),
            Err(_) => Err(Error::NotReady {
                program: self.program.clone(),
                waited: patience,
                printed: self.last_lines(),
            }),
        }
    }

    /// If the program has ended by itself: its status and its last output.
    pub fn exit_report(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok().flatten()?;
        Some(format!("{} had ended ({status}): {}", self.program.display(), self.last_lines()))
    }

    /// Waits until the program has ended by itself. An error names its last output.
    pub async fn end(mut self) -> Result<(), Error> {
        self.lines.close();
        let status = self.process.wait().await.map_err(Error::system("wait for a child process"))?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Ended { program: self.program.clone(), printed: self.last_lines() })
    }

    fn last_lines(&self) -> String {
        let lines = self.log();
        let told = lines[lines.len().saturating_sub(TOLD_LINES)..].join("\n");
        if told.is_empty() { "no output".into() } else { told }
    }

    /// The last 500 lines of its output.
    pub fn log(&self) -> Vec<String> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).last_lines.iter().cloned().collect()
    }

    /// The bytes of its output since its start.
    pub fn log_bytes(&self) -> u64 {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// The process ID, unless the program has ended.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.process.start_kill().map_err(Error::system("kill a child process"))
    }

    /// Asks the process to end, and kills it if it does not.
    pub async fn stop(mut self) -> Result<(), Error> {
        let stopping = || Error::system("stop a child process");
        if let Some(id) = self.process.id().and_then(|id| i32::try_from(id).ok()) {
            kill(Pid::from_raw(id), Signal::SIGTERM).map_err(|error| stopping()(error.into()))?;
        }
        match timeout(Self::PATIENCE, self.process.wait()).await {
            Ok(ended) => ended.map(drop).map_err(stopping()),
            Err(_) => self.process.kill().await.map_err(stopping()),
        }
    }
}

/// Reads to the end, so that the child never blocks on a full pipe. Only the last lines are kept.
async fn listen(stream: impl AsyncRead + Unpin, lines: Sender<String>, output: SharedOutput) {
    let mut reader = BufReader::new(stream).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            if output.last_lines.len() == KEPT_LINES {
                output.last_lines.pop_front();
            }
            output.last_lines.push_back(line.clone());
            output.bytes += line.len() as u64 + 1;
        }
        // After the program is ready, no reader waits for its lines.
        let _ = lines.send(line).await;
    }
}
