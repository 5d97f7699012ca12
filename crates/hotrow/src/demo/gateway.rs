//! The gateway as a child process: starts it, waits until it listens, and stops it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::Error;

const READY: &str = "hotrow: listening on ";
/// The line before it, if the gateway serves the operations page.
const PAGE: &str = "hotrow: serving HTTP on ";
const START_LIMIT: Duration = Duration::from_secs(15);
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// The last lines of the gateway's log explain why it failed.
const KEPT_LINES: usize = 5;

type Address = (String, u16);

/// The addresses of a gateway that listens.
#[derive(Debug, Default)]
struct Addresses {
    clients: Address,
    page: Option<String>,
}

/// A running gateway. Dropping this stops it.
pub struct Gateway {
    child: Child,
    /// Receives the addresses when the gateway listens, and ends with the gateway's standard output.
    ready: Receiver<Addresses>,
    complaints: Complaints,
    addresses: Addresses,
}

impl Gateway {
    /// Starts this program as a gateway in front of `upstream`, on a free port, with more options.
    pub fn in_front_of(upstream: &str, options: &[&str]) -> Result<Self, Error> {
        let program =
            std::env::current_exe().map_err(|error| Error::Gateway { detail: error.to_string() })?;
        let mut command = Command::new(program);
        // In the environment: every user of the machine can read a command line and the password in it.
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(options).env("HOTROW_UPSTREAM", upstream);
        Self::start(command)
    }

    /// Blocks until the gateway listens.
    fn start(mut command: Command) -> Result<Self, Error> {
        // In a process group of its own: Ctrl-C reaches the demo only, which then stops the gateway in order.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| Error::Gateway { detail: error.to_string() })?;
        let ready = await_addresses(child.stdout.take());
        let complaints = Complaints::of(child.stderr.take());
        let mut gateway = Self { child, ready, complaints, addresses: Addresses::default() };

        gateway.addresses = gateway.ready.recv_timeout(START_LIMIT).map_err(|error| Error::Gateway {
            detail: match error {
                RecvTimeoutError::Timeout => format!("it does not listen after {} s", START_LIMIT.as_secs()),
                RecvTimeoutError::Disconnected => gateway.complaints.all(),
            },
        })?;
        Ok(gateway)
    }

    /// The address that it listens on.
    pub fn address(&self) -> (&str, u16) {
        let (host, port) = &self.addresses.clients;
        (host, *port)
    }

    /// The URL of the operations page, if there is one.
    pub fn page(&self) -> Option<String> {
        self.addresses.page.as_ref().map(|address| format!("http://{address}/"))
    }

    /// The last lines of its log.
    pub fn last_words(&self) -> String {
        self.complaints.so_far()
    }

    /// Sends SIGTERM, and SIGKILL if the gateway is still there later. It has ended when its standard output is closed.
    fn stop(&mut self) {
        if kill(pid(&self.child), Signal::SIGTERM).is_ok() {
            let deadline = Instant::now() + STOP_LIMIT;
            while self.ready.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        }
        // Both fail only if the child has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// Host and port, if this is the line of a gateway that listens.
fn address(line: &str) -> Option<Address> {
    let (host, port) = line.strip_prefix(READY)?.trim().rsplit_once(':')?;
    Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?))
}

fn await_addresses(stdout: Option<impl Read + Send + 'static>) -> Receiver<Addresses> {
    let (found, ready) = channel();
    let mut page = None;
    read_lines(stdout, move |line| {
        if let Some(address) = line.strip_prefix(PAGE) {
            page = Some(address.trim().to_owned());
        } else if let Some(clients) = address(&line) {
            // There is no receiver after the gateway is dropped.
            let _ = found.send(Addresses { clients, page: page.take() });
        }
    });
    ready
}

/// Reads a pipe to its end in a thread: the child must not block on a full pipe.
fn read_lines(pipe: Option<impl Read + Send + 'static>, mut each: impl FnMut(String) + Send + 'static) {
    if let Some(pipe) = pipe {
        thread::spawn(move || BufReader::new(pipe).lines().map_while(Result::ok).for_each(&mut each));
    }
}

/// The last lines of the gateway's standard error.
struct Complaints {
    lines: Arc<Mutex<VecDeque<String>>>,
    end: Receiver<()>,
}

impl Complaints {
    fn of(stderr: Option<impl Read + Send + 'static>) -> Self {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let (reading, end): (Sender<()>, _) = channel();
        let kept = Arc::clone(&lines);
        read_lines(stderr, move |line| {
            // This closure owns the sender, which is dropped at the end of the pipe.
            let _held = &reading;
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(line);
            if kept.len() > KEPT_LINES {
                kept.pop_front();
            }
        });
        Self { lines, end }
    }

    fn so_far(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    /// The last lines of a gateway that has ended; waits until its pipe has been read.
    fn all(&self) -> String {
        let _ended = self.end.recv_timeout(STOP_LIMIT);
        let words = self.so_far();
        if words.is_empty() { "it ended without a message".to_owned() } else { words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn waits_until_the_gateway_listens_and_stops_it() {
        let gateway = Gateway::start(shell(
            "echo starting; echo 'hotrow: serving HTTP on 127.0.0.1:8080'; echo 'hotrow: listening on 127.0.0.1:6432'; \
            exec sleep 600",
        ))
        .unwrap();
        assert_eq!(gateway.page().as_deref(), Some("http://127.0.0.1:8080/"));
        assert_eq!(gateway.address(), ("127.0.0.1", 6432));
        let pid = pid(&gateway.child);
        drop(gateway);
        assert!(kill(pid, None).is_err(), "the process is gone after the drop");
    }

    #[test]
    fn shows_the_last_lines_of_a_gateway_that_fails() {
        let failing =
            shell("for n in 1 2 3 4 5 6 7; do echo $n >&2; done; echo 'no such upstream' >&2; exit 3");
        let Err(Error::Gateway { detail }) = Gateway::start(failing) else {
            panic!("a gateway that ends at once has not started");
        };
        assert_eq!(detail, "4; 5; 6; 7; no such upstream");
    }

    #[test]
    fn reads_addresses() {
        assert_eq!(address("hotrow: listening on [::1]:5000"), Some(("::1".to_owned(), 5000)));
        assert_eq!(address("hotrow: reading hotrow.toml"), None);
    }
}
