//! The faults: connections, backends, servers and gateways that end under load.

use super::gateways::Gateway;
use super::load::Ports;
use hotrow_bench::Error;
use hotrow_postgres::PrivateServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The server, the gateways, and what has been done to them.
pub struct World {
    server: PrivateServer,
    gateways: Vec<Gateway>,
    program: PathBuf,
    /// Folder for the logs of the gateways.
    folder: PathBuf,
    pub ports: Arc<Ports>,
    pub faults: BTreeMap<&'static str, usize>,
    metrics: BTreeMap<&'static str, u64>,
}

impl World {
    pub fn start(program: &Path, folder: &Path, tables: &str) -> Result<Self, Error> {
        let server = PrivateServer::builder()
            .label("histories")
            // Some transactions lock rows in any order.
            .setting("deadlock_timeout", "50ms")
            .setting("max_connections", "300")
            .start()?;
        server.query(tables)?;
        let ports = Arc::new(Ports::default());
        ports.server.store(server.port(), Relaxed);
        let mut world = Self {
            server,
            gateways: Vec::new(),
            program: program.to_owned(),
            folder: folder.to_owned(),
            ports,
            faults: BTreeMap::new(),
            metrics: BTreeMap::new(),
        };
        for number in 0..world.ports.gateways.len() {
            let gateway = world.new_gateway(number)?;
            world.gateways.push(gateway);
        }
        Ok(world)
    }

    pub fn version(&self) -> &str {
        self.server.version()
    }

    fn new_gateway(&self, number: usize) -> Result<Gateway, Error> {
        let log = self.folder.join(format!("gateway-{number}.log"));
        let gateway = Gateway::start(&self.program, &self.server.url(), &log)?;
        self.ports.gateways[number].store(gateway.port, Relaxed);
        Ok(gateway)
    }

    /// Does one thing that fails in production, and repairs it.
    pub fn fault(&mut self, random: &mut fastrand::Rng) -> Result<(), Error> {
        self.await_server()?;
        let number = random.usize(0..self.gateways.len());
        let name = match random.u8(0..10) {
            0..=3 if self.signal_backend(Signal::SIGTERM) => "connections to the server terminated",
            8 if self.signal_backend(Signal::SIGKILL) => "backends killed (kill -9, the server recovers)",
            0..=3 | 8 => return Ok(()),
            4..=5 => {
                let new = self.new_gateway(number)?;
                let old = std::mem::replace(&mut self.gateways[number], new);
                old.add_metrics(&mut self.metrics);
                drop(old);
                "gateways killed (kill -9)"
            }
            6..=7 => {
                let new = self.new_gateway(number)?;
                let old = std::mem::replace(&mut self.gateways[number], new);
                old.add_metrics(&mut self.metrics);
                old.stop();
                "gateways stopped (SIGTERM)"
            }
            _ => {
                self.server.kill_dash_nine()?;
                self.server.restart()?;
                "servers killed (kill -9)"
            }
        };
        *self.faults.entry(name).or_default() += 1;
        Ok(())
    }

    /// Sends a signal to a backend, if there is one. After SIGKILL, the server ends all others and recovers.
    fn signal_backend(&self, signal: Signal) -> bool {
        // The server may be recovering.
        let rows = self.server.query(
            "select pid from pg_stat_activity
            where backend_type = 'client backend' and pid <> pg_backend_pid() order by random() limit 1",
        );
        let pid = rows.ok().and_then(|rows| rows.first()?.first()?.as_ref()?.parse().ok());
        pid.is_some_and(|pid| kill(Pid::from_raw(pid), signal).is_ok())
    }

    /// Waits until the server answers.
    pub fn await_server(&self) -> Result<(), Error> {
        const TRIES: usize = 600;
        const TRY_EVERY_MS: u64 = 50;
        for _ in 0..TRIES {
            if self.server.query("select 1").is_ok() {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(TRY_EVERY_MS));
        }
        self.server.query("select 1")?;
        Ok(())
    }

    /// The sums of the gateways' metrics, also of those that have ended.
    pub fn metrics(&self) -> BTreeMap<&'static str, u64> {
        let mut sums = self.metrics.clone();
        self.gateways.iter().for_each(|gateway| gateway.add_metrics(&mut sums));
        sums
    }
}
