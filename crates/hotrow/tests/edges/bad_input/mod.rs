//! Messages that no well-behaved client sends, and exhausted resources: the client concerned gets an error with the
//! reason, and others are not affected. The modules contain the tests, and this file contains the code that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod bounds;
mod clients;
mod full_server;
mod gone;
mod limits;
mod messages;
mod startup;

use hotrow_testkit::{Gateway, connect, new_schema, value};
use tokio_postgres::Client;

/// A gateway, a table with two rows, and a client whose statements must work in spite of all others.
struct Stage {
    gateway: Gateway,
    schema: String,
    direct: Client,
    bystander: Client,
}

impl Stage {
    async fn new(options: &[&str]) -> Self {
        let (schema, direct) = new_schema().await;
        let table =
            "create table t (id int primary key, n int, label text); insert into t values (1, 0), (2, 0)";
        direct.batch_execute(table).await.unwrap();
        // A busy server can take long to complete a login.
        let gateway = Gateway::start(&[&["--server-wait-ms", "30000"], options].concat());
        let bystander = connect(&gateway.config_in(&schema)).await;
        Self { gateway, schema, direct, bystander }
    }

    /// Asserts that the bystander, which is connected all the time, and a new client get correct answers.
    async fn others_are_unaffected(&self, after: &str) {
        let before: i64 = value(&self.direct, "select n from t where id = 1").await.parse().unwrap();
        let update = "update t set n = n + 1 where id = 1 returning n";
        assert_eq!(value(&self.bystander, update).await, (before + 1).to_string(), "after {after}");
        let new = connect(&self.gateway.config_in(&self.schema)).await;
        assert_eq!(value(&new, update).await, (before + 2).to_string(), "after {after}");
    }

    async fn raw(&self) -> hotrow_testkit::raw::Raw {
        let options = format!("-c search_path={}", self.schema);
        hotrow_testkit::raw::Raw::login(self.gateway.port(), &[("options", &options)]).await
    }
}
