//! What belongs to one session of the server: settings, temporary tables, locks, cursors, sequence values, transactions,
//! the role. Through the gateway each session keeps its own and sees nobody else's. The tests are in the modules; here
//! is only what they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod cancel;
mod catalogue;
mod left_behind;
mod notifications;
mod plans;
mod roles;
mod scripts;
mod sequences;
#[path = "../support/mod.rs"]
mod support;
mod transactions;

use support::{Gateway, connect, new_schema, value};
use tokio_postgres::Client;

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

/// A table with two rows and a gateway in front of it.
struct Stage {
    gateway: Gateway,
    schema: String,
    direct: Client,
}

impl Stage {
    async fn new(options: &[&str]) -> Self {
        let (schema, direct) = new_schema().await;
        direct
            .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)")
            .await
            .unwrap();
        Self { gateway: Gateway::start(options), schema, direct }
    }

    async fn client(&self) -> Client {
        connect(&self.gateway.config_in(&self.schema)).await
    }

    async fn named(&self, application_name: &str) -> Client {
        connect(self.gateway.config_in(&self.schema).application_name(application_name)).await
    }

    /// Whether an update of this client is packed. Nobody else may be at work.
    async fn packs(&self, client: &Client) -> bool {
        let before = self.gateway.metric("packed_units_total");
        let expected: i32 = value(&self.direct, "select n + 1 from t where id = 1").await.parse().unwrap();
        assert_eq!(value(client, UPDATE).await, expected.to_string());
        self.gateway.metric("packed_units_total") > before
    }
}
