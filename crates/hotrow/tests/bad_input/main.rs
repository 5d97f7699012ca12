//! What no well-behaved client sends, and what becomes of clients when something is used up: whoever is hurt is told
//! why, and the others don't notice. The tests are in the modules; here is only what they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod bounds;
mod clients;
mod limits;
mod messages;
mod start_up;

use hotrow_testkit::{Gateway, connect, new_schema, value};
use tokio_postgres::Client;

hotrow_testkit::shared_server!();

/// A gateway, a table with one row, and a client whose work must go on whatever others do.
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
        let gateway = Gateway::start(options);
        let bystander = connect(&gateway.config_in(&schema)).await;
        Self { gateway, schema, direct, bystander }
    }

    /// That the bystander, who has been there all the time, and somebody new get right answers.
    async fn others_go_on(&self, after: &str) {
        let before: i64 = value(&self.direct, "select n from t where id = 1").await.parse().unwrap();
        let update = "update t set n = n + 1 where id = 1 returning n";
        assert_eq!(value(&self.bystander, update).await, (before + 1).to_string(), "after {after}");
        let new = connect(&self.gateway.config_in(&self.schema)).await;
        assert_eq!(value(&new, update).await, (before + 2).to_string(), "after {after}");
    }

    async fn raw(&self) -> hotrow_testkit::raw::Raw {
        let options = format!("-c search_path={}", self.schema);
        hotrow_testkit::raw::Raw::log_in(self.gateway.port(), &[("options", &options)]).await
    }
}
