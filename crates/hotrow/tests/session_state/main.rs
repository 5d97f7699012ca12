//! State of one session of the server: settings, temporary tables, locks, cursors, sequence values, transactions, the
//! role. Through the gateway each session keeps its own state and sees no other session's. The modules contain the
//! tests, and this file contains the code that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod begun;
mod cancel;
mod catalogue;
mod client_name;
mod constants;
mod left_behind;
mod notifications;
mod partitions;
mod past_pools;
mod plans;
mod readings;
mod renewed_lanes;
mod roles;
mod scripts;
mod sequences;
mod settings;
mod transactions;
mod views;
mod with;

use hotrow_testkit::{Gateway, connect, new_database, new_schema, value};
use tokio_postgres::{Client, Config};

hotrow_testkit::shared_server!();

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

/// A table with two rows and a gateway in front of it.
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
        Self { gateway: Gateway::start(options), database: database.to_owned(), schema, direct }
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

    /// Whether an update of this client is packed. No other client may run statements.
    async fn packs(&self, client: &Client) -> bool {
        let before = self.gateway.metric("packed_units_total");
        let expected: i32 = value(&self.direct, "select n + 1 from t where id = 1").await.parse().unwrap();
        assert_eq!(value(client, UPDATE).await, expected.to_string());
        self.gateway.metric("packed_units_total") > before
    }
}
