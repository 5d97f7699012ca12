//! State of one session of the server: settings, temporary tables, locks, cursors, sequence values, transactions, the
//! role. Through the gateway each session keeps its own state and sees no other session's. The modules contain the
//! tests, and this file contains the code that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod begun;
mod cancel;
mod cancelled_waits;
mod catalog;
mod client_name;
mod constants;
mod functions;
mod known_sets;
mod left_behind;
mod local_settings;
mod notifications;
mod pack_setting;
mod parameter_types;
mod partitions;
mod past_pools;
mod plans;
mod readings;
mod renewed_lanes;
mod roles;
mod scripts;
mod sequences;
mod settings;
mod settings_in_transactions;
mod transactions;
mod views;
mod with;

use std::time::{Duration, Instant};

use hotrow_testkit::{Gateway, PATIENCE, connect, new_database, new_schema, patient, rows, until, value};
use tokio_postgres::{Client, Config};

hotrow_testkit::shared_server!();

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

/// The gateway reads the catalog again five times per second.
const SHORT_CATALOG_AGE: &[&str] = &["--catalog-age-ms", "200"];
/// With the default age, the gateway would take longer to notice a change.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);
/// With the default age, it would take many more looks to see that the change was noticed. On a busy machine each look can
/// take a second.
const FEW_LOOKS: usize = 8;

/// How long it took until a change was noticed, and how many looks.
type Noticed = (Duration, usize);

/// Looks until the change is noticed.
async fn noticed(what: &str, mut look: impl AsyncFnMut() -> bool) -> Noticed {
    let since = Instant::now();
    let mut looks = 1;
    while !look().await {
        assert!(since.elapsed() < PATIENCE, "timed out while waiting until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await; // the condition has no signal
        looks += 1;
    }
    (since.elapsed(), looks)
}

/// Asserts that the gateway notices a change soon. `change` makes one. A busy machine can delay one of three tries.
async fn is_noticed_soon(mut change: impl AsyncFnMut() -> Noticed) {
    let mut took = Vec::new();
    for _ in 0..3 {
        let (time, looks) = change().await;
        if time < NOTICED_WITHIN || looks <= FEW_LOOKS {
            return;
        }
        took.push((time, looks));
    }
    panic!("noticed after {took:?}");
}

/// A table with two rows and a gateway in front of it. Its lanes are patient unless the options say otherwise, because tests
/// count packed units.
struct Stage {
    gateway: Gateway,
    database: String,
    schema: String,
    direct: Client,
}

impl Stage {
    async fn new(options: &[&str]) -> Self {
        let (schema, direct) = new_schema().await;
        Self::in_database("postgres", schema, direct, options).await
    }

    /// The same in its own database, for tests that expect exact sequence values: a `CREATE SCHEMA` of another test
    /// makes the server analyse all statements of the database again. Batches then run twice and leave gaps.
    async fn alone(options: &[&str]) -> Self {
        let (name, direct) = new_database().await;
        let schema = format!("create schema {name}; set search_path = {name}");
        direct.batch_execute(&schema).await.unwrap();
        Self::in_database(&name, name.clone(), direct, options).await
    }

    async fn in_database(database: &str, schema: String, direct: Client, options: &[&str]) -> Self {
        direct
            .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)")
            .await
            .unwrap();
        Self { gateway: Gateway::start(&patient(options)), database: database.to_owned(), schema, direct }
    }

    async fn client(&self) -> Client {
        connect(&self.config()).await
    }

    async fn named(&self, application_name: &str) -> Client {
        connect(self.config().application_name(application_name)).await
    }

    fn config(&self) -> Config {
        let mut config = self.gateway.config_in(&self.schema);
        config.dbname(&self.database);
        config
    }

    /// Waits until each client has given back its connection or keeps it for a reason that the console shows. A session's state is
    /// looked at after its client has the answer.
    async fn all_is_given_back(&self) {
        let console = connect(self.gateway.config().dbname("hotrow")).await;
        until("no client is at work", async || {
            let clients = rows(&console, "show clients").await.unwrap();
            clients.iter().all(|row| row[7].as_deref() != Some("active"))
        })
        .await;
    }

    /// Whether an update of this client is packed. No other client may run statements.
    async fn packs(&self, client: &Client) -> bool {
        let before = self.gateway.metric("packed_units_total");
        let expected: i32 = value(&self.direct, "select n + 1 from t where id = 1").await.parse().unwrap();
        assert_eq!(value(client, UPDATE).await, expected.to_string());
        self.gateway.metric("packed_units_total") > before
    }
}
