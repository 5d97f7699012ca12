//! A gateway in front of a private MariaDB server: sessions whose bytes are relayed. The modules contain the tests, and this file
//! contains the server and the gateway that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod bulk;
mod client;
mod commands;
mod crowd;
mod cuts;
mod databases;
mod demo;
mod differential;
mod exactness;
mod facts;
mod generated;
mod idle;
mod lanes;
mod login;
mod metrics;
mod migrate;
mod neighbours;
mod returning;
mod rights;
mod sessions;
mod slow_commits;
mod tls;
mod watches;

use std::sync::OnceLock;

use hotrow_mariadb::{PASSWORD, PrivateMariaDb, USER};
use hotrow_testkit::{Gateway, mariadb};

use crate::client::Client;

/// The options of a gateway that packs all that it can, however few statements are under way.
const PACKING: [&str; 4] = ["--pack", "true", "--pack-from", "1"];

/// The server that all tests of this binary share. Its guard ends it.
fn server() -> &'static PrivateMariaDb {
    static SERVER: OnceLock<PrivateMariaDb> = OnceLock::new();
    SERVER.get_or_init(|| mariadb(&["--max-allowed-packet=64M"]))
}

fn url(server: &PrivateMariaDb) -> String {
    format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}/mysql", server.port())
}

fn gateway(options: &[&str]) -> Gateway {
    Gateway::in_front_of(&url(server()), options)
}

/// Installs what packing needs, as an administrator does.
fn install(server: &PrivateMariaDb) {
    hotrow_testkit::migrate(&url(server));
}

/// A client at this port, with all rights.
fn root(port: u16) -> Client {
    Client::login(port, USER, PASSWORD).unwrap()
}

/// A new database, and its name.
fn new_database(name: &str) -> &str {
    let mut direct = root(server().port());
    direct.ok(&format!("create or replace database {name}"));
    name
}
