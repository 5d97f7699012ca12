//! The schema pack against its model: every answer, alone and among many clients at once, over faults, and with faults
//! planted in the SQL, which must be found. The tests are in the modules; here is only what they share.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the lints' exception for tests stops at #[test]"
)]

mod bad_input;
mod client;
mod concurrent;
mod faults;
mod feed_model;
mod feeds;
mod history;
#[path = "../support/line.rs"]
#[allow(dead_code, reason = "shared by files that each use a part")]
mod line;
mod planted;
#[path = "../support/proxy.rs"]
#[allow(dead_code, reason = "shared by files that each use a part")]
mod proxy;
mod queue_crowd;
mod queues;
mod same_as_model;
mod specs;
mod sql;
mod stage;
#[path = "../support/mod.rs"]
mod support;
mod upkeep;
mod workload;

use std::sync::OnceLock;

use hotrow_postgres::PrivateServer;
use line::Line;
use support::server;
use support::server::migrate;

/// The port of the shared server, which has the pack.
fn installed() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| {
        migrate(&server().url());
        server().port()
    })
}

/// A server of its own with the pack, and a connection to it.
fn private(label: &'static str) -> (PrivateServer, Line) {
    let server = PrivateServer::builder().label(label).start().unwrap();
    migrate(&server.url());
    // What is compared on it is answers: no test of this kind loses power.
    let line = Line::connect(server.port(), "public -c synchronous_commit=off")
        .unwrap()
        .expect("the server takes us");
    (server, line)
}
