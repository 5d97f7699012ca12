//! Many clients, and clients that never read their answers: memory stays bounded.

use std::time::Duration;

use hotrow_testkit::line::Line;
use hotrow_testkit::{Gateway, server};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::prepare;

const CROWD: usize = 10_000;
const MEBIBYTE: u64 = 1 << 20;

/// Connects all clients, runs a statement for each and disconnects them. Returns the gateway's memory with all
/// connected.
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
#[ignore = "long: make test-all"]
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
    println!("MiB: {before} before, {first} with the first clients, {fourth} with the fourth, {after} after");
    assert!(first < before + 200, "20 KiB for each client at most");
    assert!(fourth < before + 250, "including memory that the allocator keeps");
    assert!(fourth <= third + third / 20 && after <= fourth, "memory does not grow from round to round");
}

#[test]
#[ignore = "long: make test-all"]
fn a_client_that_never_reads_does_not_affect_others() {
    let mut direct = prepare(server().port(), "unread");
    let wide =
        "create table wide as select g, repeat(md5(g::text), 30) as filling from generate_series(1, 2000) g";
    assert_eq!(direct.query(&format!("{wide}; alter table wide add primary key (g)")).error(), None);
    // A long queue wait: on a busy machine the lane may be slow, which is not the subject of this test.
    let gateway = Gateway::start(&["--queue-wait-ms", "600000"]);
    let mut neighbour = Line::connect(gateway.port(), "unread").unwrap().unwrap();
    assert_eq!(neighbour.query("select count(*) from wide").error(), None);
    let before = gateway.resident();
    // One part uses a lane, nearly as many units as its queue takes. The other is passed through, with 2 MB as the answer to
    // each statement.
    let never_reads: Vec<Line> = (0..40).map(|number| never_reads(gateway.port(), number % 8 == 0)).collect();
    for round in 0..200 {
        let answer = neighbour.query(&format!("select length(filling) from wide where g = {}", round + 1));
        assert_eq!(answer.rows(), [[Some("960".to_owned())]], "{:?}", answer.error());
    }
    let more = gateway.resident().saturating_sub(before) / MEBIBYTE;
    println!("{more} MiB for {} clients that do not read", never_reads.len());
    assert!(more < 100, "{more} MiB");
}

/// A client that sends as many statements as its socket takes, and reads nothing.
fn never_reads(port: u16, packed: bool) -> Line {
    let mut line = Line::connect(port, "unread").unwrap().unwrap();
    for number in 0..1_900 {
        if packed {
            line.put_query(&format!("select filling from wide where g = {}", number % 2000 + 1));
        } else {
            line.put_query("select * from wide");
        }
    }
    line.send_within(Duration::from_millis(50));
    line
}
