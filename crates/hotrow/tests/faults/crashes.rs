//! Servers, backends and gateways that crash or stop under load.

use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::Line;
use hotrow_testkit::{Gateway, server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::checker::check;
use crate::load::{Fate, Load};
use crate::{CLIENTS, CRASH, prepare, summary};

#[test]
fn a_server_that_crashes_under_load_loses_nothing_that_was_acknowledged() {
    let server = PrivateServer::builder().label("crash").start().unwrap();
    prepare(server.port(), "crash");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "crash");
    for _ in 0..3 {
        load.flows(500);
        server.kill_dash_nine().unwrap();
        server.restart().unwrap();
    }
    load.flows(500);
    let book = load.stop();
    summary("server killed", &book);
    check(server.port(), "crash", &book);
    assert!(gateway.metric("packed_units_total") > 500);
    assert_eq!(book.unexpected(&CRASH), []);
}

/// The server restarts its children and keeps its start time, and gives out ids of lost transactions again.
#[test]
fn a_backend_that_crashes_under_load_loses_nothing_that_was_acknowledged() {
    let server = PrivateServer::builder().label("backend").start().unwrap();
    prepare(server.port(), "crash");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "crash");
    for _ in 0..3 {
        load.flows(500);
        let lanes = "select pid from pg_stat_activity where application_name like 'hotrow lane%'";
        let lanes = server.query(lanes).unwrap();
        let pid = lanes.first().and_then(|row| row[0].as_ref()?.parse().ok()).expect("a lane is connected");
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
    load.flows(500);
    let book = load.stop();
    summary("backend killed", &book);
    check(server.port(), "crash", &book);
    assert!(gateway.metric("lane_connections_lost_total") >= 3);
    assert_eq!(book.unexpected(&CRASH), []);
}

#[test]
fn a_gateway_that_is_killed_under_load_loses_nothing_that_was_acknowledged() {
    prepare(server().port(), "killed");
    let mut gateway = Gateway::start(&[]);
    let load = Load::start(CLIENTS, gateway.port(), "killed");
    for _ in 0..4 {
        load.flows(500);
        let next = Gateway::start(&[]);
        load.redirect(next.port());
        std::mem::replace(&mut gateway, next).kill_dash_nine();
    }
    load.flows(500);
    let book = load.stop();
    summary("gateway killed", &book);
    check(server().port(), "killed", &book);
    assert!(book.count(Fate::Unknown) > 0, "the kills hit nobody");
    assert_eq!(book.unexpected(&[]), []);
}

#[test]
fn a_gateway_that_is_told_to_stop_leaves_nothing_unknown() {
    prepare(server().port(), "stopped");
    let mut gateway = Gateway::start(&[]);
    let load = Load::start(CLIENTS, gateway.port(), "stopped");
    for _ in 0..4 {
        load.flows(500);
        let mut last = std::mem::replace(&mut gateway, Gateway::start(&[]));
        load.redirect(gateway.port());
        last.sigterm();
        assert!(last.wait().success(), "it says that it stopped in order");
        assert!(!last.log().contains("cut off"), "nobody was cut off:\n{}", last.log());
    }
    load.flows(500);
    let book = load.stop();
    summary("gateway stopped", &book);
    check(server().port(), "stopped", &book);
    let unknown: Vec<_> = book.entries.iter().filter(|entry| entry.fate == Fate::Unknown).collect();
    assert!(unknown.is_empty(), "{} units are unknown: {unknown:?}", unknown.len());
    assert_eq!(book.unexpected(&["FATAL 57P01", "at log-in: FATAL 57P01", "at prepare: FATAL 57P01"]), []);
}

#[test]
fn lanes_whose_backends_are_terminated_in_a_loop_lose_nothing() {
    // A server of its own: here all lanes are hit, whoever's they are.
    let server = PrivateServer::builder().label("terminated").start().unwrap();
    let mut direct = prepare(server.port(), "terminated");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "terminated");
    let mut terminated = 0;
    for _ in 0..30 {
        load.flows(100);
        let answer = direct.query(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'hotrow lane%'",
        );
        assert_eq!(answer.error(), None);
        terminated += answer.rows().len();
    }
    load.flows(500);
    let lost = gateway.metric("lane_connections_lost_total");
    let book = load.stop();
    summary("lanes terminated", &book);
    check(server.port(), "terminated", &book);
    assert!(terminated >= 30 && lost >= 30, "{terminated} terminated, {lost} noticed");
    assert_eq!(book.unexpected(&["ERROR 08007"]), []);
}

#[test]
fn a_session_whose_server_hangs_up_in_mid_sentence_holds_up_nobody() {
    let mut direct = prepare(server().port(), "hung_up");
    let gateway = Gateway::start(&[]);
    let mut neighbour = Line::connect(gateway.port(), "hung_up").unwrap().unwrap();
    for _ in 0..20 {
        let mut line = Line::connect(gateway.port(), "hung_up").unwrap().unwrap();
        assert_eq!(line.query("begin").error(), None);
        let pid = line.query("select pg_backend_pid()").rows()[0][0].clone().unwrap();
        // While the gateway is stopped both ends act: it finds the client's words and the server's end together.
        gateway.signal(Signal::SIGSTOP);
        direct.query(&format!("select pg_terminate_backend({pid}, 30000)"));
        for _ in 0..10 {
            line.put_query("update inv set sold = 7");
            line.send().unwrap();
        }
        gateway.signal(Signal::SIGCONT);
        assert_eq!(neighbour.query("select sold from inv").rows(), [[Some("0".to_owned())]]);
        let answer = line.answer();
        assert!(!answer.whole, "its server is gone: {:?}", answer.frames());
        assert!(
            matches!(answer.error(), Some(report) if report.severity == "FATAL"),
            "{:?}",
            answer.frames()
        );
    }
}

#[test]
fn a_unit_that_ran_alone_and_lost_its_server_is_answered_in_its_place() {
    let mut outsider = prepare(server().port(), "alone");
    let gateway = Gateway::start(&[]);
    let mut line = Line::connect(gateway.port(), "alone").unwrap().unwrap();
    assert_eq!(outsider.query("begin; update inv set sold = sold").error(), None);
    // The sale waits for the outsider's lock on a connection of its own; an order is sent behind it.
    let sell = "update inv set sold = sold + 1 where id = 1 returning sold as alone";
    line.put_query(sell);
    line.put_query("insert into ledger (id, client, amount) values (1, 1, 1)");
    line.send().unwrap();
    let mut other = Line::connect(server().port(), "alone").unwrap().unwrap();
    let waiting = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%returning sold as alone'
            and application_name not like 'hotrow lane%'";
    let since = Instant::now();
    while other.query(waiting).rows()[0][0].as_deref() != Some("1") {
        assert!(since.elapsed() < Duration::from_secs(30), "no sale waits for the lock");
    }
    let [sale, order] = [line.answer(), line.answer()];
    let report = sale.error().map(|report| (report.severity, report.code));
    assert_eq!(report, Some(("ERROR".to_owned(), "08007".to_owned())), "{:?}", sale.frames());
    assert_eq!(sale.frames().len(), 2, "an error and that the session goes on: {:?}", sale.frames());
    assert_eq!(order.command().as_deref(), Some("INSERT 0 1"), "{:?}", order.frames());
    assert_eq!(outsider.query("rollback").error(), None);
    assert_eq!(line.query(sell).rows(), [[Some("1".to_owned())]]);
}

/// Something that the server sends a row for which is more than anybody buffers for a client that does not read.
const LARGE: &str = "repeat('x', 30000000) as cut_off";
const ITS_BACKEND: &str =
    "query like '%as cut_off' and application_name not like 'hotrow%lane%' and pid <> pg_backend_pid()";

fn until_it_waits(direct: &mut Line, event: &str) {
    let sql = format!("select count(*) from pg_stat_activity where {ITS_BACKEND} and wait_event = '{event}'");
    let since = Instant::now();
    while direct.query(&sql).rows()[0][0].as_deref() != Some("1") {
        assert!(since.elapsed() < Duration::from_secs(30), "it does not wait for {event}");
    }
}

/// The server ends the connection in the middle of the row; what the client gets must end there, too.
fn cut_off(line: Line, direct: &mut Line) {
    until_it_waits(direct, "ClientWrite");
    let end =
        format!("select count(pg_terminate_backend(pid, 30000)) from pg_stat_activity where {ITS_BACKEND}");
    assert_eq!(direct.query(&end).rows()[0][0].as_deref(), Some("1"));
    ends_with_the_row(line);
}

fn ends_with_the_row(mut line: Line) {
    let got = line.until_end();
    let row = got.iter().position(|byte| *byte == b'x').expect("a part of the row");
    let last = String::from_utf8_lossy(&got[got.len() - 64..]);
    assert!(got[row..].iter().all(|byte| *byte == b'x'), "something follows the row: {last}");
    assert!(got.len() < 30_000_000, "it came whole");
}

#[test]
fn nothing_follows_a_row_that_was_cut_off() {
    let mut outsider = prepare(server().port(), "cut_off");
    let gateway = Gateway::start(&[]);
    let mut direct = Line::connect(server().port(), "cut_off").unwrap().unwrap();

    let mut line = Line::connect(gateway.port(), "cut_off").unwrap().unwrap();
    assert_eq!(line.query("begin").error(), None);
    line.put_query(&format!("select {LARGE}"));
    line.send().unwrap();
    cut_off(line, &mut direct);

    // The client says what nobody understands in the middle of the row.
    let mut line = Line::connect(gateway.port(), "cut_off").unwrap().unwrap();
    assert_eq!(line.query("begin").error(), None);
    line.put_query(&format!("select {LARGE}"));
    line.send().unwrap();
    until_it_waits(&mut direct, "ClientWrite");
    line.out.extend_from_slice(b"~~~~~~~~");
    line.send().unwrap();
    ends_with_the_row(line);

    // A unit that runs alone, since somebody has locked its row, with another one behind it.
    let mut line = Line::connect(gateway.port(), "cut_off").unwrap().unwrap();
    assert_eq!(outsider.query("begin; update inv set sold = sold").error(), None);
    line.put_query(&format!("update inv set sold = sold + 1 where id = 1 returning {LARGE}"));
    line.put_query("insert into ledger (id, client, amount) values (1, 1, 1)");
    line.send().unwrap();
    until_it_waits(&mut direct, "transactionid");
    assert_eq!(outsider.query("rollback").error(), None);
    cut_off(line, &mut direct);
}
