//! Servers, backends and gateways that crash or stop under load.

use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::Line;
use hotrow_testkit::{Gateway, server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::checker::check;
use crate::load::{Load, Outcome};
use crate::{CLIENTS, CRASH, prepare, summary};

#[test]
fn a_server_crash_under_load_loses_no_acknowledged_unit() {
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
    let records = load.stop();
    summary("server killed", &records);
    check(server.port(), "crash", &records);
    assert!(gateway.metric("packed_units_total") > 500);
    assert_eq!(records.unexpected(&CRASH), []);
}

/// The server restarts its children, keeps its start time, and reuses the IDs of lost transactions.
#[test]
#[ignore = "long: make test-all"]
fn a_backend_crash_under_load_loses_no_acknowledged_unit() {
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
    let records = load.stop();
    summary("backend killed", &records);
    check(server.port(), "crash", &records);
    assert!(gateway.metric("lane_connections_lost_total") >= 3);
    assert_eq!(records.unexpected(&CRASH), []);
}

#[test]
fn a_gateway_killed_under_load_loses_no_acknowledged_unit() {
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
    let records = load.stop();
    summary("gateway killed", &records);
    check(server().port(), "killed", &records);
    assert!(records.count(Outcome::Unknown) > 0, "the kills interrupted no unit");
    assert_eq!(records.unexpected(&[]), []);
}

#[test]
#[ignore = "long: make test-all"]
fn a_gateway_that_is_told_to_stop_leaves_no_unit_unknown() {
    prepare(server().port(), "stopped");
    let mut gateway = Gateway::start(&[]);
    let load = Load::start(CLIENTS, gateway.port(), "stopped");
    for _ in 0..4 {
        load.flows(500);
        let mut last = std::mem::replace(&mut gateway, Gateway::start(&[]));
        load.redirect(gateway.port());
        last.sigterm();
        assert!(last.wait().success(), "the gateway reports a clean stop");
        assert!(!last.log().contains("cut off"), "a client was cut off:\n{}", last.log());
    }
    load.flows(500);
    let records = load.stop();
    summary("gateway stopped", &records);
    check(server().port(), "stopped", &records);
    let unknown: Vec<_> = records.entries.iter().filter(|entry| entry.outcome == Outcome::Unknown).collect();
    assert!(unknown.is_empty(), "{} units are unknown: {unknown:?}", unknown.len());
    assert_eq!(records.unexpected(&["FATAL 57P01", "at login: FATAL 57P01", "at prepare: FATAL 57P01"]), []);
}

#[test]
#[ignore = "long: make test-all"]
fn lanes_whose_backends_are_terminated_repeatedly_lose_no_unit() {
    // Its own server, because the test terminates the lanes of all gateways.
    let server = PrivateServer::builder().label("terminated").start().unwrap();
    let mut direct = prepare(server.port(), "terminated");
    let gateway = Gateway::in_front_of(&server.url(), &["--server-wait-ms", "60000"]);
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
    let records = load.stop();
    summary("lanes terminated", &records);
    check(server.port(), "terminated", &records);
    assert!(terminated >= 30 && lost >= 30, "{terminated} terminated, {lost} noticed");
    assert_eq!(records.unexpected(&["ERROR 08007"]), []);
}

#[test]
fn a_session_whose_server_closes_the_connection_within_a_message_holds_up_no_other() {
    let mut direct = prepare(server().port(), "hung_up");
    let gateway = Gateway::start(&[]);
    let mut neighbour = Line::connect(gateway.port(), "hung_up").unwrap().unwrap();
    for _ in 0..20 {
        let mut line = Line::connect(gateway.port(), "hung_up").unwrap().unwrap();
        assert_eq!(line.query("begin").error(), None);
        let pid = line.query("select pg_backend_pid()").rows()[0][0].clone().unwrap();
        // While the gateway is stopped, both ends act: it finds the client's messages and the server's close together.
        gateway.signal(Signal::SIGSTOP);
        direct.query(&format!("select pg_terminate_backend({pid}, 30000)"));
        for _ in 0..10 {
            line.put_query("update inv set sold = 7");
            line.send().unwrap();
        }
        gateway.signal(Signal::SIGCONT);
        assert_eq!(neighbour.query("select sold from inv").rows(), [[Some("0".to_owned())]]);
        let answer = line.answer();
        assert!(!answer.whole, "its server connection is closed: {:?}", answer.frames());
        assert!(
            matches!(answer.error(), Some(report) if report.severity == "FATAL"),
            "{:?}",
            answer.frames()
        );
    }
}

#[test]
fn a_unit_that_ran_alone_and_lost_its_connection_is_answered_in_order() {
    let mut outsider = prepare(server().port(), "alone");
    let gateway = Gateway::start(&[]);
    let mut line = Line::connect(gateway.port(), "alone").unwrap().unwrap();
    assert_eq!(outsider.query("begin; update inv set sold = sold").error(), None);
    // The sale waits for the outsider's lock on its session's own connection. The client sends an order after the sale.
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
    assert_eq!(sale.frames().len(), 2, "an error and a ReadyForQuery: {:?}", sale.frames());
    assert_eq!(order.command().as_deref(), Some("INSERT 0 1"), "{:?}", order.frames());
    assert_eq!(outsider.query("rollback").error(), None);
    assert_eq!(line.query(sell).rows(), [[Some("1".to_owned())]]);
}

/// A column of a row that is larger than any buffer for a client that does not read.
const LARGE: &str = "repeat('x', 30000000) as cut_off";
const CUT_OFF_BACKEND: &str =
    "query like '%as cut_off' and application_name not like 'hotrow%lane%' and pid <> pg_backend_pid()";

/// A client that has asked for the row in a transaction.
fn reads_a_large_row(gateway: &Gateway) -> Line {
    let mut line = Line::connect(gateway.port(), "cut_off").unwrap().unwrap();
    assert_eq!(line.query("begin").error(), None);
    line.put_query(&format!("select {LARGE}"));
    line.send().unwrap();
    line
}

/// Waits until the backend has waited for a while: a backend whose gateway still fills its buffers waits, too, but only briefly.
fn until_the_backend_waits(direct: &mut Line, event: &str) {
    let sql =
        format!("select count(*) from pg_stat_activity where {CUT_OFF_BACKEND} and wait_event = '{event}'");
    let since = Instant::now();
    let mut waiting = 0;
    while waiting < 20 {
        waiting = if direct.query(&sql).rows()[0][0].as_deref() == Some("1") { waiting + 1 } else { 0 };
        assert!(since.elapsed() < Duration::from_secs(30), "the backend does not wait for {event}");
        std::thread::sleep(Duration::from_millis(10)); // 20 looks in a row have to find it waiting
    }
}

/// The server closes the connection in the middle of the row. The bytes that the client gets must end there, too.
fn cut_off(line: Line, direct: &mut Line) {
    // The backend of an earlier session may still be ending.
    let end = format!(
        "select count(pg_terminate_backend(pid, 30000)) from pg_stat_activity
            where {CUT_OFF_BACKEND} and wait_event = 'ClientWrite'"
    );
    until_the_backend_waits(direct, "ClientWrite");
    let since = Instant::now();
    while direct.query(&end).rows()[0][0].as_deref() != Some("1") {
        assert!(since.elapsed() < Duration::from_secs(30), "the backend does not wait for its client");
    }
    ends_with_the_row(line);
}

fn ends_with_the_row(mut line: Line) {
    let got = line.until_end();
    let row = got.iter().position(|byte| *byte == b'x').expect("a part of the row");
    let last = String::from_utf8_lossy(&got[got.len() - 64..]);
    assert!(got[row..].iter().all(|byte| *byte == b'x'), "something follows the row: {last}");
    assert!(got.len() < 30_000_000, "the row is complete");
}

#[test]
#[ignore = "long: make test-all"]
fn nothing_follows_a_row_that_was_cut_off() {
    let mut outsider = prepare(server().port(), "cut_off");
    let gateway = Gateway::start(&[]);
    let mut direct = Line::connect(server().port(), "cut_off").unwrap().unwrap();

    let line = reads_a_large_row(&gateway);
    cut_off(line, &mut direct);

    // The client sends an invalid message in the middle of the row. It gets the row before the reason.
    let mut line = reads_a_large_row(&gateway);
    until_the_backend_waits(&mut direct, "ClientWrite");
    line.out.extend_from_slice(b"~~~~~~~~");
    line.send().unwrap();
    let replies = line.until_end();
    assert_eq!(replies.iter().filter(|byte| **byte == b'x').count(), 30_000_000, "the row is complete");
    let last = String::from_utf8_lossy(&replies[replies.len() - 300..]);
    assert!(last.contains("SELECT 1") && last.contains("FATAL"), "the reason follows the reply: {last}");

    // The server closes the connection in the middle of the row, after the client has sent an invalid message.
    let mut line = reads_a_large_row(&gateway);
    until_the_backend_waits(&mut direct, "ClientWrite");
    line.out.extend_from_slice(b"~~~~~~~~");
    line.send().unwrap();
    cut_off(line, &mut direct);

    // A unit that runs alone, because an outsider has locked its row, followed by another unit.
    let mut line = Line::connect(gateway.port(), "cut_off").unwrap().unwrap();
    assert_eq!(outsider.query("begin; update inv set sold = sold").error(), None);
    line.put_query(&format!("update inv set sold = sold + 1 where id = 1 returning {LARGE}"));
    line.put_query("insert into ledger (id, client, amount) values (1, 1, 1)");
    line.send().unwrap();
    until_the_backend_waits(&mut direct, "transactionid");
    assert_eq!(outsider.query("rollback").error(), None);
    cut_off(line, &mut direct);
}
