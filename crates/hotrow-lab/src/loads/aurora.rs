//! Payments of ten statements, each with its own commit, on a private MariaDB server with a binary log: directly, or through a gateway
//! that packs. It starts the server and the gateway, and reads the server's counters.

use hotrow_bench::Error;
use hotrow_bench::child::Child;
use hotrow_bench::load::{Answers, Failure, Part, joined};
use hotrow_bench::statistics::Latencies;
use hotrow_bench::verdict::Reading;
use hotrow_bench::watch::Counted;
use hotrow_mariadb::{PASSWORD, PrivateMariaDb, USER};
use hotrow_mysql_client::{Client, INSTALL, OwnError, Upstream, statements};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, spawn_blocking};

const SET_UP: &str = include_str!("../../sql/aurora/set_up.sql");
const PAYMENT: &str = include_str!("../../sql/aurora/payment.sql");
const FIRST: &str = include_str!("../../sql/aurora/first.sql");
const READING: &str = include_str!("../../sql/aurora/reading.sql");
const COUNTERS: &str = include_str!("../../sql/aurora/counters.sql");

/// The line that shows that the gateway is ready.
const READY: &str = "hotrow: listening on ";
/// Places for the clients of both parts, the lanes and this program.
const OPTIONS: [&str; 1] = ["--max-connections=2000"];

/// A server without payments, and a gateway in front of it if the technique uses one.
#[derive(Debug)]
pub struct Aurora {
    server: PrivateMariaDb,
    pub gateway: Option<Child>,
    /// The address of the clients.
    clients: Upstream,
    control: Mutex<Client>,
    /// The number of the last payment.
    payments: Arc<AtomicU64>,
}

impl Aurora {
    /// Starts the server and, with a program, the gateway.
    pub async fn start(gateway: Option<&Path>) -> Result<Self, Failure> {
        let started = spawn_blocking(|| PrivateMariaDb::start(&OPTIONS)).await;
        let server = joined(started).map_err(|error| Failure(error.to_string()))?;
        let url = format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}", server.port());
        let mut clients: Upstream = url.parse().expect("neither name nor password needs an escape");
        let mut control = Client::open(&clients).await.map_err(failed)?;
        control.script(INSTALL).await.map_err(failed)?;
        control.script(SET_UP).await.map_err(failed)?;
        let gateway = match gateway {
            Some(program) => {
                let (child, port) =
                    start_gateway(program, &url).await.map_err(|error| Failure(error.to_string()))?;
                clients.port = port;
                Some(child)
            }
            None => None,
        };
        Ok(Self { server, gateway, clients, control: Mutex::new(control), payments: Arc::default() })
    }

    /// Makes payments until the time is over, and each client at least one.
    pub async fn pay(&self, part: &Part) -> Result<Answers, Failure> {
        let mut clients = Vec::new();
        for _ in 0..part.run.clients {
            let mut client = Client::open(&self.clients).await.map_err(failed)?;
            client.script(&format!("{FIRST};")).await.map_err(failed)?;
            clients.push(client);
        }
        let began = Instant::now();
        let end = began + part.lasting();
        let payers = clients.into_iter().map(|client| pay_until(client, end, Arc::clone(&self.payments)));
        let mut payers: JoinSet<_> = payers.collect();
        let mut latencies = Latencies::new();
        while let Some(paid) = payers.join_next().await {
            latencies.add(&joined(paid)?);
        }
        Ok(Answers::since(began, latencies.count(), latencies))
    }

    /// The payments, and the rows that contradict them.
    pub async fn read(&self) -> Result<Reading, Error> {
        let [done, broken] = self.numbers(READING).await?;
        Ok(Reading { done, broken })
    }

    /// The server's work up to now.
    pub async fn counted(&self) -> Result<Counted, Error> {
        let [commits, flushes] = self.numbers(COUNTERS).await?;
        Ok(Counted { commits, flushes })
    }

    async fn numbers(&self, sql: &str) -> Result<[i64; 2], Error> {
        let refused = |reason| Error::Refused { what: "count the payments", reason };
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

/// Pays until this time. Each statement must change one row.
async fn pay_until(mut client: Client, end: Instant, payments: Arc<AtomicU64>) -> Result<Latencies, Failure> {
    let (texts, mut latencies) = (statements(PAYMENT), Latencies::new());
    while latencies.count() == 0 || Instant::now() < end {
        let began = Instant::now();
        let id = payments.fetch_add(1, Relaxed) + 1;
        let amount = id % 100 + 1;
        for text in &texts {
            let text = text.replace(":id", &id.to_string()).replace(":amount", &amount.to_string());
            let ok = client.execute(&text).await.map_err(failed)?;
            if ok.affected != 1 {
                return Err(Failure(format!(
                    "a statement changed {} rows instead of one: {text}",
                    ok.affected
                )));
            }
        }
        latencies.record_since(began);
    }
    Ok(latencies)
}
