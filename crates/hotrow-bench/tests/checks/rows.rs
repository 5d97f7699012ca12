//! The rows of a scenario on a server of their own, in which tests plant faults. It contains no tests.

use hotrow_postgres::PrivateServer;
use tokio_postgres::{Client, NoTls};

/// A scenario's rows, and the query that checks them.
pub struct Rows {
    pub client: Client,
    reading: &'static str,
    _server: PrivateServer,
}

impl Rows {
    /// Installs the hotrow schema and the scenario's tables, prepares run 7, and does some work.
    pub async fn new(set_up: &str, before_run: &str, work: &str, reading: &'static str) -> Self {
        let start = || PrivateServer::builder().label("bench-checks").start().unwrap();
        let server = tokio::task::spawn_blocking(start).await.unwrap();
        let (mut client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        hotrow_sql::migrate(&mut client, "hotrow_caller").await.unwrap();
        for sql in ["set hotrow_bench.run = 7; set hotrow_bench.rows = 10", set_up, before_run, work] {
            client.batch_execute(sql).await.unwrap();
        }
        Self { client, reading, _server: server }
    }

    /// The work done and the number of broken rows.
    pub async fn read(&self) -> Result<(i64, i64), tokio_postgres::Error> {
        let row = self.client.query_one(self.reading, &[]).await?;
        Ok((row.get("done"), row.get("broken")))
    }

    /// Plants one fault after another, each on correct rows. A check that fails to run has detected its fault.
    pub async fn reports(&self, faults: &[&str]) {
        for fault in faults {
            self.client.batch_execute("begin").await.unwrap();
            let changed = self.client.execute(*fault, &[]).await.unwrap();
            assert!(changed > 0, "the fault changes no row: {fault}");
            let read = self.read().await;
            assert!(read.is_err() || read.unwrap().1 > 0, "overlooked: {fault}");
            self.client.batch_execute("rollback").await.unwrap();
        }
    }
}
