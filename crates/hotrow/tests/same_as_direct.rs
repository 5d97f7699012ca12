//! Promise 2: whatever sessions do at the same time, there is a serial order of their units, which keeps each session's
//! order and that of units of which one was answered before the other was asked, in which a direct connection gives
//! the very same answers, byte by byte. `HOTROW_SEED` repeats a choice of units.

mod support;

#[path = "support/history.rs"]
mod history;
#[path = "support/line.rs"]
#[allow(dead_code, reason = "shared by files that each use a part")]
mod line;
#[path = "support/replay.rs"]
mod replay;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use history::{RESET, Record, TABLES, Unit};
use line::Line;
use support::{Gateway, server};

/// A prepared statement is planned for its values five times and then perhaps for all values, which shows in the moment
/// when some errors come. Here the server is told which, so that both sides get the same.
const ROUNDS: [&str; 4] =
    ["force_custom_plan", "force_generic_plan", "force_custom_plan", "force_generic_plan"];
const SESSIONS: i64 = 8;
const UNITS: usize = 150;

#[test]
fn a_serial_order_explains_every_answer() {
    let seed = std::env::var("HOTROW_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("HOTROW_SEED={seed}");
    let mut direct = Line::connect(server().port(), "same").unwrap().expect("the server takes us");
    assert_eq!(direct.query(&format!("create schema same; {TABLES}")).error(), None);
    let gateway = Gateway::start(&["--lanes", "3"]);
    for (round, plans) in (0..).zip(ROUNDS) {
        let start = format!("same -c plan_cache_mode={plans}");
        assert_eq!(direct.query(RESET).error(), None);
        let records = record(gateway.port(), &start, seed.wrapping_add(round));
        let left = contents(&mut direct);
        assert_eq!(direct.query(RESET).error(), None);
        replay::explain(server().port(), &start, records);
        assert_eq!(contents(&mut direct), left, "the rows are others than those of the serial order");
    }
    let packed = gateway.metric("packed_units_total") + gateway.metric("packed_reads_total");
    let passed = gateway.metric("passed_through_units_total");
    println!(
        "{packed} packed, {passed} passed through; {} failed in lanes",
        gateway.metric("failed_units_total")
    );
    assert!(packed > passed && gateway.metric("failed_units_total") > 0);
}

/// Lets sessions loose on the gateway and writes down what they see.
fn record(port: u16, start: &str, seed: u64) -> Vec<Vec<Record>> {
    let clock = AtomicU64::new(1);
    thread::scope(|scope| {
        let sessions: Vec<_> = (1..=SESSIONS)
            .map(|client| {
                scope.spawn({
                    let clock = &clock;
                    move || session(port, start, seed, client, clock)
                })
            })
            .collect();
        sessions.into_iter().map(|session| session.join().unwrap()).collect()
    })
}

fn session(port: u16, start: &str, seed: u64, client: i64, clock: &AtomicU64) -> Vec<Record> {
    let mut random = fastrand::Rng::with_seed(seed ^ (client as u64) << 48);
    let mut line = Line::connect(port, start).unwrap().expect("the gateway takes us");
    for answer in replay::prepare(&mut line) {
        assert_eq!(answer.error(), None);
    }
    let mut records = Vec::new();
    while records.len() < UNITS {
        let depth = if client % 2 == 0 { random.usize(1..10) } else { 1 };
        let units: Vec<Unit> = (0..depth).map(|_| Unit::random(&mut random, client)).collect();
        units.iter().for_each(|unit| unit.put(&mut line));
        let sent = clock.fetch_add(1, SeqCst);
        line.send().unwrap();
        for unit in units {
            let answer = line.answer();
            assert!(answer.whole, "{unit:?} was cut off: {:?}", answer.frames());
            records.push(Record { unit, answer, sent, answered: clock.fetch_add(1, SeqCst) });
        }
    }
    records
}

fn contents(direct: &mut Line) -> Vec<Vec<Option<String>>> {
    let tables = ["account", "event", "late"];
    tables
        .iter()
        .flat_map(|table| direct.query(&format!("select * from {table} order by id")).rows())
        .collect()
}
