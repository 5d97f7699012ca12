//! The environment of runs: the server, the gateways in front of it, and pgbench, from start to clean-up. It does not decide
//! the order of runs. What the loads of another crate need is in `other_loads.rs`.

mod other_loads;

pub use other_loads::{Later, OtherLoad, OtherLoads};

use crate::child::Child;
use crate::control::{Control, PACK, SCHEMAS, install_pack};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::gateway::{DEFERRING, Footprint, Gateway, accepts_tls};
use crate::load::{Failure, NoFigure, Run};
use crate::pgbench::Pgbench;
use crate::plan::{GatewaySource, Plan};
use crate::progress::Progress;
use crate::report::numbers::whole;
use crate::scenario::{Disk, LoadBy, Protocol, Scenario, Technique, Through};
use crate::server::{Found, find_server};
use crate::standby::Standby;
use crate::verdict::Reading;
use hotrow_postgres::{Binaries, PrivateServer, SlowFlush};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The programs of the load of another crate during a run, if it has such a load.
pub type Running = Option<Box<dyn OtherLoad>>;

/// All programs and connections of the benchmark.
#[derive(Debug)]
pub struct Testbed {
    /// The program for most loads.
    pub pgbench: Pgbench,
    /// The benchmark's own connection.
    pub control: Control,
    /// The loads of another crate, if there are any.
    pub others: Option<Box<dyn OtherLoads>>,
    /// The folder of the server's programs, if it is installed here.
    pub binaries: Option<Binaries>,
    slow_flush: Result<SlowFlush, Failure>,
    standby: Option<Standby>,
    server: Option<Arc<PrivateServer>>,
    /// The URL of the server.
    pub upstream_url: String,
    upstream: Endpoint,
    gateway: Option<Gateway>,
    /// The gateway whose transactions hold back writes, if a technique uses it.
    deferring: Option<Gateway>,
    /// The program that is started as the gateway, unless the benchmark uses a running one.
    program: Option<PathBuf>,
    running_gateway: Option<Endpoint>,
    with_tls: Option<Endpoint>,
    room: u32,
    extensions: Vec<String>,
    schema_is_ours: bool,
    pack_is_ours: bool,
    runs: u32,
}

impl Testbed {
    /// Finds the tools, and starts a private server or connects to the named one.
    pub async fn build(plan: &Plan, others: Option<Box<dyn OtherLoads>>) -> Result<Self, Error> {
        let Found { binaries, private, url: upstream_url, slow_flush, standby } = find_server(plan).await?;
        let upstream = Endpoint::parse(&upstream_url)?;
        let pgbench = Pgbench::find(binaries.as_ref()).await?;
        let control = Control::connect(&upstream).await?;
        let room = control.room().await?;
        let extensions = control.extensions().await?;
        let (program, running_gateway) = match &plan.gateway {
            GatewaySource::Running(endpoint) => (None, Some(endpoint.clone())),
            GatewaySource::Program(program) => (Some(program.clone()), None),
        };
        Ok(Self {
            pgbench,
            control,
            others,
            binaries,
            slow_flush,
            standby,
            server: private,
            upstream_url,
            upstream,
            gateway: None,
            deferring: None,
            program,
            running_gateway,
            with_tls: None,
            room,
            extensions,
            schema_is_ours: false,
            pack_is_ours: false,
            runs: 0,
        })
    }

    /// Creates the rows of a scenario, then starts the gateways for its techniques. Each scenario gets new gateways.
    pub async fn set_up(
        &mut self,
        plan: &Plan,
        scenario: &'static Scenario,
        progress: &Progress,
    ) -> Result<(), Error> {
        self.control.expect_no_schemas(SCHEMAS, Error::SchemaExists).await?;
        if scenario.pack {
            self.control.expect_no_schemas(PACK, Error::PackExists).await?;
            self.pack_is_ours = true;
            install_pack(&self.upstream).await?;
        }
        // From here on the benchmark can be interrupted at any time, and the clean-up must then drop the schema.
        self.schema_is_ours = true;
        let rows = plan.rows(scenario);
        let say = |made: u32| {
            let (made, rows) = (whole(made.into()), whole(rows.into()));
            progress.note(&format!("{}: {made} of {rows} rows", scenario.name));
        };
        self.control.set_up(scenario, rows, say).await?;
        let used = |through| plan.techniques(scenario).iter().any(|technique| technique.through == through);
        if used(Through::Hotrow) || used(Through::HotrowTls) {
            self.fresh_gateway().await?;
        }
        if let Some(program) = self.program.as_ref().filter(|_| used(Through::HotrowDeferred)) {
            let started = Gateway::start(program, &self.upstream_url, &self.upstream, &DEFERRING);
            self.deferring = Some(started.await?);
        }
        if used(Through::HotrowTls) {
            self.with_tls = match self.endpoint(Through::Hotrow, 0) {
                Ok(gateway) if accepts_tls(gateway).await => Some(gateway.with_tls()),
                _ => None,
            };
        }
        Ok(())
    }

    /// Replaces the running gateway, if there is one, with a new one. A gateway that the benchmark did not start is left
    /// alone.
    async fn fresh_gateway(&mut self) -> Result<(), Error> {
        if let Some(gateway) = self.gateway.take() {
            gateway.child.stop().await?;
        }
        if let Some(program) = &self.program {
            self.gateway = Some(Gateway::start(program, &self.upstream_url, &self.upstream, &[]).await?);
        }
        Ok(())
    }

    /// Stops the gateways and drops the rows. It can be called at any time, and repeatedly.
    pub async fn tear_down(&mut self) -> Result<(), Error> {
        for gateway in [self.gateway.take(), self.deferring.take()].into_iter().flatten() {
            gateway.child.stop().await?;
        }
        self.use_disk(Disk::OWN).await?;
        if std::mem::take(&mut self.schema_is_ours) {
            self.control.tear_down().await?;
        }
        if std::mem::take(&mut self.pack_is_ours) {
            self.control.tear_down_pack().await?;
        }
        Ok(())
    }

    /// The same while a statement of the benchmark may be running. It does not wait for that statement.
    pub async fn abandon(&mut self) -> Result<(), Error> {
        let idle = self.control.reconnect(&self.upstream).await;
        self.tear_down().await.and(idle)
    }

    /// Whether a technique can be run with this number of clients. The error is the reason.
    pub fn can_be_reached(&self, technique: &Technique, clients: u32) -> Result<(), Failure> {
        let clients = clients + technique.beside.map_or(0, |beside| beside.clients);
        if let Some(extension) = technique.extension {
            self.is_private(&format!("the extension {extension} is created"))?;
            if !self.extensions.iter().any(|available| available == extension) {
                return Err(Failure(format!("the server has no extension {extension}")));
            }
        }
        if technique.disk != Disk::OWN {
            self.is_private("flushes are delayed")?;
            self.slow_flush.as_ref().map_err(Clone::clone)?;
        }
        match (technique.load_by, &self.others) {
            (LoadBy::Other(_), Some(others)) => others.can_run(self, technique, clients),
            (LoadBy::Other(_), None) => Err(Failure("this program does not make its load".into())),
            _ => self.endpoint(technique.through, clients).map(drop),
        }
    }

    /// The program that is started as the gateway.
    pub fn program(&self) -> Result<&Path, Failure> {
        let reason = "the benchmark did not start the gateway, see --gateway";
        self.program.as_deref().ok_or_else(|| Failure(reason.into()))
    }

    /// Whether the server is private to the benchmark. The reason in the error names the action that needs this.
    pub fn is_private(&self, needing: &str) -> Result<(), Failure> {
        let reason = || Failure(format!("{needing} on a private server only"));
        self.server.as_ref().map(drop).ok_or_else(reason)
    }

    /// Makes commits wait for this disk and its standby from now on. The standby catches up without a delay.
    async fn use_disk(&mut self, disk: Disk) -> Result<(), Error> {
        let set = |delay_us| self.slow_flush.iter().try_for_each(|slow_flush| slow_flush.set(delay_us));
        set(0)?;
        if let Some(standby) = &mut self.standby {
            standby.set(disk.standby).await?;
        }
        Ok(set(disk.delay_us)?)
    }

    /// The delay of flushes, if a technique has a slower disk. It also serves servers of other loads.
    pub fn slow_flush(&self) -> Option<&SlowFlush> {
        self.slow_flush.as_ref().ok()
    }

    /// The address of the server.
    pub fn server(&self) -> &Endpoint {
        &self.upstream
    }

    /// The address for the clients of a technique. The error says why they cannot connect.
    pub fn endpoint(&self, through: Through, clients: u32) -> Result<&Endpoint, Failure> {
        let gateway = self.gateway.as_ref().map(|gateway| &gateway.endpoint);
        let (found, reason) = match through {
            Through::Direct if clients > self.room => {
                return Err(Failure(format!(
                    "the server has room for {} of {clients} connections (max_connections less reserved and used ones)",
                    self.room
                )));
            }
            Through::Direct | Through::Application => return Ok(&self.upstream),
            Through::Hotrow => (gateway.or(self.running_gateway.as_ref()), "no gateway is running"),
            Through::HotrowDeferred => {
                let gateway = self.deferring.as_ref().map(|gateway| &gateway.endpoint);
                (gateway, "the benchmark did not start the gateway, so it cannot set `pack`")
            }
            Through::HotrowTls => (self.with_tls.as_ref(), "the gateway has no TLS"),
            Through::PgBouncer | Through::SmallPgBouncer | Through::HotrowHttp | Through::Redis => {
                (None, "its load has addresses of its own")
            }
        };
        found.ok_or_else(|| Failure(reason.into()))
    }

    /// The protocol of a technique's clients.
    pub fn protocol(&self, technique: &Technique) -> Protocol {
        match (technique.load_by, &self.others) {
            (LoadBy::Other(_), Some(others)) => others.protocol(technique),
            _ => technique.protocol,
        }
    }

    /// Adds to a failure that a program in between had ended, if this is true.
    pub fn explain(&mut self, technique: &Technique, other: &mut Running, failure: Failure) -> Failure {
        let mut programs: Vec<_> = other.iter_mut().flat_map(|other| other.children()).collect();
        let gateway = match technique.through {
            Through::Hotrow | Through::HotrowTls => self.gateway.as_mut(),
            Through::HotrowDeferred => self.deferring.as_mut(),
            _ => None,
        };
        programs.extend(gateway.map(|gateway| &mut gateway.child));
        match programs.into_iter().find_map(Child::exit_report) {
            Some(exit_report) => Failure(format!("{}; {exit_report}", failure.0)),
            None => failure,
        }
    }

    /// Restores the rows, so that no run has to do work that the previous one left, and gives the run a unique number. If another
    /// crate makes its load, that is started.
    pub async fn before_run(&mut self, run: Run) -> Result<(u32, Running), NoFigure> {
        self.runs += 1;
        self.use_disk(Disk::OWN).await?;
        self.control.before_run(run.scenario, run.technique, self.runs).await?;
        let other = match (run.technique.load_by, &self.others) {
            (LoadBy::Other(_), Some(others)) => Some(others.start(self, run).await?),
            _ => None,
        };
        // On a server that is not private, a checkpoint could do harm, and no flush is delayed.
        if self.server.is_some() {
            self.control.checkpoint().await?;
            self.control.report_flushes().await?;
        }
        self.use_disk(run.technique.disk).await?;
        Ok((self.runs, other))
    }

    /// The current state of a run's rows.
    pub async fn read(&self, scenario: &Scenario, other: &Running) -> Result<Reading, Error> {
        match other.as_ref().and_then(|other| other.read()) {
            Some(elsewhere) => elsewhere.await,
            None => self.control.read(scenario).await,
        }
    }

    /// The footprint of the gateway, if the benchmark has started one that has metrics.
    pub async fn footprint(&self) -> Option<Footprint> {
        self.gateway.as_ref()?.footprint().await
    }

    /// The data folder of the private server.
    pub fn data_folder(&self) -> Option<PathBuf> {
        self.server.as_ref().map(|server| server.data_dir())
    }
}
