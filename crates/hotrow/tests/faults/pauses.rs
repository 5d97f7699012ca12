//! Networks and processes that are slow, pause, or close one direction of a connection.

use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::Line;
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};
use hotrow_testkit::{Gateway, server};
use nix::sys::signal::Signal;

use crate::checker::check;
use crate::load::{Load, Outcome, SELL};
use crate::{CLIENTS, prepare, summary};

/// How long a process pauses: longer than any pause of an ordinary machine, shorter than the gateway's timeouts.
const PAUSE: Duration = Duration::from_secs(2);

#[test]
fn a_slow_network_to_the_server_only_costs_time() {
    prepare(server().port(), "slow");
    let proxy = Proxy::start(server().port());
    let gateway = Gateway::in_front_of(&proxy.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "slow");
    load.flows(200);
    proxy.delay(Duration::from_millis(30));
    load.flows(300);
    proxy.delay(Duration::ZERO);
    load.flows(200);
    let records = load.stop();
    summary("slow network", &records);
    check(server().port(), "slow", &records);
    assert_eq!(records.unexpected(&[]), []);
    assert_eq!((records.count(Outcome::Unknown), gateway.metric("lane_connections_lost_total")), (0, 0));
}

#[test]
#[ignore = "long: make test-all"]
fn a_half_closed_connection_is_lost_without_losing_a_unit() {
    prepare(server().port(), "halved");
    let proxy = Proxy::start(server().port());
    let gateway = Gateway::in_front_of(&proxy.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "halved");
    let at = [After::Bytes(1), After::Bytes(300), After::Bytes(2_000), After::TransactionId];
    for (round, after) in at.into_iter().cycle().take(12).enumerate() {
        load.flows(100);
        let way =
            if round % 2 == 0 && after != After::TransactionId { Way::ToServer } else { Way::ToGateway };
        proxy.arm(Fault { way, after, how: How::HalfClose });
    }
    load.flows(100);
    let records = load.stop();
    summary("half-closed", &records);
    check(server().port(), "halved", &records);
    assert_eq!(records.unexpected(&["ERROR 08007"]), []);
    assert!(proxy.cuts() >= 12, "only {} half-closed", proxy.cuts());
    let lost = gateway.metric("lane_connections_lost_total");
    let logged = gateway.log().matches("a lane has lost its connection to the server").count() as u64;
    assert!(lost >= 12 && logged == lost, "{lost} lost, {logged} in the log");
}

#[test]
fn a_client_that_shut_down_its_sending_side_gets_its_answers() {
    prepare(server().port(), "done");
    let gateway = Gateway::start(&[]);
    let stream = TcpStream::connect(("127.0.0.1", gateway.port())).unwrap();
    let mut line = Line::login(stream.try_clone().unwrap(), "done").unwrap().unwrap();
    for _ in 0..20 {
        line.put_query(SELL);
    }
    line.put_query("select pg_sleep(0.1)");
    line.send().unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    for sold in 1..=20 {
        assert_eq!(line.answer().rows(), [[Some(sold.to_string())]]);
    }
    assert!(line.answer().whole, "the passed-through statement is answered too");
    assert!(!line.answer().whole, "then the gateway closes the connection");
}

#[test]
#[ignore = "long: make test-all"]
fn a_paused_gateway_loses_no_unit_and_applies_none_twice() {
    prepare(server().port(), "still");
    let gateway = Gateway::start(&[]);
    let load = Load::start(CLIENTS, gateway.port(), "still");
    for _ in 0..2 {
        load.flows(500);
        gateway.signal(Signal::SIGSTOP);
        std::thread::sleep(PAUSE); // the test is about time
        gateway.signal(Signal::SIGCONT);
    }
    load.flows(500);
    let records = load.stop();
    summary("gateway paused", &records);
    check(server().port(), "still", &records);
    assert_eq!(
        (records.count(Outcome::Unknown), records.unexpected(&[])),
        (0, vec![]),
        "clients see a pause"
    );
}

#[test]
#[ignore = "long: make test-all"]
fn a_paused_server_loses_no_unit_and_applies_none_twice() {
    let server = PrivateServer::builder().label("still").start().unwrap();
    prepare(server.port(), "still");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "still");
    for _ in 0..2 {
        load.flows(500);
        server.freeze().unwrap();
        std::thread::sleep(PAUSE); // the test is about time
        server.thaw().unwrap();
    }
    load.flows(500);
    let records = load.stop();
    summary("server paused", &records);
    check(server.port(), "still", &records);
    assert_eq!(
        (records.count(Outcome::Unknown), records.unexpected(&[])),
        (0, vec![]),
        "clients see a pause"
    );
}

#[test]
#[ignore = "long: make test-all"]
fn an_error_at_login_names_a_paused_server() {
    let server = PrivateServer::builder().label("dumb").start().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &["--server-wait-ms", "100"]);
    server.freeze().unwrap();
    let since = Instant::now();
    let Err(refusal) = Line::connect(gateway.port(), "public").unwrap() else {
        panic!("the login cannot succeed")
    };
    assert!(since.elapsed() < Duration::from_secs(20));
    let report = refusal.error().unwrap();
    assert_eq!(report.code, "57P03");
    let expected = format!("127.0.0.1:{} did not answer within 5000 ms", server.port());
    assert!(report.message.contains(&expected), "{}", report.message);
    server.thaw().unwrap();
    assert!(Line::connect(gateway.port(), "public").unwrap().is_ok());
}
