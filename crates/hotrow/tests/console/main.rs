//! The work of an operator while the gateway runs: reloading the settings, and settings for databases and users. The
//! modules contain the tests, and this file contains the code that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod access;
mod check;
mod command_line;
mod health;
mod keys;
mod killing;
mod logins;
mod looks;
mod metrics;
mod outage;
mod pausing;
mod pgbouncer;
mod pools;
mod reload;
mod remedies;
mod roles;
mod server_settings;
mod shadow;
mod traces;
mod words;

use std::path::PathBuf;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, config, connect, new_schema, patient, until, value};
use nix::sys::signal::Signal;
use tokio_postgres::Client;

hotrow_testkit::shared_server!();

/// A table with two rows and a gateway whose settings are in a file. Its lanes are patient unless the settings or options say
/// otherwise, because tests count packed units.
struct Stage {
    gateway: Gateway,
    schema: String,
    direct: Client,
    folder: tempfile::TempDir,
}

impl Stage {
    async fn new(settings: &str, options: &[&str]) -> Self {
        Self::in_front_of(&hotrow_testkit::server().url(), settings, options).await
    }

    async fn in_front_of(url: &str, settings: &str, options: &[&str]) -> Self {
        let (schema, direct) = new_schema().await;
        Self::with(url, direct, schema, settings, options).await
    }

    /// With its own server, for tests that count all server processes or stop them.
    async fn alone(settings: &str) -> (Self, PrivateServer) {
        let server = PrivateServer::builder().label("console").start().unwrap();
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
        let direct = connect(&config(server.port())).await;
        let stage = Self::with(&url, direct, "public".to_owned(), settings, &[]).await;
        (stage, server)
    }

    async fn with(url: &str, direct: Client, schema: String, settings: &str, options: &[&str]) -> Self {
        direct
            .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)")
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hotrow.toml");
        std::fs::write(&file, settings).unwrap();
        let options = [&["--config", file.to_str().unwrap()], options].concat();
        let options = if settings.contains("lane_lock_timeout_ms") { options } else { patient(&options) };
        Self { gateway: Gateway::in_front_of(url, &options), schema, direct, folder }
    }

    /// An operator's connection to the console.
    async fn console(&self) -> Client {
        connect(self.gateway.config().dbname("hotrow")).await
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("hotrow.toml")
    }

    async fn client(&self) -> Client {
        connect(&self.gateway.config_in(&self.schema)).await
    }

    /// Replaces the settings file, and waits until the log reports that the gateway has read it. Returns the new part
    /// of the log.
    async fn reload(&self, settings: &str) -> String {
        let seen = self.gateway.log().len();
        std::fs::write(self.file(), settings).unwrap();
        self.gateway.signal(Signal::SIGHUP);
        let log = || self.gateway.log().split_off(seen);
        let is_over = || ["reloaded: the settings", "not reloaded"].iter().any(|end| log().contains(end));
        until("the settings are read again", || async { is_over() }).await;
        log()
    }

    /// Whether an update of this client is packed. No other client may run statements.
    async fn packs(&self, client: &Client) -> bool {
        let before = self.gateway.metric("packed_units_total");
        let expected: i32 = value(&self.direct, "select n + 1 from t where id = 1").await.parse().unwrap();
        let update = "update t set n = n + 1 where id = 1 returning n";
        assert_eq!(value(client, update).await, expected.to_string());
        self.gateway.metric("packed_units_total") > before
    }
}
