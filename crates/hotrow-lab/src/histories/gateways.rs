//! Gateways as child processes, and their metrics.

use hotrow_bench::Error;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hotrow_postgres::free_port;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const LISTENS: &str = "hotrow: listening on ";

/// The metrics of the report.
pub const METRICS: [&str; 8] = [
    "hotrow_packed_units_total",
    "hotrow_packed_reads_total",
    "hotrow_passed_through_units_total",
    "hotrow_batches_total",
    "hotrow_batches_rolled_back_total",
    "hotrow_blocked_units_total",
    "hotrow_writes_deferred_total",
    "hotrow_foretold_wrong_total",
];

/// A running gateway. Dropping it kills the process.
pub struct Gateway {
    process: Child,
    pub port: u16,
    metrics: u16,
}

impl Gateway {
    /// Starts a gateway on a free port. Its log is appended to a file.
    pub fn start(program: &Path, upstream: &str, log: &Path) -> Result<Self, Error> {
        if !program.exists() {
            return Err(Error::NoGatewayProgram { program: program.to_owned() });
        }
        let file = File::options().create(true).append(true).open(log).map_err(Error::file("open", log))?;
        let metrics = free_port();
        let mut process = Command::new(program)
            .args(["serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--pack", "deferred"])
            // Below the server's deadlock_timeout, which is short here.
            .args(["--lane-lock-timeout-ms", "20"])
            .args(["--metrics", &format!("127.0.0.1:{metrics}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(Error::file("run", program))?;
        let mut lines = BufReader::new(process.stdout.take().expect("its output is a pipe")).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix(LISTENS)?.rsplit_once(':')?.1.trim().parse().ok());
        // The process must never block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        match address {
            Some(port) => Ok(Self { process, port, metrics }),
            None => {
                let _ = process.wait();
                let printed = std::fs::read_to_string(log).unwrap_or_default();
                Err(Error::Ended { program: program.to_owned(), printed })
            }
        }
    }

    /// Adds its metrics to those of other gateways.
    pub fn add_metrics(&self, sums: &mut BTreeMap<&'static str, u64>) {
        let page = self.metrics_page().unwrap_or_default();
        for name in METRICS {
            let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            *sums.entry(name).or_default() += line.and_then(|value| value.parse().ok()).unwrap_or(0);
        }
    }

    fn metrics_page(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page)
    }

    /// Asks the gateway to stop, and waits for its end.
    pub fn stop(mut self) {
        let pid = Pid::from_raw(self.process.id().cast_signed());
        if kill(pid, Signal::SIGTERM).is_ok() {
            let _ = self.process.wait();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Both fail only if the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
