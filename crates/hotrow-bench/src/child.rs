//! A program that runs beside the benchmark, such as a gateway: what it says is kept, and it ends with the benchmark.

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

/// What a program has said last.
type LastLines = Arc<Mutex<VecDeque<String>>>;

/// A running child process. Dropped, it is killed.
#[derive(Debug)]
pub struct Child {
    program: PathBuf,
    process: tokio::process::Child,
    lines: Receiver<String>,
    last_said: LastLines,
    /// Its files, which it may use until it has ended.
    _folder: Option<TempDir>,
}

impl Child {
    /// How long a program may take until it is ready, or until it has ended.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Starts it.
    pub fn start(program: &Path, command: Command) -> Result<Self, Error> {
        Self::start_with(program, command, None)
    }

    /// Starts it with a folder that is removed after its end.
    pub fn start_with(
        program: &Path,
        mut command: Command,
        folder: impl Into<Option<TempDir>>,
    ) -> Result<Self, Error> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // Nothing is ever written to its input, whose end tells a script that this program is gone, however that happened.
        // A group of its own: at Ctrl-C the load is to end first, then the gateway, then the server.
        command.process_group(0);
        let mut process = command.spawn().map_err(Error::file("run", program))?;
        let last_said = Arc::default();
        let (sender, lines) = channel(64);
        if let Some(stdout) = process.stdout.take() {
            tokio::spawn(listen(stdout, sender.clone(), Arc::clone(&last_said)));
        }
        if let Some(stderr) = process.stderr.take() {
            tokio::spawn(listen(stderr, sender, Arc::clone(&last_said)));
        }
        Ok(Self { program: program.to_owned(), process, lines, last_said, _folder: folder.into() })
    }

    /// Waits until it says a line in which `find` finds something.
    pub async fn ready<T>(&mut self, find: impl FnMut(&str) -> Option<T>) -> Result<T, Error> {
        self.ready_within(Self::PATIENCE, find).await
    }

    /// The same for one that takes its time.
    pub async fn ready_within<T>(
        &mut self,
        patience: Duration,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, Error> {
        let said = async {
            while let Some(line) = self.lines.recv().await {
                if let Some(found) = find(&line) {
                    return Some(found);
                }
            }
            None
        };
        match timeout(patience, said).await {
            Ok(Some(found)) => {
                self.lines.close();
                Ok(found)
            }
            Ok(None) => Err(Error::Ended { program: self.program.clone(), said: self.last_said() }),
            Err(_) => Err(Error::NotReady {
                program: self.program.clone(),
                waited: patience,
                said: self.last_said(),
            }),
        }
    }

    /// If it has ended by itself: how, and its last words.
    pub fn obituary(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok().flatten()?;
        Some(format!("{} had ended ({status}): {}", self.program.display(), self.last_said()))
    }

    fn last_said(&self) -> String {
        let lines = self.last_said.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() { "no output".into() } else { Vec::from(lines.clone()).join("\n") }
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.process.start_kill().map_err(Error::system("kill a child process"))
    }

    /// Asks it to end, and kills it if it doesn't.
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

/// Reads on to the end, so that the child never blocks on a full pipe; only its last lines are kept.
async fn listen(stream: impl AsyncRead + Unpin, lines: Sender<String>, last_said: LastLines) {
    const KEPT_LINES: usize = 20;
    let mut reader = BufReader::new(stream).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        {
            let mut kept = last_said.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() == KEPT_LINES {
                kept.pop_front();
            }
            kept.push_back(line.clone());
        }
        // Once it is ready nobody waits for its lines any more.
        let _ = lines.send(line).await;
    }
}
