//! The environment of runs: the server, the gateways in front of it, and pgbench, from start to clean-up. It does not decide
//! the order of runs.

use crate::change_stream::Reader;
use crate::child::Child;
use crate::control::{Control, PACK, SCHEMAS, install_pack};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::gateway::{Footprint, Gateway, accepts_tls};
use crate::load::Failure;
use crate::payments::{Behaviour, Payments, Programs};
use crate::peers::Peers;
use crate::pgbench::Pgbench;
use crate::pgbouncer::{Installed, PgBouncer};
use crate::plan::{GatewaySource, Plan};
use crate::programs;
use crate::progress::Progress;
use crate::redis::{self, Redis};
use crate::report::numbers::whole;
use crate::scenario::{Disk, LoadBy, Protocol, Scenario, Technique, Through};
use crate::server::{Found, find_server};
use crate::standby::Standby;
use crate::verdict::Reading;
use hotrow_postgres::{PrivateServer, SlowFlush};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// All programs and connections of the benchmark.
#[derive(Debug)]
pub struct Testbed {
    /// The program for most loads.
    pub pgbench: Pgbench,
    /// The benchmark's own connection.
    pub control: Control,
    /// PgBouncer, if it is installed.
    pub pgbouncer_installed: Option<Installed>,
    /// Redis, if it is installed.
    pub redis_installed: Option<redis::Installed>,
    /// Queues of other projects, if they are installed.
    pub peers: Peers,
    /// The payment service, during the runs that need it.
    pub payments: Option<Payments>,
    payment_programs: Result<Programs, Failure>,
    change_stream_reader: Result<Reader, Failure>,
    slow_flush: Result<SlowFlush, Failure>,
    standby: Option<Standby>,
    server: Option<Arc<PrivateServer>>,
    /// The URL of the server.
    pub upstream_url: String,
    upstream: Endpoint,
    gateway: Option<Gateway>,
    /// The gateways that serve HTTP.
    http_gateways: Vec<Gateway>,
    /// The gateways that share the clients of one load.
    fleet: Vec<Gateway>,
    running_gateway: Option<Endpoint>,
    with_tls: Option<Endpoint>,
    pgbouncer: Option<PgBouncer>,
    small_pgbouncer: Option<PgBouncer>,
    redis: Option<Redis>,
    room: u32,
    extensions: Vec<String>,
    schema_is_ours: bool,
    pack_is_ours: bool,
    runs: u32,
}

/// The number of gateways that serve HTTP in front of one server.
const HTTP_GATEWAYS: usize = 2;

/// The number of gateways that share the clients of one load, and of the processes that make the load.
const FLEET: usize = 3;

impl Testbed {
    /// Finds the tools, and starts a private server or connects to the named one.
    pub async fn build(plan: &Plan) -> Result<Self, Error> {
        let Found { binaries, private, url: upstream_url, slow_flush, standby } = find_server(plan).await?;
        let upstream = Endpoint::parse(&upstream_url)?;
        let pgbench = Pgbench::find(binaries.as_ref()).await?;
        let control = Control::connect(&upstream).await?;
        let room = control.room().await?;
        let extensions = control.extensions().await?;
        let running_gateway = match &plan.gateway {
            GatewaySource::Running(endpoint) => Some(endpoint.clone()),
            GatewaySource::Program(_) => None,
        };
        let payment_programs = match &plan.gateway {
            GatewaySource::Program(hotrow) => Programs::beside(hotrow),
            GatewaySource::Running(_) => {
                Err(Failure("the benchmark did not start the gateway, see --gateway".into()))
            }
        };
        let recv_logical = || programs::find("pg_recvlogical", binaries.as_ref()).map(Reader::RecvLogical);
        let change_stream_reader = plan.change_stream.clone().map(Reader::Debezium).or_else(recv_logical);
        let not_installed = || Failure("pg_recvlogical is not installed".into());
        Ok(Self {
            pgbench,
            control,
            payments: None,
            payment_programs,
            change_stream_reader: change_stream_reader.ok_or_else(not_installed),
            pgbouncer_installed: Installed::find().await,
            redis_installed: redis::Installed::find().await,
            peers: Peers::find(plan.peers.as_deref()).await,
            slow_flush,
            standby,
            server: private,
            upstream_url,
            upstream,
            gateway: None,
            http_gateways: Vec::new(),
            fleet: Vec::new(),
            running_gateway,
            with_tls: None,
            pgbouncer: None,
            small_pgbouncer: None,
            redis: None,
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
            self.fresh_gateway(plan).await?;
        }
        if used(Through::HotrowTls) {
            self.with_tls = match self.endpoint(Through::Hotrow, 0) {
                Ok(gateway) if accepts_tls(gateway).await => Some(gateway.with_tls()),
                _ => None,
            };
        }
        if let (true, GatewaySource::Program(program)) = (used(Through::HotrowHttp), &plan.gateway) {
            for _ in 0..HTTP_GATEWAYS {
                let gateway = Gateway::start(program, &self.upstream_url, &self.upstream, true).await?;
                self.http_gateways.push(gateway);
            }
        }
        let is_fleet = |technique: &&Technique| matches!(technique.load_by, LoadBy::Fleet { .. });
        if let (true, GatewaySource::Program(program)) =
            (plan.techniques(scenario).iter().any(is_fleet), &plan.gateway)
        {
            for _ in 0..FLEET {
                let gateway = Gateway::start(program, &self.upstream_url, &self.upstream, false).await?;
                self.fleet.push(gateway);
            }
        }
        if let Some(installed) = &self.pgbouncer_installed {
            let (usual, small) = (used(Through::PgBouncer), used(Through::SmallPgBouncer));
            if usual {
                self.pgbouncer = Some(PgBouncer::start(installed, &self.upstream, 20).await?);
            }
            if small {
                self.small_pgbouncer = Some(PgBouncer::start(installed, &self.upstream, 4).await?);
            }
        }
        if let (true, Some(installed)) = (used(Through::Redis), &self.redis_installed) {
            self.redis = Some(Redis::start(installed).await?);
        }
        Ok(())
    }

    /// Replaces the running gateway, if there is one, with a new one. A gateway that the benchmark did not start is left
    /// alone.
    pub async fn fresh_gateway(&mut self, plan: &Plan) -> Result<(), Error> {
        if let Some(gateway) = self.gateway.take() {
            gateway.child.stop().await?;
        }
        if let GatewaySource::Program(program) = &plan.gateway {
            self.gateway = Some(Gateway::start(program, &self.upstream_url, &self.upstream, false).await?);
        }
        Ok(())
    }

    /// Stops the gateways and drops the rows. It can be called at any time, and repeatedly.
    pub async fn tear_down(&mut self) -> Result<(), Error> {
        self.stop_payments().await?;
        let gateways = self.gateway.take().into_iter();
        let gateways = gateways.chain(self.http_gateways.drain(..)).chain(self.fleet.drain(..));
        let mut programs: Vec<Child> = gateways.map(|gateway| gateway.child).collect();
        let pgbouncers = self.pgbouncer.take().into_iter().chain(self.small_pgbouncer.take());
        programs.extend(pgbouncers.map(|pgbouncer| pgbouncer.child));
        programs.extend(self.redis.take().map(|redis| redis.child));
        for program in programs {
            program.stop().await?;
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
        let own_gateway = self.running_gateway.is_none();
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
        match (technique.load_by, technique.through) {
            (LoadBy::FreshConnections, Through::Hotrow) if !own_gateway => {
                let reason = "the benchmark did not start the gateway and cannot restart it, see --gateway";
                Err(Failure(reason.into()))
            }
            (LoadBy::RedisBenchmark, _) => self.redis().map(drop),
            (LoadBy::Http, _) => self.http_addresses().map(drop),
            (LoadBy::Fleet { .. }, _) if !own_gateway => {
                let reason = "the benchmark did not start the gateway and cannot start three, see --gateway";
                Err(Failure(reason.into()))
            }
            (LoadBy::Fleet { .. }, _) if clients < FLEET as u32 => {
                Err(Failure(format!("{FLEET} gateways need {FLEET} clients")))
            }
            (LoadBy::Peer(peer), through) => {
                self.is_private("queues of other projects create schemas,")?;
                self.peers.can_run(peer)?;
                self.endpoint(through, clients).map(drop)
            }
            (LoadBy::Payments { .. }, _) => self.payments_can_run(technique),
            (_, through) => self.endpoint(through, clients).map(drop),
        }
    }

    /// Whether the server is private to the benchmark. The reason in the error names the action that needs this.
    fn is_private(&self, needing: &str) -> Result<(), Failure> {
        let reason = || Failure(format!("{needing} on a private server only"));
        self.server.as_ref().map(drop).ok_or_else(reason)
    }

    /// The payment service creates tables and slots.
    fn payments_can_run(&self, technique: &Technique) -> Result<(), Failure> {
        self.is_private("the payment service runs")?;
        if technique.change_stream {
            self.change_stream_reader.clone()?;
        }
        self.payment_programs.clone().map(drop)
    }

    async fn start_payments(
        &mut self,
        plan: &Plan,
        technique: &Technique,
        clients: u32,
    ) -> Result<(), Error> {
        let (Ok(programs), Ok(reader)) = (self.payment_programs.clone(), self.change_stream_reader.clone())
        else {
            return Ok(()); // `can_be_reached` has reported the reason
        };
        let mut database = self.upstream.clone();
        if technique.through == Through::Hotrow {
            // No run inherits connections or caches of the gateway.
            self.fresh_gateway(plan).await?;
            database = self.gateway.as_ref().map_or(database, |gateway| gateway.endpoint.clone());
        }
        let behaviour = match technique.load_by {
            LoadBy::Payments { gateway_dies: true } => Behaviour::MatchDay,
            _ => Behaviour::Smooth,
        };
        let reader = technique.change_stream.then_some(reader);
        let started =
            Payments::start(&programs, &database, clients, &self.upstream, behaviour, reader).await?;
        self.payments = Some(started);
        Ok(())
    }

    async fn stop_payments(&mut self) -> Result<(), Error> {
        match self.payments.take() {
            Some(payments) => payments.stop().await,
            None => Ok(()),
        }
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

    /// The address of the server.
    pub fn server(&self) -> &Endpoint {
        &self.upstream
    }

    /// Redis, if it is running.
    pub fn redis(&self) -> Result<&Redis, Failure> {
        let reason = "Redis is not installed (redis-server, redis-cli and redis-benchmark are needed)";
        self.redis.as_ref().ok_or_else(|| Failure(reason.into()))
    }

    /// The HTTP addresses of the gateways, if they could be started.
    pub fn http_addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let addresses: Vec<_> = self.http_gateways.iter().filter_map(|gateway| gateway.http).collect();
        if addresses.is_empty() {
            let reason =
                "the benchmark did not start the gateway and cannot start two with HTTP, see --gateway";
            return Err(Failure(reason.into()));
        }
        Ok(addresses)
    }

    /// The addresses for the processes of a load that several gateways share: of all of them, or of one again and again.
    pub fn fleet(&self, own_gateways: bool) -> Result<[&Endpoint; FLEET], Failure> {
        let [first, second, third] = &self.fleet[..] else {
            return Err(Failure("the gateways are not running".into()));
        };
        let gateways = if own_gateways { [first, second, third] } else { [first; FLEET] };
        Ok(gateways.map(|gateway| &gateway.endpoint))
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
            Through::HotrowTls => (self.with_tls.as_ref(), "the gateway has no TLS"),
            Through::PgBouncer | Through::SmallPgBouncer => {
                (self.pgbouncer(through).map(|pgbouncer| &pgbouncer.endpoint), "PgBouncer is not installed")
            }
            Through::HotrowHttp => (None, "HTTP is not PostgreSQL's protocol"),
            Through::Redis => (None, "Redis does not speak PostgreSQL's protocol"),
        };
        found.ok_or_else(|| Failure(reason.into()))
    }

    fn pgbouncer(&self, through: Through) -> Option<&PgBouncer> {
        let is_small = through == Through::SmallPgBouncer;
        if is_small { self.small_pgbouncer.as_ref() } else { self.pgbouncer.as_ref() }
    }

    /// The protocol that clients can use there.
    pub fn protocol(&self, through: Through, wanted: Protocol) -> Protocol {
        match (&self.pgbouncer_installed, through) {
            (Some(installed), Through::PgBouncer | Through::SmallPgBouncer) => installed.protocol(wanted),
            _ => wanted,
        }
    }

    /// Adds to a failure that the program in between had ended, if this is true.
    pub fn explain(&mut self, through: Through, failure: Failure) -> Failure {
        let mut programs: Vec<_> = self.payments.iter_mut().map(|payments| &mut payments.service).collect();
        match through {
            Through::Direct | Through::Application => {}
            Through::Hotrow | Through::HotrowTls => {
                let gateways = self.gateway.iter_mut().chain(&mut self.fleet);
                programs.extend(gateways.map(|gateway| &mut gateway.child));
            }
            Through::HotrowHttp => {
                programs.extend(self.http_gateways.iter_mut().map(|gateway| &mut gateway.child));
            }
            Through::PgBouncer | Through::SmallPgBouncer => {
                let pgbouncers = self.pgbouncer.iter_mut().chain(&mut self.small_pgbouncer);
                programs.extend(pgbouncers.map(|pgbouncer| &mut pgbouncer.child));
            }
            Through::Redis => programs.extend(self.redis.iter_mut().map(|redis| &mut redis.child)),
        }
        match programs.into_iter().find_map(Child::exit_report) {
            Some(exit_report) => Failure(format!("{}; {exit_report}", failure.0)),
            None => failure,
        }
    }

    /// Restores the rows, so that no run has to do work that the previous one left, and gives the run a unique number.
    pub async fn before_run(
        &mut self,
        plan: &Plan,
        scenario: &Scenario,
        technique: &Technique,
        clients: u32,
    ) -> Result<u32, Error> {
        self.runs += 1;
        self.stop_payments().await?;
        self.use_disk(Disk::OWN).await?;
        self.control.before_run(scenario, technique, self.runs).await?;
        if matches!(technique.load_by, LoadBy::Payments { .. }) {
            self.start_payments(plan, technique, clients).await?;
        }
        if let (Through::Redis, Some(redis)) = (technique.through, &self.redis) {
            redis.refill().await?;
        }
        // On a server that is not private, a checkpoint could do harm, and no flush is delayed.
        if self.server.is_some() {
            self.control.checkpoint().await?;
            self.control.report_flushes().await?;
        }
        self.use_disk(technique.disk).await?;
        Ok(self.runs)
    }

    /// The current state of the technique's rows.
    pub async fn read(&self, scenario: &Scenario, technique: &Technique) -> Result<Reading, Error> {
        match (technique.through, &self.redis) {
            (Through::Redis, Some(redis)) => redis.read().await,
            _ => self.control.read(scenario).await,
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
