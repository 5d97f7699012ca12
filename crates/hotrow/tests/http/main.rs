//! The hotrow schema over HTTP: `hotrow serve --http` in front of a real server. The modules contain the tests, and this
//! file contains the code that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod api;
mod away;
mod bad;
mod client;
mod demo;
mod document;
mod live;
mod page;
mod queues;
mod times;
mod together;
mod tokens;
mod trust;

use std::sync::OnceLock;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, migrate, patient, server};

hotrow_testkit::shared_server!();

/// A private server.
async fn private(label: &'static str) -> PrivateServer {
    tokio::task::spawn_blocking(move || PrivateServer::builder().label(label).start().unwrap()).await.unwrap()
}

/// A gateway with its HTTP port.
struct Api {
    gateway: Gateway,
    port: u16,
}

impl Api {
    /// A gateway in front of the shared server, with the hotrow schema. Its lanes are patient unless the options say otherwise,
    /// because tests count merged and waiting calls.
    async fn start(options: &[&str]) -> Self {
        static MIGRATED: OnceLock<()> = OnceLock::new();
        let url = server().url();
        tokio::task::block_in_place(|| MIGRATED.get_or_init(|| migrate(&url)));
        Self::in_front_of(&url, &patient(options))
    }

    /// A gateway in front of any server.
    fn in_front_of(upstream: &str, options: &[&str]) -> Self {
        let options = [&["--http", "127.0.0.1:0"], options].concat();
        let gateway = Gateway::in_front_of(upstream, &options);
        Self { port: gateway.http_port(), gateway }
    }

    /// Sends a request that must succeed, and returns its answer.
    async fn ok(&self, method: &str, path: &str, body: &str) -> serde_json::Value {
        let reply = client::json(self.port, method, path, body).await;
        assert_eq!(reply.status, 200, "{method} {path} {body}: {reply:?}");
        assert_eq!(reply.header("content-type"), "application/json");
        reply.json()
    }
}
