//! Promise 2: whatever sessions do at the same time, there is a serial order of their units, which keeps each session's
//! order and that of units of which one was answered before the other was asked, in which a direct connection gives
//! the very same answers, byte by byte. `HOTROW_SEED` repeats a choice of units.

mod history;
mod replay;
mod units;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use hotrow_testkit::line::{Answer, Line, Until};
use hotrow_testkit::{Gateway, server};

use self::history::Record;
use self::units::{RESET, TABLES, Unit};

/// A prepared statement is planned for its values five times and then perhaps for all values, which shows in the moment
/// when some errors come. Here the server is told which, so that both sides get the same. In some rounds an outsider
/// stands in the way.
const ROUNDS: [(&str, bool); 4] = [
    ("force_custom_plan", false),
    ("force_generic_plan", false),
    ("force_custom_plan", true),
    ("force_generic_plan", true),
];
const SESSIONS: i64 = 8;
const UNITS: usize = 120;

#[test]
fn a_serial_order_explains_every_answer() {
    let seed = std::env::var("HOTROW_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("HOTROW_SEED={seed}");
    let mut direct = Line::connect(server().port(), "same").unwrap().expect("the server takes us");
    assert_eq!(direct.query(&format!("create schema same; {TABLES}")).error(), None);
    let gateway = Gateway::start(&["--lanes", "3"]);
    for (round, (plans, outsider)) in (0..).zip(ROUNDS) {
        let start = format!("same -c plan_cache_mode={plans}");
        let seed = seed.wrapping_add(round);
        assert_eq!(direct.query(RESET).error(), None);
        let over = AtomicBool::new(!outsider);
        let records = thread::scope(|scope| {
            let _until = Until(&over);
            scope.spawn(|| lock_now_and_then(seed, &over));
            record(gateway.port(), &start, seed)
        });
        let left = contents(&mut direct);
        assert_eq!(direct.query(RESET).error(), None);
        replay::explain(server().port(), &start, records);
        assert_eq!(contents(&mut direct), left, "the rows are others than those of the serial order");
    }
    let packed = gateway.metric("packed_units_total") + gateway.metric("packed_reads_total");
    let passed = gateway.metric("passed_through_units_total");
    let [failed, blocked] = ["failed", "blocked"].map(|why| gateway.metric(&format!("{why}_units_total")));
    println!("{packed} packed, {passed} passed through, {failed} failed in lanes, {blocked} blocked there");
    assert!(packed > passed && failed > 0 && blocked > 0);
}

#[test]
fn an_answer_that_no_order_explains_is_noticed() {
    let mut direct = Line::connect(server().port(), "tampered").unwrap().expect("the server takes us");
    assert_eq!(direct.query(&format!("create schema tampered; {TABLES}; {RESET}")).error(), None);
    let mut records = record(server().port(), "tampered", 1);
    assert_eq!(direct.query(RESET).error(), None);
    replay::explain(server().port(), "tampered", records.clone());

    // One client is told of a version that it has not made.
    let told = records[0].iter_mut().rfind(|record| {
        record.answer.command().as_deref() == Some("UPDATE 1") && !record.answer.rows().is_empty()
    });
    let told = told.expect("a session updates something");
    let frames = told.answer.frames();
    let before_row =
        frames.iter().take_while(|(tag, _)| *tag != 'D').map(|(_, body)| body.len() + 5).sum::<usize>();
    let first_digit = before_row + 11; // behind the row's tag and length, the number of values, and the value's length
    told.answer.bytes[first_digit] ^= 1;
    assert_eq!(direct.query(RESET).error(), None);
    let explained = catch_unwind(|| replay::explain(server().port(), "tampered", records));
    assert!(explained.is_err(), "a wrong answer was explained");
}

#[test]
fn a_text_that_failed_without_a_name_stays_prepared_under_its_name() {
    const DOUBLE: &str = "select $1::int * 2";
    let script = |port: u16| -> Vec<Answer> {
        let mut line = Line::connect(port, "public").unwrap().expect("it takes us");
        line.put_query("begin; savepoint a");
        line.put_prepare("double", DOUBLE);
        line.put_call("double", &[Some("1")]);
        line.put_sync();
        line.put_unnamed_call("select 1 / $1::int", &[Some("0")]);
        line.put_unnamed_call(DOUBLE, &[Some("2")]); // skipped by the server
        line.put_sync();
        line.put_query("rollback to a");
        line.put_call("double", &[Some("3")]);
        line.put_sync();
        line.send().unwrap();
        (0..6).map(|_| line.answer()).collect()
    };
    let gateway = Gateway::start(&[]);
    assert_eq!(script(gateway.port()), script(server().port()));
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

/// An outsider who changes nothing, and in whose way the sessions come.
fn lock_now_and_then(seed: u64, over: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut line = Line::connect(server().port(), "same").unwrap().expect("the server takes us");
    while !over.load(SeqCst) {
        let lock = match random.u8(0..8) {
            0 => "lock account in share row exclusive mode".to_owned(),
            1 => "lock event in exclusive mode".to_owned(),
            _ => format!("select from account where id = {} for update", random.i64(11..=14)),
        };
        assert_eq!(line.query(&format!("begin; {lock}")).error(), None);
        thread::sleep(Duration::from_millis(random.u64(1..200))); // some longer than a lane waits
        assert_eq!(line.query("rollback").error(), None);
    }
}

fn contents(direct: &mut Line) -> Vec<Vec<Option<String>>> {
    let tables = ["account", "event", "late"];
    tables
        .iter()
        .flat_map(|table| direct.query(&format!("select * from {table} order by id")).rows())
        .collect()
}
