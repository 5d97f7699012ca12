//! Loads on a private MariaDB server: directly, or through a gateway that packs. It starts the server and the gateway, sends the
//! requests, and reads the rows and the server's counters.

use hotrow_bench::Error;
use hotrow_bench::child::Child;
use hotrow_bench::load::{Answers, Failure, Part, joined};
use hotrow_bench::statistics::Latencies;
use hotrow_bench::verdict::Reading;
use hotrow_bench::watch::Counted;
use hotrow_mariadb::{PASSWORD, PrivateMariaDb, USER};
use hotrow_mysql_client::{Client, INSTALL, OwnError, Prepared, Upstream, statements};
use hotrow_postgres::SlowFlush;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, spawn_blocking};

const COUNTERS: &str = include_str!("../../sql/mariadb/counters.sql");

/// The line that shows that the gateway is ready.
const READY: &str = "hotrow: listening on ";
/// Places for the clients of both parts, the lanes and this program.
const PLACES: &str = "--max-connections=2000";

/// A load, as data. In the SQL of `set_up` and `reading`, `:rows` is the number of rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Work {
    /// Options of the server, besides those of each private server.
    pub options: &'static [&'static str],
    /// The script that creates the tables and their rows.
    pub set_up: &'static str,
    /// The script that begins each session. It changes nothing.
    pub first: &'static str,
    pub request: Request,
    /// A query for the units of work that the rows show, and for the number of rows that contradict them.
    pub reading: &'static str,
}

/// What a client sends for each request. Each statement must change or return one row.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// The statements of this script as texts, one after another. `:id` is a number that no other request has, and `:amount`
    /// is from 1 to 100.
    Texts(&'static str),
    /// This statement, which each client prepares once. Its parameter is the key of any of the rows, at random.
    Prepared(&'static str),
}

/// A server, and a gateway in front of it if the technique uses one.
#[derive(Debug)]
pub struct MariaDb {
    work: &'static Work,
    server: PrivateMariaDb,
    pub gateway: Option<Child>,
    /// The address of the clients.
    clients: Upstream,
    control: Mutex<Client>,
    rows: u32,
    /// The number of the last request with texts.
    requests: Arc<AtomicU64>,
}

impl MariaDb {
    /// Starts the server and, with a program, the gateway. There are no tables yet.
    pub async fn start(
        work: &'static Work,
        gateway: Option<&Path>,
        slow_flush: Option<&SlowFlush>,
    ) -> Result<Self, Failure> {
        let environment = slow_flush.map(SlowFlush::environment).into_iter().flatten().collect();
        let options = [&[PLACES], work.options].concat();
        let started = spawn_blocking(move || PrivateMariaDb::start_in(environment, &options)).await;
        let server = joined(started).map_err(|error| Failure(error.to_string()))?;
        let url = format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}", server.port());
        let mut clients: Upstream = url.parse().expect("neither name nor password needs an escape");
        let mut control = Client::open(&clients).await.map_err(failed)?;
        control.script(INSTALL).await.map_err(failed)?;
        let gateway = match gateway {
            Some(program) => {
                let (child, port) =
                    start_gateway(program, &url).await.map_err(|error| Failure(error.to_string()))?;
                clients.port = port;
                Some(child)
            }
            None => None,
        };
        let (control, requests) = (Mutex::new(control), Arc::default());
        Ok(Self { work, server, gateway, clients, control, rows: 0, requests })
    }

    /// Creates the tables before the first part.
    pub async fn prepare(&mut self, part: &Part) -> Result<(), Failure> {
        if self.rows == 0 {
            self.rows = part.rows;
            let script = self.with_rows(self.work.set_up);
            self.control.get_mut().script(&script).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Sends requests until the time is over, and each client at least one.
    pub async fn run(&self, part: &Part) -> Result<Answers, Failure> {
        let mut workers = Vec::new();
        for _ in 0..part.run.clients {
            workers.push(self.worker().await.map_err(failed)?);
        }
        let began = Instant::now();
        let end = began + part.lasting();
        let mut workers: JoinSet<_> = workers.into_iter().map(|worker| worker.until(end)).collect();
        let mut latencies = Latencies::new();
        while let Some(worked) = workers.join_next().await {
            latencies.add(&joined(worked)?);
        }
        Ok(Answers::since(began, latencies.count(), latencies))
    }

    async fn worker(&self) -> Result<Worker, OwnError> {
        let mut client = Client::open(&self.clients).await?;
        client.script(self.work.first).await?;
        let sends = match self.work.request {
            Request::Texts(script) => Sends::Texts(statements(script), Arc::clone(&self.requests)),
            Request::Prepared(sql) => Sends::Prepared(client.prepare(sql).await?, self.rows),
        };
        Ok(Worker { client, sends })
    }

    /// The units of work done, and the rows that contradict them.
    pub async fn read(&self) -> Result<Reading, Error> {
        let [done, broken] = self.numbers(&self.with_rows(self.work.reading)).await?;
        Ok(Reading { done, broken })
    }

    /// The server's work up to now.
    pub async fn counted(&self) -> Result<Counted, Error> {
        let [commits, flushes] = self.numbers(COUNTERS).await?;
        Ok(Counted { commits, flushes })
    }

    fn with_rows(&self, sql: &str) -> String {
        sql.replace(":rows", &self.rows.to_string())
    }

    async fn numbers(&self, sql: &str) -> Result<[i64; 2], Error> {
        let refused = |reason| Error::Refused { what: "count its work", reason };
        let rows = self.control.lock().await.rows(sql).await;
        let rows = rows.map_err(|error| refused(error.to_string()))?;
        let numbers = rows.into_iter().flatten().filter_map(|value| value?.parse().ok());
        let numbers: Vec<i64> = numbers.collect();
        numbers.try_into().map_err(|numbers| refused(format!("it answers {numbers:?}")))
    }

    /// Stops the gateway, then the server.
    pub async fn stop(self) -> Result<(), Error> {
        if let Some(gateway) = self.gateway {
            gateway.stop().await?;
        }
        let server = self.server;
        joined(spawn_blocking(|| drop(server)).await);
        Ok(())
    }
}

fn failed(error: OwnError) -> Failure {
    Failure(format!("MariaDB: {error}"))
}

/// The program as a gateway in front of this server, and its port.
async fn start_gateway(program: &Path, url: &str) -> Result<(Child, u16), Error> {
    let mut command = Command::new(program);
    command.args(["serve", "--upstream", url, "--listen", "127.0.0.1:0", "--pack", "true"]);
    let mut child = Child::start(program, command)?;
    let port = child.ready(|line| line.strip_prefix(READY)?.trim().rsplit_once(':')?.1.parse().ok()).await?;
    Ok((child, port))
}

/// A client that is ready for its first request.
struct Worker {
    client: Client,
    sends: Sends,
}

enum Sends {
    /// Texts, with the number of the last request.
    Texts(Vec<String>, Arc<AtomicU64>),
    /// A statement, with the number of rows.
    Prepared(Prepared, u32),
}

impl Worker {
    /// Sends requests until this time.
    async fn until(mut self, end: Instant) -> Result<Latencies, Failure> {
        let mut latencies = Latencies::new();
        while latencies.count() == 0 || Instant::now() < end {
            let began = Instant::now();
            self.request().await?;
            latencies.record_since(began);
        }
        Ok(latencies)
    }

    async fn request(&mut self) -> Result<(), Failure> {
        match &self.sends {
            Sends::Texts(texts, requests) => {
                let id = requests.fetch_add(1, Relaxed) + 1;
                let amount = id % 100 + 1;
                for text in texts {
                    let text = text.replace(":id", &id.to_string()).replace(":amount", &amount.to_string());
                    let ok = self.client.execute(&text).await.map_err(failed)?;
                    expect_one(ok.affected, &text)?;
                }
                Ok(())
            }
            Sends::Prepared(statement, rows) => {
                let key = fastrand::i64(1..=i64::from(*rows));
                let rows = self.client.execute_prepared(*statement, &[key]).await.map_err(failed)?;
                expect_one(rows, "the prepared statement")
            }
        }
    }
}

fn expect_one(rows: u64, statement: &str) -> Result<(), Failure> {
    match rows {
        1 => Ok(()),
        _ => Err(Failure(format!("a statement changed or returned {rows} rows instead of one: {statement}"))),
    }
}
