//! A session's own connection, whose statements run in a lane, stays usable, and costs the server nothing durable.

use std::thread;
use std::time::{Duration, Instant};

use hotrow_mysql_wire::command::Command;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::lanes::{SELL, counter, shop};
use crate::{PACKING, root, url};

/// The server closes a connection without commands after `wait_timeout`, and statements in a lane are none on it.
#[test]
#[ignore = "long: make test-all"]
fn a_session_whose_statements_are_packed_is_not_idle() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut client = root(gateway.port());
    // Long enough for a machine that stops for a moment.
    client.ok("set session wait_timeout = 6");
    let began = Instant::now();
    let mut packed = 0;
    // Longer than the timeout. There is no other sign of a connection that is not closed.
    while began.elapsed() < Duration::from_secs(9) {
        assert_eq!(client.ok(SELL).affected, 1);
        packed += 1;
        thread::sleep(Duration::from_millis(50)); // the pace of a client that is not idle
    }
    assert!(gateway.metric("packed_units_total") >= packed);

    // A statement that waits in its lane is not idle, either.
    let mut outsider = root(server.port());
    outsider.ok("begin");
    outsider.ok("update shop.item set sold = sold where id = 1");
    let mut neighbour = root(gateway.port());
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(neighbour.ok(SELL).affected, 1));
        until("the neighbour waits for the row", || gateway.metric("blocked_units_total") == 1);
        let waiting = scope.spawn(|| client.ok(SELL).affected);
        until("the statement waits behind it", || gateway.metric("parked_units") == 1);
        thread::sleep(Duration::from_secs(9)); // longer than the timeout
        outsider.ok("commit");
        assert_eq!(waiting.join().unwrap(), 1);
    });
}

#[test]
fn what_follows_a_packed_statement_writes_nothing() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let (mut client, mut direct) = (root(gateway.port()), root(server.port()));
    client.ok(SELL);
    let before = counter(&mut direct, "Binlog_commits");
    client.command(Command::Ping, b"");
    client.ok(SELL);
    assert_eq!(client.value("select 1"), "1");
    client.ok(SELL);
    client.ok("begin");
    client.ok("rollback");
    assert_eq!(counter(&mut direct, "Binlog_commits"), before + 2, "the packed statements");
    assert_eq!(gateway.metric("packed_units_total"), 3);
}

/// During a backup, FLUSH TABLES WITH READ LOCK stops all writes. Health checks of pools go on.
#[test]
fn what_follows_a_packed_statement_does_not_wait_for_a_backup() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let (mut client, mut direct) = (root(gateway.port()), root(server.port()));
    for check in ["ping", "select 1", "begin", "show warnings"] {
        client = root(gateway.port());
        client.ok(SELL);
        direct.ok("flush tables with read lock");
        match check {
            "ping" => drop(client.command(Command::Ping, b"")),
            "begin" => drop(client.ok(check)),
            _ => drop(client.rows(check)),
        }
        direct.ok("unlock tables");
    }
    assert_eq!(client.value("select sold from shop.item where id = 1"), "4");
}
