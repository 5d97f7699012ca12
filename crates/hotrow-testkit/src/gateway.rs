//! The gateway under test: this workspace's program as a child process, with a log that is shown when a test fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_postgres::Config;

use hotrow_postgres::free_port;

use crate::{PATIENCE, config, config_in, hotrow, server};

const LISTENS: &str = "hotrow: listening on ";
/// This line comes before the other.
const SERVES_HTTP: &str = "hotrow: serving HTTP on ";
/// Log messages of the dependencies do not help.
const LOG: &str = "info,hotrow=debug,hotrow_gateway=debug";
/// Another program can take the port for the metrics between the test's check and the gateway's start.
const TRIES: usize = 5;

/// Options for tests that count units in lanes: on a busy machine, no unit leaves its lane because it takes long.
pub const PATIENT_LANES: [&str; 2] = ["--lane-lock-timeout-ms", "20000"];

/// These options and, unless they name a lock timeout, those of [`PATIENT_LANES`].
pub fn patient<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let mut all = options.to_vec();
    if !options.contains(&PATIENT_LANES[0]) {
        all.extend(PATIENT_LANES);
    }
    all
}

/// A running gateway. Dropping this value kills the process.
pub struct Gateway {
    child: Child,
    port: u16,
    metrics: u16,
    http: Option<u16>,
    log: Arc<Mutex<String>>,
}

impl Gateway {
    /// Starts a gateway in front of the shared server, with more options of `hotrow serve`.
    pub fn start(options: &[&str]) -> Self {
        Self::in_front_of(&server().url(), options)
    }

    /// Starts a gateway in front of any server.
    pub fn in_front_of(upstream: &str, options: &[&str]) -> Self {
        Self::with(&[&["--upstream", upstream], options].concat())
    }

    /// Starts a gateway with these options, which name its servers.
    pub fn with(options: &[&str]) -> Self {
        let mut last = String::new();
        for _ in 0..TRIES {
            match Self::try_start(options) {
                Ok(gateway) => return gateway,
                Err(log) => last = log,
            }
        }
        panic!("the gateway does not start:\n{last}");
    }

    fn try_start(options: &[&str]) -> Result<Self, String> {
        let metrics = free_port();
        let mut command = hotrow();
        command
            .arg("serve")
            .args(["--listen", "127.0.0.1:0"].into_iter().filter(|_| !options.contains(&"--listen")))
            .args(options);
        command.args(["--metrics", &format!("127.0.0.1:{metrics}")]);
        // A gateway in front of MariaDB does not have this setting.
        if !options.iter().any(|option| option.starts_with("mysql://")) {
            // Tests of what lanes do need no first run that is passed through. Its own tests set the default again.
            let wait = std::env::var("HOTROW_VERDICT_WAIT_MS").unwrap_or_else(|_| "10000".to_owned());
            command.env("HOTROW_VERDICT_WAIT_MS", wait);
        }
        let mut child = command
            .env("HOTROW_LOG", std::env::var("HOTROW_TEST_LOG").unwrap_or_else(|_| LOG.to_owned()))
            .env_remove("NO_COLOR") // a log to a pipe has no colours
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can run");
        let log = Arc::new(Mutex::new(String::new()));
        let kept = log.clone();
        read_lines(child.stderr.take().expect("its output is a pipe"), move |line| {
            let mut kept = kept.lock().unwrap();
            kept.push_str(&line);
            kept.push('\n');
        });
        let (found, ports): (_, Receiver<(u16, Option<u16>)>) = channel();
        let mut http = None;
        read_lines(child.stdout.take().expect("its output is a pipe"), move |line| {
            let port = |prefix| {
                let (_, port) = line.strip_prefix(prefix)?.rsplit_once(':')?;
                Some(port.parse().expect("a port"))
            };
            http = http.or(port(SERVES_HTTP));
            if let Some(port) = port(LISTENS) {
                // No receiver waits for a second address.
                let _ = found.send((port, http));
            }
        });
        match ports.recv_timeout(PATIENCE) {
            Ok((port, http)) => Ok(Self { child, port, metrics, http, log }),
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(log.lock().unwrap().clone())
            }
        }
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port of the HTTP API. The option `--http 127.0.0.1:0` lets the system choose one.
    pub fn http_port(&self) -> u16 {
        self.http.expect("the gateway has the option --http")
    }

    /// The port of the metrics.
    pub fn metrics_port(&self) -> u16 {
        self.metrics
    }

    /// The configuration to log in through the gateway.
    pub fn config(&self) -> Config {
        config(self.port)
    }

    /// The same with a schema as search path.
    pub fn config_in(&self, schema: &str) -> Config {
        config_in(self.port, schema)
    }

    /// The whole log so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The value of a metric. The prefix `hotrow_` can be omitted.
    pub fn metric(&self, name: &str) -> u64 {
        let wanted = format!("hotrow_{}", name.strip_prefix("hotrow_").unwrap_or(name));
        let page = self.metrics();
        let line = page.lines().find_map(|line| line.strip_prefix(&wanted)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {wanted} in {page}")).parse().expect("a number")
    }

    /// The page that Prometheus reads.
    pub fn metrics(&self) -> String {
        self.beside_metrics("/metrics")
    }

    /// The answer to a request for this path at the address of the metrics.
    pub fn beside_metrics(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).expect("metrics are served");
        stream
            .write_all(
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
            )
            .expect("a request can be sent");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("an answer");
        page
    }

    /// The resident memory of the process, in bytes.
    pub fn resident(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the gateway runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS of the gateway");
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process, as a crash would.
    pub fn kill_dash_nine(mut self) {
        self.child.kill().expect("the gateway runs");
        self.child.wait().expect("the gateway ends");
    }

    /// Sends SIGTERM and returns at once.
    pub fn sigterm(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Sends any signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("the gateway runs");
    }

    /// Waits until the process has ended by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the gateway is a child process") {
                return status;
            }
            assert!(Instant::now() < deadline, "the gateway does not stop:\n{}", self.log());
            std::thread::sleep(std::time::Duration::from_millis(5)); // std has no wait with a time limit
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!(
                "the end of the gateway's log:\n{}",
                lines[lines.len().saturating_sub(40)..].join("\n")
            );
        }
    }
}

/// Reads a pipe in a thread until its end, so that the child never blocks on a full one.
fn read_lines(pipe: impl Read + Send + 'static, mut each: impl FnMut(String) + Send + 'static) {
    std::thread::spawn(move || BufReader::new(pipe).lines().map_while(Result::ok).for_each(&mut each));
}
