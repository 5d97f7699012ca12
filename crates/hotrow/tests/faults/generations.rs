//! A gateway with the successors that take over from it, and visitors that connect for one statement. It contains no test.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hotrow_testkit::line::Line;
use hotrow_testkit::{PATIENCE, server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A gateway and all its successors. All write into the pipes of the first.
pub struct Generations {
    pub first: Child,
    /// The text of standard output and standard error.
    output: Arc<Mutex<String>>,
}

impl Generations {
    /// Starts the first gateway.
    pub fn start(mut command: Command) -> Self {
        let mut first = command
            .env("HOTROW_LOG", "info")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        let pipes: [Box<dyn Read + Send>; 2] =
            [Box::new(first.stdout.take().unwrap()), Box::new(first.stderr.take().unwrap())];
        for pipe in pipes {
            let output = output.clone();
            thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    *output.lock().unwrap() += &format!("{line}\n");
                }
            });
        }
        Generations { first, output }
    }

    /// The output so far.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// Waits until the output has this text `times` times.
    pub fn wait_for(&self, what: &str, times: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.output().matches(what).count() < times {
            assert!(Instant::now() < deadline, "{what:?} was not logged {times} times:\n{}", self.output());
            thread::sleep(Duration::from_millis(5)); // the condition has no signal
        }
    }

    /// The processes, in the order in which they have served.
    pub fn pids(&self) -> Vec<i32> {
        let output = self.output();
        let started = output.lines().filter(|line| line.contains("hotrow::serve: started"));
        started.map(|line| line.rsplit_once("pid=").unwrap().1.parse().unwrap()).collect()
    }

    /// Signals the gateway that serves.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(*self.pids().last().unwrap()), signal).unwrap();
    }

    /// The address on which it listens, as logged after this prefix: the same address each time.
    pub fn address(&self, prefix: &str) -> String {
        let output = self.output();
        let mut places: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
        places.dedup();
        assert_eq!(places.len(), 1, "{places:?}");
        places[0].to_owned()
    }

    /// Its port for clients.
    pub fn port(&self) -> u16 {
        self.address("hotrow: listening on 127.0.0.1:").parse().unwrap()
    }
}

impl Drop for Generations {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the gateways' output:\n{}", self.output());
        }
        // Earlier gateways have ended or are about to.
        if let Some(last) = self.pids().pop()
            && self.output().matches("hotrow::serve: stopped").count() < self.pids().len()
        {
            let _ = kill(Pid::from_raw(last), Signal::SIGKILL);
        }
        let _ = self.first.kill();
        let _ = self.first.wait();
    }
}

/// The command of a gateway in front of the shared server.
pub fn serve(options: &[&str]) -> Command {
    let mut command = hotrow_testkit::hotrow();
    command.args(["serve", "--upstream", &server().url()]).args(options);
    command
}

/// A folder for sockets, with a path that is short enough.
pub fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("hotrow-").tempdir_in("/tmp").unwrap()
}

/// Visits that a visitor makes, however soon it is stopped.
const VISITS_MIN: usize = 5;

/// Connects, runs one statement and disconnects, repeatedly. Returns the failures.
pub fn visitors(port: u16, schema: &str, stop: &AtomicBool) -> Vec<String> {
    let (mut wrong, mut well) = (Vec::new(), 0);
    while !stop.load(Relaxed) || (well < VISITS_MIN && wrong.is_empty()) {
        match Line::connect(port, schema) {
            Ok(Ok(mut line)) => {
                let answer = line.query("select 1");
                if answer.whole && answer.error().is_none() {
                    well += 1;
                } else {
                    wrong.push(format!("after login: {answer:?}"));
                }
            }
            Ok(Err(answer)) => wrong.push(format!("at login: {:?}", answer.error())),
            Err(error) => wrong.push(format!("at connect: {error}")),
        }
    }
    wrong
}
