//! Clients that are many, and clients that take and never read: memory stays bounded.

use std::time::Duration;

use hotrow_testkit::line::Line;
use hotrow_testkit::{Gateway, server};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::prepare;

const CROWD: usize = 10_000;
const MEBIBYTE: u64 = 1 << 20;

/// Lets them all in, asks something of each, and lets them go; the gateway's memory when all were there.
async fn visit(gateway: &Gateway) -> u64 {
    let mut crowd: Vec<Line> =
        (0..CROWD).map(|_| Line::connect(gateway.port(), "public").unwrap().unwrap()).collect();
    for line in &mut crowd {
        assert_eq!(line.query("select 1").rows(), [[Some("1".to_owned())]]);
    }
    assert_eq!(gateway.metric("clients"), CROWD as u64);
    let resident = gateway.resident();
    drop(crowd);
    hotrow_testkit::until("all have left", || async { gateway.metric("clients") == 0 }).await;
    resident
}

#[tokio::test]
async fn ten_thousand_clients_come_and_go() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let gateway = Gateway::start(&[]);
    Line::connect(gateway.port(), "public").unwrap().unwrap();
    let before = gateway.resident();
    let mut peaks = Vec::new();
    for _ in 0..4 {
        peaks.push(visit(&gateway).await);
    }
    let after = gateway.resident();
    let [before, first, third, fourth, after] =
        [before, peaks[0], peaks[2], peaks[3], after].map(|bytes| bytes / MEBIBYTE);
    println!("MiB: {before} before, {first} with the first crowd, {fourth} with the fourth, {after} after");
    assert!(first < before + 200, "20 KiB for each client at most");
    assert!(fourth < before + 250, "what the allocator keeps in pieces included");
    assert!(fourth <= third + third / 20 && after <= fourth, "it does not grow from crowd to crowd");
}

#[test]
fn a_client_that_never_reads_costs_the_others_nothing() {
    let mut direct = prepare(server().port(), "unread");
    let wide =
        "create table wide as select g, repeat(md5(g::text), 30) as filling from generate_series(1, 2000) g";
    assert_eq!(direct.query(&format!("{wide}; alter table wide add primary key (g)")).error(), None);
    // Patient: on a machine with other work the lane may be slow, and is not what this is about.
    let gateway = Gateway::start(&["--queue-wait-ms", "60000"]);
    let mut neighbour = Line::connect(gateway.port(), "unread").unwrap().unwrap();
    assert_eq!(neighbour.query("select count(*) from wide").error(), None);
    let before = gateway.resident();
    // Some by a lane, as many as its queue takes; the others passed through, where 2 MB is the answer to each statement.
    let deaf: Vec<Line> = (0..40).map(|number| deaf(gateway.port(), number % 8 == 0)).collect();
    for round in 0..200 {
        let answer = neighbour.query(&format!("select length(filling) from wide where g = {}", round + 1));
        assert_eq!(answer.rows(), [[Some("960".to_owned())]], "{:?}", answer.error());
    }
    let more = gateway.resident().saturating_sub(before) / MEBIBYTE;
    println!("{more} MiB for {} clients that do not read", deaf.len());
    assert!(more < 100, "{more} MiB");
}

/// A client that asks for as much as its socket takes, and reads nothing.
fn deaf(port: u16, packed: bool) -> Line {
    let mut line = Line::connect(port, "unread").unwrap().unwrap();
    for number in 0..2_000 {
        if packed {
            line.put_query(&format!("select filling from wide where g = {}", number % 2000 + 1));
        } else {
            line.put_query("select * from wide");
        }
    }
    line.send_within(Duration::from_millis(50));
    line
}
