//! All programs of one test, requests to them, and the final check of all books.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hotrow_postgres::PrivateServer;
use hotrow_testkit::{ReservedPort, patient, program};
use payments::http::Client;
use payments::signature::sign;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::NoTls;

use crate::document::check_answer;
use crate::program::Program;

/// Time limit of a test's waits. Only a fault makes them take so long.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Number of stages at once: each has five programs and its own server, most of which wait, and test machines have two cores.
static ROOM: Semaphore = Semaphore::const_new(3);
/// The secrets with which the gateways sign.
const SECRETS: &str = "secret of lotus,secret of banyan,secret of peepal";
pub const GATEWAYS: [&str; 3] = ["lotus", "banyan", "peepal"];

/// The signature of a webhook of this gateway.
pub fn signed_by(gateway: &str, at: i64, body: &str) -> String {
    sign(&format!("secret of {gateway}"), at, body.as_bytes())
}

const CONTRADICTIONS: &str = include_str!("../../sql/contradictions.sql");

/// The programs of a test, the server, and a client.
pub struct Stage {
    pub gateways: Program,
    pub service: Program,
    pub worker: Program,
    pub hotrow: Option<Program>,
    pub server: PrivateServer,
    pub service_port: u16,
    pub gateways_port: u16,
    metrics_port: u16,
    pub client: Client,
    /// Programs keep their ports while they are killed and restarted.
    _ports: [ReservedPort; 4],
    _books: TempDir,
    _room: SemaphorePermit<'static>,
}

/// The database setup of the service.
#[derive(Clone, Copy, PartialEq)]
pub enum Plan {
    /// A plain server.
    Direct,
    /// A server with Hotrow's queues.
    WithQueues,
    /// A plain server behind Hotrow. Only the port is different.
    ThroughHotrow,
    /// Both.
    WithQueuesThroughHotrow,
}

impl Plan {
    fn has_queues(self) -> bool {
        matches!(self, Self::WithQueues | Self::WithQueuesThroughHotrow)
    }

    fn is_through_hotrow(self) -> bool {
        matches!(self, Self::ThroughHotrow | Self::WithQueuesThroughHotrow)
    }
}

/// The service's answer.
pub type Answer = (u16, Value);

impl Stage {
    /// Starts a stage on a new server, with gateways without failures.
    pub async fn start() -> Self {
        Self::build(Plan::Direct, &[]).await
    }

    /// The same with other settings of the service.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        Self::build(Plan::Direct, settings).await
    }

    /// A plain server behind a Hotrow with one patient lane, for tests that count packed units. While one of several lanes is
    /// slow, its units move to others, and then the lanes wait for each other's rows.
    pub async fn through_patient_hotrow(settings: &[(&str, &str)]) -> Self {
        let room = ROOM.acquire().await.unwrap();
        tokio::task::block_in_place(|| {
            Self::open(room, Plan::ThroughHotrow, &patient(&["--lanes", "1"]), settings)
        })
    }

    /// The same with this database setup and other settings of the service.
    pub async fn build(plan: Plan, settings: &[(&str, &str)]) -> Self {
        let room = ROOM.acquire().await.unwrap();
        tokio::task::block_in_place(|| Self::open(room, plan, &[], settings))
    }

    /// `options` are further ones of Hotrow.
    fn open(room: SemaphorePermit<'static>, plan: Plan, options: &[&str], settings: &[(&str, &str)]) -> Self {
        let server = PrivateServer::builder().label("payments").start().unwrap();
        if plan.has_queues() {
            hotrow_testkit::migrate(&server.url());
        }
        let mut url = server.url();
        let ports = [(); 4].map(|()| ReservedPort::find());
        let [port, metrics_port, service_port, gateways_port] = ports.each_ref().map(ReservedPort::number);
        let hotrow = plan.is_through_hotrow().then(|| {
            let listen = format!("127.0.0.1:{port}");
            let metrics = format!("127.0.0.1:{metrics_port}");
            let arguments =
                ["serve", "--upstream", &server.url(), "--listen", &listen, "--metrics", &metrics];
            url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
            Program::start(&program("hotrow"), &[&arguments, options].concat(), &[])
        });
        let books = TempDir::new().unwrap();
        let (listen, gateways_listen) =
            (format!("127.0.0.1:{service_port}"), format!("127.0.0.1:{gateways_port}"));
        let gateways_url = format!("http://{gateways_listen}");
        let behaviour = json!({ "webhooks_url": format!("http://{listen}") }).to_string();
        let folder = books.path().to_str().unwrap();
        let gateways = Program::start(
            Path::new(env!("CARGO_BIN_EXE_payment-gateways")),
            &[],
            &[
                ("LISTEN", &gateways_listen),
                ("GATEWAY_SECRETS", SECRETS),
                ("BOOKS", folder),
                ("BEHAVIOUR", &behaviour),
            ],
        );
        // Delays of minutes in production are fractions of a second here.
        let mut environment = vec![
            ("DATABASE_URL", url.as_str()),
            ("LISTEN", &listen),
            ("GATEWAYS_URL", &gateways_url),
            ("GATEWAY_SECRETS", SECRETS),
            ("CONNECTIONS", "16"),
            ("GATEWAY_SECONDS", "0.5"),
            ("RECONCILE_SECONDS", "0.3,0.5,1"),
            ("NOTIFY_SECONDS", "0.1,0.1"),
            ("KEY_SECONDS", "2"),
        ];
        environment.extend(settings);
        let payments = Path::new(env!("CARGO_BIN_EXE_payments"));
        let service = Program::start(payments, &["service"], &environment);
        let worker = Program::start(payments, &["worker"], &environment);
        let client = Client::default();
        Self {
            gateways,
            service,
            worker,
            hotrow,
            server,
            service_port,
            gateways_port,
            metrics_port,
            client,
            _ports: ports,
            _books: books,
            _room: room,
        }
    }

    /// Installs Hotrow's queues in the database.
    pub fn migrate(&self) {
        tokio::task::block_in_place(|| hotrow_testkit::migrate(&self.server.url()));
    }

    /// A client of the service.
    pub fn caller(&self) -> Caller {
        Caller { client: self.client.clone(), base: format!("http://127.0.0.1:{}", self.service_port) }
    }

    /// Changes the behaviour of gateways. Webhooks go to the service unless the behaviour has another address.
    pub async fn behave(&self, names: &[&str], mut behaviour: Value) {
        let to = behaviour.get("webhooks_url").cloned();
        behaviour["webhooks_url"] =
            to.unwrap_or_else(|| json!(format!("http://127.0.0.1:{}", self.service_port)));
        for name in names {
            let url = format!("http://127.0.0.1:{}/{name}/behaviour", self.gateways_port);
            let body = Bytes::from(behaviour.to_string());
            let answer = self.client.send("PUT", &url, &[], body, PATIENCE).await.unwrap();
            assert_eq!(answer.0, 200, "{answer:?}");
        }
    }

    /// One of Hotrow's metrics.
    pub async fn metric(&self, name: &str) -> u64 {
        let url = format!("http://127.0.0.1:{}/metrics", self.metrics_port);
        let (_, page) = self.client.get(&url, PATIENCE).await.unwrap();
        let page = String::from_utf8_lossy(&page).into_owned();
        let wanted = format!("hotrow_{name} ");
        page.lines().find_map(|line| line.strip_prefix(&wanted)).expect(name).parse().unwrap()
    }

    /// The rows of a query.
    pub fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        tokio::task::block_in_place(|| self.server.query(sql)).unwrap()
    }

    /// The first value of a query.
    pub fn value(&self, sql: &str) -> String {
        self.rows(sql)[0][0].clone().unwrap_or_default()
    }

    /// A direct connection of the test to the server.
    pub async fn connect(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(&self.server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Waits until a statement with this text in it waits for a lock.
    pub async fn wait_for_lock(&self, about: &str) {
        let waiting = format!(
            "select count(*) > 0 from pg_stat_activity where wait_event_type = 'Lock' and query like '%{about}%'"
        );
        self.until(&waiting, "t").await;
    }

    /// Waits until a query returns this value.
    pub async fn until(&self, sql: &str, wanted: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let value = self.value(sql);
            if value == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "{sql} answers {value}, not {wanted}");
            tokio::time::sleep(Duration::from_millis(20)).await; // the condition has no signal
        }
    }

    /// Waits until no work is under way, then checks the tables, also against the gateways' books.
    pub async fn check_books(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let contradictions = self.rows(CONTRADICTIONS);
            if contradictions.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "{contradictions:?}");
            tokio::time::sleep(Duration::from_millis(100)).await; // the condition has no signal
        }
        let mut charges: HashMap<String, u32> = HashMap::new();
        let attempts = self.rows(
            "select id, intent, gateway, kind, amount, currency, state from payments.attempt where gateway <> 'none'",
        );
        let mut ours: HashMap<String, Vec<String>> = attempts
            .into_iter()
            .map(|row| row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>())
            .map(|row| (row[0].clone(), row))
            .collect();
        for gateway in GATEWAYS {
            for entry in self.book(gateway).await {
                let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
                let row = ours
                    .remove(&text("reference"))
                    .unwrap_or_else(|| panic!("{gateway} has an entry without an attempt: {entry}"));
                let [_, intent, at, kind, amount, currency, state] = row.as_slice() else {
                    panic!("{row:?}")
                };
                let theirs = (gateway, text("kind"), entry["amount"].to_string(), text("currency"));
                assert_eq!((at.as_str(), kind.clone(), amount.clone(), currency.clone()), theirs, "{entry}");
                assert_eq!(*state, text("outcome"), "{entry}");
                if state == "succeeded" && ["purchase", "authorize"].contains(&kind.as_str()) {
                    *charges.entry(intent.clone()).or_default() += 1;
                }
            }
        }
        for row in ours.values() {
            assert_eq!(row[6], "not_executed", "no gateway has {row:?}");
        }
        for (intent, charges) in charges {
            assert_eq!(charges, 1, "{intent} was charged more than once");
        }
    }

    /// The book of a gateway.
    pub async fn book(&self, gateway: &str) -> Vec<Value> {
        let url = format!("http://127.0.0.1:{}/{gateway}/book", self.gateways_port);
        let (status, body) = self.client.get(&url, PATIENCE).await.unwrap();
        assert_eq!(status, 200);
        serde_json::from_slice(&body).unwrap()
    }
}

/// A client of the service.
#[derive(Clone)]
pub struct Caller {
    client: Client,
    pub base: String,
}

impl Caller {
    /// Sends JSON with an idempotency key.
    pub async fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.try_post(path, key, body).await.unwrap()
    }

    /// The same while the service may be down.
    pub async fn try_post(&self, path: &str, key: &str, body: &Value) -> Result<Answer, String> {
        self.send("POST", path, &[("idempotency-key", key)], body.to_string()).await
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], Bytes::new()).await.unwrap()
    }

    /// Sends any request, and checks that the document describes the answer.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        let url = format!("{}{path}", self.base);
        let answer = self.client.send(method, &url, headers, body.into(), PATIENCE).await;
        let (status, body) = answer.map_err(|error| error.to_string())?;
        let body = json(&body);
        check_answer(method, path, status, &body);
        Ok((status, body))
    }
}

fn json(body: &Bytes) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()))
}

/// A new payment that is confirmed at once.
pub fn payment(amount: i64, capture_at_once: bool) -> Value {
    json!({ "merchant": "shop", "customer": "ann", "mode": "upi", "amount": amount, "currency": "INR",
        "confirm": true, "capture_at_once": capture_at_once })
}
