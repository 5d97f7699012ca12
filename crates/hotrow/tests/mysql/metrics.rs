//! The metrics of a gateway in front of MariaDB have the names of PostgreSQL's, and its health is beside them.

use hotrow_mysql_wire::native;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::client::{Client, LogIn, UNUSUAL};
use crate::lanes::{SELL, shop};
use crate::{PACKING, gateway, root, url};

fn reason(gateway: &Gateway, reason: &str) -> u64 {
    gateway.metric(&format!("not_packed_total{{reason=\"{reason}\"}}"))
}

fn units(gateway: &Gateway, way: &str) -> u64 {
    gateway.metric(&format!("client_units_total{{database=\"\",user=\"root\",way=\"{way}\"}}"))
}

#[test]
fn statements_are_counted_by_their_way_and_reason() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut client = root(gateway.port());
    for _ in 0..3 {
        client.ok(SELL);
    }
    assert_eq!((gateway.metric("packed_units_total"), gateway.metric("batches_total")), (3, 3));
    assert_eq!((gateway.metric("batch_units_count"), gateway.metric("batch_units_sum")), (3, 3));
    client.value("select count(*) from shop.item");
    for sql in ["begin", SELL, "commit"] {
        client.ok(sql);
    }
    assert_eq!((reason(&gateway, "not_packable"), reason(&gateway, "in_own_transaction")), (3, 1));
    client.value("select last_insert_id()");
    client.ok(SELL);
    assert_eq!(
        reason(&gateway, "session_pinned"),
        2,
        "with the statement after which the session packs no more"
    );

    assert_eq!((units(&gateway, "packed"), units(&gateway, "passed_through")), (3, 6));
    assert_eq!((gateway.metric("packed_units_total"), gateway.metric("passed_through_units_total")), (3, 6));
    let connected = ["clients", "held_connections", "lanes_connected"];
    assert_eq!(connected.map(|name| gateway.metric(name)), [1, 1, 1]);
    drop(client);
    until("the client is gone", || connected.map(|name| gateway.metric(name)) == [0, 0, 1]);
}

#[test]
fn units_that_leave_their_lane_are_counted_by_reason() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut client = root(gateway.port());
    client.try_ok("update shop.item set stock = 'x' where id = 2").unwrap_err();
    let failed = ["failed_units_total", "batches_rolled_back_total", "blocked_units_total"];
    assert_eq!(failed.map(|name| gateway.metric(name)), [1, 0, 0], "an error undoes its statement only");
    client.ok("set sql_mode = ''");
    client.ok("update shop.item set stock = 99999999999 where id = 2");
    assert_eq!(failed.map(|name| gateway.metric(name)), [2, 1, 0], "a warning rolls its batch back");
    assert_eq!(reason(&gateway, "failed_in_lane"), 2);

    let mut outsider = root(server.port());
    outsider.ok("begin");
    outsider.ok("update shop.item set sold = sold where id = 1");
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| client.ok(SELL));
        until("the unit has left its lane", || gateway.metric("blocked_units_total") == 1);
        outsider.ok("commit");
        assert_eq!(blocked.join().unwrap().affected, 1);
    });
    assert_eq!((reason(&gateway, "left_lane_for_lock"), units(&gateway, "passed_through")), (1, 4));
    assert_eq!(gateway.metric("not_packed_total{reason=\"given_back_by_lane\"}"), 0);
}

#[test]
fn refused_clients_are_counted_by_reason() {
    let gateway = gateway(&["--clients-max", "1"]);
    let client = root(gateway.port());
    let error = Client::connect(gateway.port()).err().expect("one client is connected");
    assert_eq!(error.code, 1040);
    assert_eq!(gateway.metric("refused_by_reason_total{reason=\"too_many_clients\"}"), 1);
    drop(client);
    until("the client is gone", || gateway.metric("clients") == 0);
    let wrong = || {
        let login = LogIn { user: "root", password: "wrong", plugin: native::PLUGIN, without: UNUSUAL };
        Client::connect(gateway.port()).and_then(|client| client.respond(&login)).err()
    };
    until("the server refuses the password", || wrong().is_some_and(|error| error.code == 1045));
    assert_eq!(gateway.metric("logins_failed_total"), 1);
}

#[test]
fn without_packing_each_statement_counts_as_switched_off() {
    let gateway = gateway(&[]);
    let mut client = root(gateway.port());
    client.ok("do 1");
    let id = client.prepare("do ?");
    client.execute(id, &[1], true).unwrap();
    assert_eq!((reason(&gateway, "switched_off"), gateway.metric("passed_through_units_total")), (2, 2));
}

#[test]
fn the_health_is_that_of_the_server() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &[]);
    let status = |path: &str| gateway.beside_metrics(path).lines().next().unwrap().to_owned();
    let up = format!("server_up{{server=\"127.0.0.1:{}\"}}", server.port());
    assert!(status("/health/ready").contains(" 200 "));
    assert_eq!(gateway.metric(&up), 1);

    server.kill_dash_nine();
    let answer = gateway.beside_metrics("/health/ready");
    assert!(answer.contains(" 503 ") && answer.contains("\"detail\":\"the gateway's own user"), "{answer}");
    assert_eq!(gateway.metric(&up), 0);
    assert!(status("/health/live").contains(" 200 "), "the gateway itself lives");
    assert_eq!(Client::connect(gateway.port()).err().expect("the server is away").code, 1429);
    assert_eq!(gateway.metric("refused_by_reason_total{reason=\"no_server\"}"), 1);

    server.restart().unwrap();
    assert!(status("/health/ready").contains(" 200 "));
    assert_eq!(gateway.metric(&up), 1);
}
