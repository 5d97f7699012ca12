//! The server and its two gateways, and what happens to them: kills, restarts, changes of the schema.

use super::check::Rows;
use super::client::Shared;
use super::connection::Connection;
use super::plan::Event;
use super::work::{COUNTERS, ROWS, STOCKS};
use hotrow_bench::Error;
use hotrow_bench::endpoint::Endpoint;
use hotrow_bench::gateway::Gateway;
use hotrow_bench::load::joined;
use hotrow_postgres::PrivateServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::task::spawn_blocking;

/// Keeps the write-ahead log small, and the recovery after a kill short.
const WAL: &str = "1GB";
/// The tables of each round are new. A statement waits until it is judged, because many that are passed through at the beginning
/// would wait for each other at the hot row.
const VERDICTS: [&str; 2] = ["--verdict-wait-ms", "5000"];
/// Time limit for the end of the work that clients have left behind.
const PATIENCE: Duration = Duration::from_secs(120);

/// Attempts to start a gateway, and to create the tables of a round.
const TRIES: usize = 5;

/// Changes of tables, indexes and functions beside the load, again and again. Each can be repeated if it was interrupted.
const CHANGES: [&str; 8] = [
    "alter table proof.counter add column if not exists spare int",
    "create index if not exists entry_amount on proof.entry (amount)",
    "alter table proof.counter drop column if exists spare",
    "create or replace function proof.add_note(inout client int, inout number bigint) language plpgsql as $$
     begin insert into proof.note (number, client) select number, client; end $$",
    "drop index if exists proof.entry_amount",
    "alter table proof.own add column if not exists spare text default 'new'",
    "create or replace function proof.add_note(inout client int, inout number bigint) language plpgsql as $$
     begin insert into proof.note values (client, number); end $$",
    "alter table proof.own drop column if exists spare",
];

/// A running server with two gateways.
#[derive(Debug)]
pub struct Testbed {
    server: Arc<PrivateServer>,
    gateways: [Gateway; 2],
    program: PathBuf,
    folder: PathBuf,
    /// The last lines of gateways that were ended in this round.
    ended: Vec<String>,
}

/// Runs a call that blocks, such as one of the private server.
async fn block<T: Send + 'static>(
    server: &Arc<PrivateServer>,
    call: impl FnOnce(&PrivateServer) -> T + Send + 'static,
) -> T {
    let server = Arc::clone(server);
    joined(spawn_blocking(move || call(&server)).await)
}

impl Testbed {
    /// Starts the server in this folder, with the files of an earlier start if there are any, and two gateways.
    pub async fn start(folder: &Path, program: &Path) -> Result<Self, Error> {
        end_abandoned(folder);
        let builder = PrivateServer::builder().label("billion").keep(folder.join("server"));
        let builder = builder.setting("max_wal_size", WAL).setting("checkpoint_timeout", "5min");
        let server = Arc::new(joined(spawn_blocking(|| builder.start()).await)?);
        let mut migrate = Command::new(program);
        migrate.args(["migrate", "--upstream", &server.url()]);
        let output = migrate.output().await.map_err(Error::file("run", program))?;
        if !output.status.success() {
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::Ended { program: program.to_owned(), printed });
        }
        let gateways = [
            start_gateway(program, &server, folder, 0).await?,
            start_gateway(program, &server, folder, 1).await?,
        ];
        let (program, folder) = (program.to_owned(), folder.to_owned());
        Ok(Self { server, gateways, program, folder, ended: Vec::new() })
    }

    /// Creates the tables of a round, and removes those of the round before.
    pub async fn prepare(&mut self, round: u64, clients: u32) -> Result<(), Error> {
        self.ended.clear();
        let tables = include_str!("../../sql/billion/tables.sql");
        let mut sql = tables.replace(":rows", &ROWS.to_string()).replace(":clients", &clients.to_string());
        for counter in 0..COUNTERS {
            let strategy = if counter + 1 == COUNTERS { "log" } else { "ledger" };
            sql += &format!("select hotrow.create_counter('proof {round} {counter}', '{strategy}');\n");
        }
        for (item, stock) in STOCKS.iter().enumerate() {
            sql += &format!("select hotrow.create_sale('proof {round} {item}', {stock});\n");
        }
        let attempt = move |server: &PrivateServer| {
            server.clear_log()?;
            for _ in 1..TRIES {
                match server.query(&sql) {
                    // The maintenance of a gateway can need the same tables in another order.
                    Err(hotrow_postgres::Error::Refused { sqlstate, .. }) if is_passing(&sqlstate) => {}
                    done => return done.map(drop),
                }
            }
            server.query(&sql).map(drop)
        };
        block(&self.server, attempt).await.map_err(Error::from)
    }

    /// The ports of the gateways.
    pub fn ports(&self) -> [u16; 2] {
        [0, 1].map(|gateway| self.gateways[gateway].endpoint.port)
    }

    /// The gateways.
    pub fn gateways(&self) -> &[Gateway; 2] {
        &self.gateways
    }

    /// The version of the server.
    pub fn server_version(&self) -> String {
        self.server.version().to_owned()
    }

    /// Lets an event happen, and returns when everything runs again. False if it did not happen: there is no connection to end, or
    /// the server still recovers.
    pub async fn happen(&mut self, event: Event, which: usize, shared: &Shared) -> Result<bool, Error> {
        let server = &self.server;
        match event {
            Event::KillServer => {
                block(server, |server| server.kill_dash_nine().and_then(|()| server.restart())).await?;
            }
            Event::RestartServer => block(server, PrivateServer::restart).await?,
            Event::EndServerConnection => {
                return Ok(block(server, |server| end_connection(server, false)).await);
            }
            Event::KillBackend => return self.kill_backend().await,
            Event::CutClient => {
                shared.cut.set(Some(1 + which as u32));
                while shared.cut.get().is_some() && !shared.stop.get() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            Event::KillGateway | Event::RestartGateway => {
                let number = which % self.gateways.len();
                if event == Event::KillGateway {
                    self.gateways[number].child.kill()?;
                }
                let next = start_gateway(&self.program, &self.server, &self.folder, number).await?;
                shared.ports[number].set(next.endpoint.port);
                let old = std::mem::replace(&mut self.gateways[number], next);
                self.ended.push(old.child.log().join("\n"));
                if event == Event::RestartGateway {
                    old.child.stop().await?;
                }
            }
        }
        Ok(true)
    }

    /// Kills a process of the server, which ends all others and recovers. Returns after the recovery.
    async fn kill_backend(&self) -> Result<bool, Error> {
        let Ok(Ok(mut witness)) = Connection::open(self.server.port()).await else { return Ok(false) };
        if !block(&self.server, |server| end_connection(server, true)).await {
            return Ok(false);
        }
        // It ends together with all other connections.
        witness.answer().await;
        self.wait_for_server().await.map(|()| true)
    }

    /// Waits until the server answers.
    async fn wait_for_server(&self) -> Result<(), Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.query("select 1".to_owned()).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    /// Says if a gateway has ended by itself.
    pub fn trouble(&mut self) -> Option<String> {
        self.gateways.iter_mut().find_map(|gateway| gateway.child.exit_report())
    }

    /// What makes the changes beside the load.
    pub fn changes(&self) -> Changes {
        Changes { server: Arc::clone(&self.server) }
    }

    /// Waits until nothing that the clients have sent can still be committed. If an outcome is unknown, work of a connection that is
    /// lost may be left. The server's connections are then ended, which drops it.
    pub async fn settle(&self, some_unknown: bool) -> Result<(), Error> {
        const LEFT: [&str; 3] = ["hotrow_clients", "hotrow_queued_units", "hotrow_parked_units"];
        self.wait_for_server().await?;
        let deadline = Instant::now() + PATIENCE;
        for gateway in &self.gateways {
            while gateway.counts(&LEFT).await.is_none_or(|left| left.iter().any(|left| *left > 0)) {
                if Instant::now() > deadline {
                    return Err(refused("a gateway still has work of clients that have left".into()));
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        if !some_unknown {
            return Ok(());
        }
        let others = "pid <> pg_backend_pid() and backend_type = 'client backend'";
        let end = format!(
            "select clock_timestamp(), count(pg_terminate_backend(pid)) from pg_stat_activity where {others}"
        );
        let ended = self.query(end).await?;
        let left =
            format!("select 1 from pg_stat_activity where {others} and backend_start < '{ended}' limit 1");
        while !self.query(left.clone()).await?.is_empty() {
            if Instant::now() > deadline {
                return Err(refused("connections of gateways do not end".into()));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// The first value that the server returns. Empty if there is none.
    pub async fn query(&self, sql: String) -> Result<String, Error> {
        let rows = block(&self.server, move |server| server.query(&sql)).await?;
        Ok(rows.into_iter().flatten().flatten().next().unwrap_or_default())
    }

    /// Reads the rows that a round has left.
    pub async fn rows(&self) -> Result<Rows, Error> {
        let opened =
            Connection::open(self.server.port()).await.map_err(Error::system("connect to the server"))?;
        let mut connection = opened.map_err(|refusal| refused(format!("{refusal:?}")))?;
        macro_rules! read {
            ($sql:expr) => {
                connection.numbers($sql).await.ok_or_else(|| refused(format!("no numbers from {}", $sql)))?
            };
        }
        Ok(Rows {
            counters: read!("select id, n, client, number from proof.counter"),
            own: read!("select client, n from proof.own"),
            entries: read!("select client, number from proof.entry"),
            pairs: read!("select client, number from proof.pair"),
            notes: read!("select client, number from proof.note"),
            ledger: read!(include_str!("../../sql/billion/ledger.sql")),
            totals: read!(include_str!("../../sql/billion/totals.sql")),
            requests: read!(include_str!("../../sql/billion/requests.sql")),
            sales: read!("select split_part(item, ' ', 3), stock, remaining from hotrow.sale"),
            reservations: read!(
                "select split_part(item, ' ', 3), buyer, count(*) from hotrow.reservation group by item, buyer"
            ),
        })
    }

    /// The units by way that the present gateways have counted since their start, and the most memory of one.
    pub async fn counted(&self) -> ([BTreeMap<String, u64>; 2], u64) {
        const UNITS: [(&str, &str); 4] = [
            ("packed or merged, writes", "hotrow_packed_units_total"),
            ("merged calls among them", "hotrow_merged_units_total"),
            ("packed, reads", "hotrow_packed_reads_total"),
            ("passed through", "hotrow_passed_through_units_total"),
        ];
        let (mut units, mut most) = ([BTreeMap::new(), BTreeMap::new()], 0);
        for (gateway, units) in self.gateways.iter().zip(&mut units) {
            let counts = gateway.counts(&UNITS.map(|(_, metric)| metric)).await.unwrap_or_default();
            units.extend(UNITS.iter().map(|(way, _)| (*way).to_owned()).zip(counts));
            most = most.max(gateway.footprint().await.map_or(0, |footprint| footprint.bytes));
        }
        (units, most)
    }

    /// The names and contents of logs that help to find a fault's cause.
    pub fn logs(&self) -> Vec<(String, String)> {
        let living = self.gateways.iter().map(|gateway| gateway.child.log().join("\n"));
        let gateways = self.ended.iter().cloned().chain(living).enumerate();
        let mut logs: Vec<_> = gateways.map(|(number, log)| (format!("gateway-{number}.log"), log)).collect();
        logs.push(("server.log".to_owned(), self.server.log()));
        logs
    }

    /// Stops the gateways, then the server, whose files stay.
    pub async fn stop(self) -> Result<(), Error> {
        for gateway in self.gateways {
            gateway.child.stop().await?;
        }
        block(&self.server, PrivateServer::stop).await.map_err(Error::from)
    }
}

/// Whether a refusal can be over at the next attempt: the server starts, or this session was chosen to resolve a deadlock.
fn is_passing(sqlstate: &str) -> bool {
    sqlstate.starts_with("57P") || sqlstate == "40P01"
}

/// Changes tables, indexes and functions.
#[derive(Debug)]
pub struct Changes {
    server: Arc<PrivateServer>,
}

impl Changes {
    /// Makes one of the changes. Returns whether it was made: a kill can interrupt it. A refusal for another reason is an error.
    pub async fn make(&self, number: u64) -> Result<bool, hotrow_postgres::Error> {
        let sql = CHANGES[(number % CHANGES.len() as u64) as usize];
        match block(&self.server, |server| server.query(sql)).await {
            Ok(_) => Ok(true),
            Err(hotrow_postgres::Error::Connection { .. }) => Ok(false),
            Err(hotrow_postgres::Error::Refused { sqlstate, .. }) if is_passing(&sqlstate) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn refused(reason: String) -> Error {
    Error::Refused { what: "check a round", reason }
}

/// Ends one connection of a gateway, one that works if possible. False if there is none, or if the server does not answer.
fn end_connection(server: &PrivateServer, is_kill: bool) -> bool {
    let call = if is_kill { "pid" } else { "case when pg_terminate_backend(pid) then pid end" };
    let rows = server.query(&format!(
        "select {call} from (select pid from pg_stat_activity where application_name like 'hotrow%lane%'
         order by state = 'active' desc, random() limit 1) one"
    ));
    let pid = rows.ok().and_then(|rows| rows.first()?[0].as_deref()?.parse().ok());
    pid.is_some_and(|pid| !is_kill || kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok())
}

async fn start_gateway(
    program: &Path,
    server: &PrivateServer,
    folder: &Path,
    number: usize,
) -> Result<Gateway, Error> {
    let url = server.url();
    let endpoint = Endpoint::parse(&url)?;
    let start = || Gateway::start(program, &url, &endpoint, &VERDICTS);
    let mut started = start().await;
    for _ in 1..TRIES {
        // Another program can have taken the port for its metrics.
        if started.is_err() {
            started = start().await;
        }
    }
    let gateway = started?;
    let file = pid_file(folder, number);
    let text = format!("{} {}", gateway.child.id().unwrap_or_default(), gateway.metrics);
    std::fs::write(&file, text).map_err(Error::file("write", &file))?;
    Ok(gateway)
}

fn pid_file(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("gateway-{number}.pid"))
}

/// Kills the gateways of a program that was killed itself. Their process IDs can belong to other processes by now, so the command
/// line must have the address from the file.
fn end_abandoned(folder: &Path) {
    for number in 0..2 {
        let Ok(text) = std::fs::read_to_string(pid_file(folder, number)) else { continue };
        let Some((pid, address)) = text.split_once(' ') else { continue };
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_ours = String::from_utf8_lossy(&command).split('\0').any(|argument| argument == address);
        if let (true, Ok(pid)) = (is_ours, pid.parse()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
