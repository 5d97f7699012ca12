//! A child process that prints its address. Dropping the value kills the process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

/// A program of this workspace.
pub struct Program {
    command: Command,
    child: Option<Child>,
    log: Arc<Mutex<String>>,
}

impl Program {
    /// Starts a program and waits for its first line.
    pub fn start(path: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(path);
        command.args(arguments).envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = Self { command, child: None, log: Arc::default() };
        program.restart();
        program
    }

    /// Starts another process with the same arguments and environment.
    pub fn start_another(&self) -> Self {
        let mut command = Command::new(self.command.get_program());
        command.args(self.command.get_args());
        command.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut start_another = Self { command, child: None, log: Arc::default() };
        start_another.restart();
        start_another
    }

    /// Starts the program again with the same arguments and environment. A connection of another program may occupy its
    /// port for a moment, so there are several tries.
    pub fn restart(&mut self) {
        for _ in 0..20 {
            self.kill_dash_nine();
            let mut child = self.command.spawn().unwrap();
            let log = self.log.clone();
            let words = BufReader::new(child.stderr.take().unwrap());
            std::thread::spawn(move || {
                for line in words.lines().map_while(Result::ok) {
                    let mut log = log.lock().unwrap();
                    log.push_str(&line);
                    log.push('\n');
                }
            });
            let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
            let first = out.next();
            self.child = Some(child);
            if first.is_some() {
                std::thread::spawn(move || out.map_while(Result::ok).for_each(drop));
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100)); // nothing signals that the port is free
        }
        panic!("the program does not start:\n{}", self.log.lock().unwrap());
    }

    /// Asks the process to end, as an orderly stop does.
    pub fn ask_to_end(&self) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// The exit status, if the process has ended.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().unwrap().try_wait().unwrap()
    }

    /// Kills the process, as a crash would.
    pub fn kill_dash_nine(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The process may have ended by itself.
            let _ = child.kill();
            child.wait().unwrap();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill_dash_nine();
        if std::thread::panicking() {
            let log = self.log.lock().unwrap();
            let lines: Vec<_> = log.lines().collect();
            eprintln!("end of the log:\n{}", lines[lines.len().saturating_sub(20)..].join("\n"));
        }
    }
}
