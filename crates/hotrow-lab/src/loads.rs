//! The loads of this crate: which of them can be run, and which programs each of them needs. What a load does is in a file of
//! its own.

mod applications;
mod change_stream;
mod connections;
mod fleet;
mod fresh;
mod http;
mod mariadb;
mod payment_books;
mod payments;
mod peers;
mod pgbouncer;
mod redis;
mod started;

use change_stream::Reader;
use fleet::FLEET;
use hotrow_bench::gateway::{Gateway, WITH_HTTP};
use hotrow_bench::load::{Failure, NoFigure, Run};
use hotrow_bench::scenario::{LoadBy, Protocol, Technique, Through};
use hotrow_bench::testbed::{Later, OtherLoad, OtherLoads, Testbed};
use mariadb::MariaDb;
pub use mariadb::{Request, Work};
use payments::{Behaviour, Payments, Programs};
use peers::Peers;
use pgbouncer::PgBouncer;
use redis::Redis;
use started::Started;
use std::path::{Path, PathBuf};

/// A load that `hotrow bench` does not make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// pgbench, through PgBouncer.
    Pgbench,
    /// pgbench in three processes, each with a third of the clients.
    Fleet {
        /// Whether each process uses a gateway of its own. Otherwise all of them use one gateway.
        own_gateways: bool,
    },
    /// Callers inside two applications that batch commands in this way.
    Applications(Batching),
    /// redis-benchmark, with the Lua script.
    Redis,
    /// A program that uses a queue of another project, or Hotrow's queue in the same language. Before the load, it enqueues
    /// the orders that it processes.
    Peer(Peer),
    /// A new connection for each call, through a new gateway if the technique uses one.
    FreshConnections,
    /// Clients that log in and disconnect, again and again.
    Connections,
    /// Commands on one counter as JSON over HTTP, half of them to each of two gateways.
    Http,
    /// Requests of paying customers to the payment service of `examples/payments`.
    Payments {
        /// Whether one of its payment gateways is killed during the run.
        gateway_dies: bool,
    },
    /// A load on a private MariaDB server, through a gateway in front of it if the technique uses one.
    MariaDb(&'static Work),
}

/// The way in which an application that batches commands stores a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batching {
    /// Reads the latest ledger entry under a lock and inserts the batch's entries.
    Ledger,
    /// Appends the batch's commands to a log under a lock, and folds the log in memory.
    CommandLog,
}

/// One of the programs in `peers/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The program for Node.js.
    Node,
    /// The program in Go.
    Go,
}

impl Kind {
    /// As a technique names it.
    pub const fn load(&'static self) -> LoadBy {
        LoadBy::Other(self)
    }

    fn of(technique: &Technique) -> Option<Self> {
        match technique.load_by {
            LoadBy::Other(kind) => kind.downcast_ref().copied(),
            _ => None,
        }
    }
}

/// The loads on this machine.
#[derive(Debug)]
pub struct Loads {
    pgbouncer: Option<pgbouncer::Installed>,
    redis: Option<redis::Installed>,
    peers: Peers,
    change_stream: Option<PathBuf>,
}

/// The number of gateways that serve HTTP in front of one server.
const HTTP_GATEWAYS: usize = 2;

const NO_PGBOUNCER: &str = "PgBouncer is not installed";
const NO_REDIS: &str = "Redis is not installed (redis-server, redis-cli and redis-benchmark are needed)";

impl Loads {
    /// Looks for the programs. The script runs Debezium to read the change stream.
    pub fn find(peers: Option<&Path>, change_stream: Option<PathBuf>) -> Self {
        Self {
            pgbouncer: pgbouncer::Installed::find(),
            redis: redis::Installed::find(),
            peers: Peers::find(peers),
            change_stream,
        }
    }

    fn pgbouncer(&self) -> Result<&pgbouncer::Installed, Failure> {
        self.pgbouncer.as_ref().ok_or_else(|| Failure(NO_PGBOUNCER.into()))
    }

    fn redis(&self) -> Result<&redis::Installed, Failure> {
        self.redis.as_ref().ok_or_else(|| Failure(NO_REDIS.into()))
    }

    fn reader(&self, testbed: &Testbed) -> Result<Reader, Failure> {
        let recv_logical = || {
            let found = hotrow_bench::programs::find("pg_recvlogical", testbed.binaries.as_ref());
            found.map(Reader::RecvLogical)
        };
        let reader = self.change_stream.clone().map(Reader::Debezium).or_else(recv_logical);
        reader.ok_or_else(|| Failure("pg_recvlogical is not installed".into()))
    }

    async fn started(&self, testbed: &Testbed, run: Run) -> Result<Started, NoFigure> {
        let Run { technique, clients, .. } = run;
        let (server, kind) = (testbed.server(), Kind::of(technique).unwrap_or(Kind::Pgbench));
        let mut started = Started::new(kind, self.peers.clone(), testbed.protocol(technique));
        if let Some(connections) = connections_of_pgbouncer(technique.through) {
            let installed = self.pgbouncer()?;
            started.pgbouncer = Some(PgBouncer::start(installed, server, connections).await?);
        }
        let gateways = match kind {
            Kind::Http => HTTP_GATEWAYS,
            Kind::Fleet { own_gateways: true } => FLEET,
            Kind::Fleet { own_gateways: false } => 1,
            // No run inherits connections or caches of the gateway.
            Kind::Payments { .. } if technique.through == Through::Hotrow => 1,
            _ => 0,
        };
        for _ in 0..gateways {
            let program = testbed.program()?;
            let options: &[&str] = if kind == Kind::Http { &WITH_HTTP } else { &[] };
            started.gateways.push(Gateway::start(program, &testbed.upstream_url, server, options).await?);
        }
        match kind {
            Kind::Redis => {
                let redis = Redis::start(self.redis()?).await?;
                redis.refill().await?;
                started.redis = Some(redis);
            }
            Kind::Payments { gateway_dies } => {
                let programs = Programs::beside(testbed.program()?)?;
                let behaviour = if gateway_dies { Behaviour::MatchDay } else { Behaviour::Smooth };
                let reader = technique.change_stream.then(|| self.reader(testbed));
                let reader = reader.transpose()?;
                let database = started.gateways.first().map_or(server, |gateway| &gateway.endpoint);
                let payments = Payments::start(&programs, database, clients, server, behaviour, reader);
                started.payments = Some(payments.await?);
            }
            Kind::MariaDb(work) => {
                let program =
                    (technique.through == Through::Hotrow).then(|| testbed.program()).transpose()?;
                started.mariadb = Some(MariaDb::start(work, program, testbed.slow_flush()).await?);
            }
            _ => {}
        }
        Ok(started)
    }
}

/// The connections to the server of a PgBouncer at this address: its usual number, or few.
fn connections_of_pgbouncer(through: Through) -> Option<u32> {
    match through {
        Through::PgBouncer => Some(20),
        Through::SmallPgBouncer => Some(4),
        _ => None,
    }
}

impl OtherLoads for Loads {
    fn tools(&self) -> Vec<String> {
        let pgbouncer = self.pgbouncer.iter().map(|installed| installed.version.clone());
        let redis = self.redis.iter().map(|installed| installed.version.clone());
        let mariadb = hotrow_mariadb::version().ok();
        pgbouncer.chain(redis).chain(mariadb).chain(self.peers.versions()).collect()
    }

    fn can_run(&self, testbed: &Testbed, technique: &Technique, clients: u32) -> Result<(), Failure> {
        if connections_of_pgbouncer(technique.through).is_some() {
            return self.pgbouncer().map(drop);
        }
        match Kind::of(technique) {
            Some(Kind::Redis) => self.redis().map(drop),
            Some(Kind::Http) => testbed.program().map(drop),
            Some(Kind::FreshConnections) if technique.through == Through::Hotrow => {
                testbed.program().map(drop)
            }
            Some(Kind::Fleet { .. }) if clients < FLEET as u32 => {
                Err(Failure(format!("{FLEET} gateways need {FLEET} clients")))
            }
            Some(Kind::Fleet { .. }) => testbed.program().map(drop),
            Some(Kind::Peer(peer)) => {
                testbed.is_private("queues of other projects create schemas,")?;
                self.peers.can_run(peer)?;
                testbed.endpoint(technique.through, clients).map(drop)
            }
            Some(Kind::Payments { .. }) => {
                testbed.is_private("the payment service runs")?;
                if technique.change_stream {
                    self.reader(testbed)?;
                }
                Programs::beside(testbed.program()?).map(drop)
            }
            Some(Kind::MariaDb(_)) => {
                hotrow_mariadb::version().map_err(|error| Failure(error.to_string()))?;
                testbed.program().map(drop)
            }
            _ => testbed.endpoint(technique.through, clients).map(drop),
        }
    }

    fn protocol(&self, technique: &Technique) -> Protocol {
        match &self.pgbouncer {
            Some(installed) if connections_of_pgbouncer(technique.through).is_some() => {
                installed.protocol(technique.protocol)
            }
            _ => technique.protocol,
        }
    }

    fn remark(&self, technique: &Technique) -> Option<String> {
        let protocol = self.protocol(technique);
        (protocol != technique.protocol).then(|| {
            format!(
                "`{}` sends its statements with the {} protocol, the others with the {} one: this version of PgBouncer \
                 cannot keep prepared statements while it pools by transaction.",
                technique.name,
                protocol.name(),
                technique.protocol.name()
            )
        })
    }

    fn start<'a>(
        &'a self,
        testbed: &'a Testbed,
        run: Run,
    ) -> Later<'a, Result<Box<dyn OtherLoad>, NoFigure>> {
        Box::pin(async move {
            let started: Box<dyn OtherLoad> = Box::new(self.started(testbed, run).await?);
            Ok(started)
        })
    }
}
