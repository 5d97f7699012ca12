//! Starts the payment service of `examples/payments` in front of a server: the service, a worker, simulated payment gateways
//! and, if requested, a reader of its change stream. It uses nothing of their internals.

use super::change_stream::{ChangeStream, Reader};
use super::payment_books::{self, Done};
use hotrow_bench::child::Child;
use hotrow_bench::endpoint::Endpoint;
use hotrow_bench::error::{Error, refused};
use hotrow_bench::files::temporary_folder;
use hotrow_bench::http::{Connection, Post};
use hotrow_bench::load::{Failure, NoFigure};
use hyper::{Method, StatusCode};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::process::Command;
use tokio_postgres::{Client, Row};

/// The paths of the programs.
#[derive(Debug, Clone)]
pub struct Programs {
    service: PathBuf,
    gateways: PathBuf,
}

impl Programs {
    /// Looks for the programs in Hotrow's folder. The error says how to build them.
    pub fn beside(hotrow: &Path) -> Result<Self, Failure> {
        let folder = hotrow.parent().unwrap_or(Path::new(""));
        let programs = Self { service: folder.join("payments"), gateways: folder.join("payment-gateways") };
        if programs.service.is_file() && programs.gateways.is_file() {
            return Ok(programs);
        }
        Err(Failure(format!(
            "there is no payment service in {}: build it with `cargo build --release --package payments`",
            folder.display()
        )))
    }
}

/// The behaviour of the payment gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// They accept every order immediately: only the service and the database are measured.
    Smooth,
    /// As on a match day: some answers are slow, some orders are declined, and webhooks arrive late, twice or never.
    MatchDay,
}

const MATCH_DAY: &str = r#""latency_ms":1,"jitter_ms":4,"declines":0.02,"forgets":0.0005,"silent":0.0005,
    "webhook_delay_ms":200,"duplicates":0.05,"lost_webhooks":0.05"#;

/// A running service with a worker.
#[derive(Debug)]
pub struct Payments {
    programs: Programs,
    /// One process for each simulated payment gateway, so that one of them can be killed.
    gateways: Vec<Child>,
    gateway_addresses: Vec<SocketAddr>,
    behaviour: Behaviour,
    books: TempDir,
    pub service: Child,
    worker: Child,
    /// The address of its HTTP server.
    pub address: SocketAddr,
    change_stream: Option<ChangeStream>,
    control: Client,
}

/// The keys for the signatures of webhooks. Both sides have them.
const SECRETS: &str = "of lotus,of banyan,of peepal";
/// In the order of the service's GATEWAYS_URL.
const GATEWAYS: [&str; 3] = ["lotus", "banyan", "peepal"];
/// Time limit for a step that waits for other programs.
const PATIENCE: Duration = Duration::from_secs(120);

impl Payments {
    /// Starts the programs on a database without payments. The service opens up to `connections` to `database`. The change
    /// stream connects to `server`.
    pub async fn start(
        programs: &Programs,
        database: &Endpoint,
        connections: u32,
        server: &Endpoint,
        behaviour: Behaviour,
        reader: Option<Reader>,
    ) -> Result<Self, Error> {
        let control = server.connect().await?;
        let books = temporary_folder()?;
        let (mut gateways, mut gateway_addresses) = (Vec::new(), Vec::new());
        for _ in GATEWAYS {
            let (gateway, address) = start_gateway(programs, books.path(), "127.0.0.1:0").await?;
            gateways.push(gateway);
            gateway_addresses.push(address);
        }
        let urls: Vec<_> = gateway_addresses.iter().map(|address| format!("http://{address}")).collect();
        let start = |role| {
            let mut command = Command::new(&programs.service);
            command.arg(role).env("DATABASE_URL", database.url()).env("LISTEN", "127.0.0.1:0");
            command.env("GATEWAYS_URL", urls.join(",")).env("GATEWAY_SECRETS", SECRETS);
            command.env("CONNECTIONS", connections.to_string());
            // Unknown outcomes are queried early enough for the check.
            command.env("GATEWAY_SECONDS", "2").env("RECONCILE_SECONDS", "1,2,5");
            Child::start(&programs.service, command)
        };
        let mut service = start("service")?;
        let address = service.ready(listens).await?;
        let mut worker = start("worker")?;
        worker.ready(|line| line.ends_with("working").then_some(())).await?;
        let change_stream = match reader {
            Some(reader) => Some(ChangeStream::start(reader, server, &control).await?),
            None => None,
        };
        let payments = Self {
            programs: programs.clone(),
            gateways,
            gateway_addresses,
            behaviour,
            books,
            service,
            worker,
            address,
            change_stream,
            control,
        };
        for gateway in 0..GATEWAYS.len() {
            payments.set_behaviour(gateway).await?;
        }
        Ok(payments)
    }

    /// Kills one of the payment gateways, as a crash would. It restarts after some time, with its book.
    pub async fn kill_a_gateway(&mut self, for_so_long: Duration) -> Result<(), Error> {
        self.gateways[0].kill()?;
        tokio::time::sleep(for_so_long).await;
        let address = self.gateway_addresses[0].to_string();
        (self.gateways[0], _) = start_gateway(&self.programs, self.books.path(), &address).await?;
        self.set_behaviour(0).await
    }

    async fn set_behaviour(&self, gateway: usize) -> Result<(), Error> {
        if self.behaviour == Behaviour::Smooth {
            return Ok(());
        }
        let request = Post {
            path: format!("/{}/behaviour", GATEWAYS[gateway]),
            idempotency_key: None,
            body: format!("{{{MATCH_DAY},\"webhooks_url\":\"http://{}\"}}", self.address).into(),
        };
        let answered = async {
            let mut connection = Connection::open(self.gateway_addresses[gateway]).await?;
            match connection.send(&Method::PUT, &request).await? {
                (StatusCode::OK, _) => Ok(()),
                (status, body) => Err(Failure(format!("{status}: {}", String::from_utf8_lossy(&body)))),
            }
        };
        answered
            .await
            .map_err(|Failure(printed)| Error::Ended { program: self.programs.gateways.clone(), printed })
    }

    /// Waits until the outcome of every payment is known and all its events have arrived.
    pub async fn settle(&self) -> Result<(), NoFigure> {
        const UNSETTLED: &str = "select count(*) from payments.attempt where due_at is not null";
        let deadline = Instant::now() + PATIENCE;
        loop {
            let row = self.control.query_one(UNSETTLED, &[]).await;
            let left: i64 = row.map_err(refused("count what is under way"))?.get(0);
            if left == 0 {
                break;
            }
            if Instant::now() > deadline {
                return Err(Failure(format!("{left} payments have no outcome after {PATIENCE:?}")).into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.compare_books().await?;
        match &self.change_stream {
            Some(stream) => stream.all_arrived(&self.control).await,
            None => Ok(()),
        }
    }

    /// Checks that the books of the payment gateways have exactly the successful attempts of the service.
    async fn compare_books(&self) -> Result<(), NoFigure> {
        const SUCCEEDED: &str = "select id::text as attempt, gateway, kind, amount from payments.attempt where state = 'succeeded'";
        let rows = self.control.query(SUCCEEDED, &[]).await.map_err(refused("read the attempts"))?;
        let done = |row: &Row| Done {
            attempt: row.get("attempt"),
            gateway: row.get("gateway"),
            kind: row.get("kind"),
            amount: row.get("amount"),
        };
        let ours: BTreeSet<Done> = rows.iter().map(done).collect();
        let mut theirs = BTreeSet::new();
        for name in GATEWAYS {
            let path = self.books.path().join(format!("{name}.jsonl"));
            let book = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
            theirs.extend(payment_books::done(name, &book));
        }
        Ok(payment_books::difference(&ours, &theirs).map_or(Ok(()), |difference| Err(Failure(difference)))?)
    }

    /// Stops all programs.
    pub async fn stop(self) -> Result<(), Error> {
        self.service.stop().await?;
        self.worker.stop().await?;
        if let Some(stream) = self.change_stream {
            stream.stop(&self.control).await?;
        }
        for gateway in self.gateways {
            gateway.stop().await?;
        }
        Ok(())
    }
}

async fn start_gateway(
    programs: &Programs,
    books: &Path,
    listen: &str,
) -> Result<(Child, SocketAddr), Error> {
    let mut command = Command::new(&programs.gateways);
    command.env("LISTEN", listen).env("GATEWAY_SECRETS", SECRETS).env("BOOKS", books);
    let mut gateway = Child::start(&programs.gateways, command)?;
    let address = gateway.ready(listens).await?;
    Ok((gateway, address))
}

/// The address in the line that a program prints when it is ready.
fn listens(line: &str) -> Option<SocketAddr> {
    line.rsplit_once("listening on ")?.1.trim().parse().ok()
}
