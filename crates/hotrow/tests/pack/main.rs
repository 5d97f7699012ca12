//! The hotrow schema against its model: every answer, alone and among many concurrent clients, across faults, and with
//! faults planted in the SQL, which must be found. The modules contain the tests, and this file contains the code that
//! they share.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the lints' exception for tests stops at #[test]"
)]

mod background;
mod bad_input;
mod client;
mod concurrent;
mod distributed;
mod distributed_feeds;
mod faults;
mod feed_model;
mod feeds;
mod history;
mod moved;
mod planted;
mod queue_crowd;
mod queues;
mod same_as_model;
mod specs;
mod sql;
mod stage;
mod tools;
mod workload;

use std::sync::OnceLock;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::Line;
use hotrow_testkit::{migrate, server};

hotrow_testkit::shared_server!();

/// The port of the shared server, which has the hotrow schema.
fn installed() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| {
        migrate(&server().url());
        server().port()
    })
}

/// A private server with the hotrow schema, and a connection to it.
fn private(label: &'static str) -> (PrivateServer, Line) {
    let server = PrivateServer::builder().label(label).start().unwrap();
    migrate(&server.url());
    // The tests compare answers and do not simulate power loss, so commits need not wait for the disk.
    let line = Line::connect(server.port(), "public -c synchronous_commit=off")
        .unwrap()
        .expect("the server accepts the login");
    (server, line)
}
