//! Networks and processes that are slow, stand still, or hang up on one side only.

use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::Line;
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};
use hotrow_testkit::{Gateway, server};
use nix::sys::signal::Signal;

use crate::checker::check;
use crate::load::{Fate, Load, SELL};
use crate::{CLIENTS, prepare, summary};

/// How long something stands still: longer than any pause of an ordinary machine, shorter than what the gateway waits.
const STILL: Duration = Duration::from_secs(2);

#[test]
fn a_slow_network_to_the_server_costs_time_and_nothing_else() {
    prepare(server().port(), "slow");
    let proxy = Proxy::start(server().port());
    let gateway = Gateway::in_front_of(&proxy.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "slow");
    load.flows(200);
    proxy.delay(Duration::from_millis(30));
    load.flows(300);
    proxy.delay(Duration::ZERO);
    load.flows(200);
    let book = load.stop();
    summary("slow network", &book);
    check(server().port(), "slow", &book);
    assert_eq!(book.unexpected(&[]), []);
    assert_eq!((book.count(Fate::Unknown), gateway.metric("lane_connections_lost_total")), (0, 0));
}

#[test]
fn a_connection_that_is_half_closed_is_lost_and_nothing_with_it() {
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
    let book = load.stop();
    summary("half-closed", &book);
    check(server().port(), "halved", &book);
    assert_eq!(book.unexpected(&["ERROR 08007"]), []);
    assert!(proxy.cuts() >= 12, "only {} half-closed", proxy.cuts());
    let lost = gateway.metric("lane_connections_lost_total");
    let said = gateway.log().matches("a lane has lost its connection to the server").count() as u64;
    assert!(lost >= 12 && said == lost, "{lost} lost, {said} in the log");
}

#[test]
fn a_client_that_says_no_more_gets_what_it_has_asked_for() {
    prepare(server().port(), "done");
    let gateway = Gateway::start(&[]);
    let stream = TcpStream::connect(("127.0.0.1", gateway.port())).unwrap();
    let mut line = Line::log_in(stream.try_clone().unwrap(), "done").unwrap().unwrap();
    for _ in 0..20 {
        line.put_query(SELL);
    }
    line.put_query("select pg_sleep(0.1)");
    line.send().unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    for sold in 1..=20 {
        assert_eq!(line.answer().rows(), [[Some(sold.to_string())]]);
    }
    assert!(line.answer().whole, "the one that is passed through too");
    assert!(!line.answer().whole, "then the gateway hangs up");
}

#[test]
fn a_gateway_that_stands_still_loses_and_doubles_nothing() {
    prepare(server().port(), "still");
    let gateway = Gateway::start(&[]);
    let load = Load::start(CLIENTS, gateway.port(), "still");
    for _ in 0..2 {
        load.flows(500);
        gateway.signal(Signal::SIGSTOP);
        std::thread::sleep(STILL); // what is tested is time
        gateway.signal(Signal::SIGCONT);
    }
    load.flows(500);
    let book = load.stop();
    summary("gateway stood still", &book);
    check(server().port(), "still", &book);
    assert_eq!((book.count(Fate::Unknown), book.unexpected(&[])), (0, vec![]), "clients see a pause");
}

#[test]
fn a_server_that_stands_still_loses_and_doubles_nothing() {
    let server = PrivateServer::builder().label("still").start().unwrap();
    prepare(server.port(), "still");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "still");
    for _ in 0..2 {
        load.flows(500);
        server.freeze().unwrap();
        std::thread::sleep(STILL); // what is tested is time
        server.thaw().unwrap();
    }
    load.flows(500);
    let book = load.stop();
    summary("server stood still", &book);
    check(server.port(), "still", &book);
    assert_eq!((book.count(Fate::Unknown), book.unexpected(&[])), (0, vec![]), "clients see a pause");
}

#[test]
fn a_server_that_stands_still_at_a_log_in_is_named() {
    let server = PrivateServer::builder().label("dumb").start().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &["--server-wait-ms", "100"]);
    server.freeze().unwrap();
    let since = Instant::now();
    let Err(refusal) = Line::connect(gateway.port(), "public").unwrap() else { panic!("it can't be let in") };
    assert!(since.elapsed() < Duration::from_secs(20));
    let report = refusal.error().unwrap();
    assert_eq!(report.code, "57P03");
    let words = format!("127.0.0.1:{} did not answer within 5000 ms", server.port());
    assert!(report.message.contains(&words), "{}", report.message);
    server.thaw().unwrap();
    assert!(Line::connect(gateway.port(), "public").unwrap().is_ok());
}
