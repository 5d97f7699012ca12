//! Promise 2: for the units of concurrent sessions, there is a serial order in which a direct connection gives exactly
//! the same answers, byte for byte. It keeps the order of each session, and the order of two units if one was answered
//! before the other was sent. `HOTROW_SEED` repeats a choice of units.

mod history;
mod replay;
mod units;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use hotrow_testkit::line::{Answer, Line, Until};
use hotrow_testkit::{Gateway, programs, server};

use self::history::Record;
use self::units::{RESET, TABLES, Unit};

/// The server plans a prepared statement for its values five times and then perhaps for all values, which decides when
/// some errors occur. The test fixes the kind of plan, so both sides get the same errors. In some rounds an outsider
/// holds locks.
const ROUNDS: [(&str, bool); 4] = [
    ("force_custom_plan", false),
    ("force_generic_plan", false),
    ("force_custom_plan", true),
    ("force_generic_plan", true),
];
const SESSIONS: i64 = 8;
/// Units of each session in each round of a whole run.
const UNITS: u64 = 120;

#[test]
fn a_serial_order_explains_every_answer() {
    let seed = hotrow_testkit::seed();
    let mut direct = Line::connect(server().port(), "same").unwrap().expect("the server accepts the login");
    assert_eq!(direct.query(&format!("create schema same; {TABLES}")).error(), None);
    let gateway = Gateway::start(&["--lanes", "3"]);
    let units = programs(UNITS).max(40) as usize;
    for (round, (plans, outsider)) in (0..).zip(ROUNDS) {
        let start = format!("same -c plan_cache_mode={plans}");
        let seed = seed.wrapping_add(round);
        assert_eq!(direct.query(RESET).error(), None);
        let over = AtomicBool::new(!outsider);
        let records = thread::scope(|scope| {
            let _until = Until(&over);
            scope.spawn(|| lock_now_and_then(seed, &over));
            record(gateway.port(), &start, seed, units)
        });
        let left = contents(&mut direct);
        assert_eq!(direct.query(RESET).error(), None);
        replay::explain(server().port(), &start, records);
        assert_eq!(contents(&mut direct), left, "the rows differ from those of the serial order");
    }
    let packed = gateway.metric("packed_units_total") + gateway.metric("packed_reads_total");
    let passed = gateway.metric("passed_through_units_total");
    let [failed, blocked] = ["failed", "blocked"].map(|why| gateway.metric(&format!("{why}_units_total")));
    println!("{packed} packed, {passed} passed through, {failed} failed in lanes, {blocked} blocked there");
    assert!(packed > passed && failed > 0 && blocked > 0);
}

#[test]
fn an_answer_that_no_order_explains_is_noticed() {
    let mut direct =
        Line::connect(server().port(), "tampered").unwrap().expect("the server accepts the login");
    assert_eq!(direct.query(&format!("create schema tampered; {TABLES}; {RESET}")).error(), None);
    let mut records = record(server().port(), "tampered", 1, UNITS as usize);
    assert_eq!(direct.query(RESET).error(), None);
    replay::explain(server().port(), "tampered", records.clone());

    // One client's answer has a version that its unit did not produce.
    let tampered = records[0].iter_mut().rfind(|record| {
        record.answer.command().as_deref() == Some("UPDATE 1") && !record.answer.rows().is_empty()
    });
    let tampered = tampered.expect("a session updates something");
    let frames = tampered.answer.frames();
    let before_row =
        frames.iter().take_while(|(tag, _)| *tag != 'D').map(|(_, body)| body.len() + 5).sum::<usize>();
    let first_digit = before_row + 11; // after the row's tag and length, the number of values, and the value's length
    tampered.answer.bytes[first_digit] ^= 1;
    assert_eq!(direct.query(RESET).error(), None);
    let explained = catch_unwind(|| replay::explain(server().port(), "tampered", records));
    assert!(explained.is_err(), "a wrong answer was explained");
}

#[test]
fn a_text_skipped_as_an_unnamed_statement_stays_prepared_under_its_name() {
    const DOUBLE: &str = "select $1::int * 2";
    let script = |port: u16| -> Vec<Answer> {
        let mut line = Line::connect(port, "public").unwrap().expect("the port accepts the login");
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

/// Runs the sessions against the gateway and records their answers.
fn record(port: u16, start: &str, seed: u64, units: usize) -> Vec<Vec<Record>> {
    let clock = AtomicU64::new(1);
    thread::scope(|scope| {
        let sessions: Vec<_> = (1..=SESSIONS)
            .map(|client| {
                scope.spawn({
                    let clock = &clock;
                    move || session(port, start, seed, client, units, clock)
                })
            })
            .collect();
        sessions.into_iter().map(|session| session.join().unwrap()).collect()
    })
}

fn session(port: u16, start: &str, seed: u64, client: i64, units: usize, clock: &AtomicU64) -> Vec<Record> {
    let mut random = fastrand::Rng::with_seed(seed ^ (client as u64) << 48);
    let mut line = Line::connect(port, start).unwrap().expect("the gateway accepts the login");
    for answer in replay::prepare(&mut line) {
        assert_eq!(answer.error(), None);
    }
    let mut records = Vec::new();
    while records.len() < units {
        let depth = if client % 2 == 0 { random.usize(1..10) } else { 1 };
        let sent_units: Vec<Unit> = (0..depth).map(|_| Unit::random(&mut random, client)).collect();
        sent_units.iter().for_each(|unit| unit.put(&mut line));
        let sent = clock.fetch_add(1, SeqCst);
        line.send().unwrap();
        for unit in sent_units {
            let answer = line.answer();
            assert!(answer.whole, "{unit:?} was cut off: {:?}", answer.frames());
            records.push(Record { unit, answer, sent, answered: clock.fetch_add(1, SeqCst) });
        }
    }
    records
}

/// An outsider that changes nothing and holds locks that the sessions need.
fn lock_now_and_then(seed: u64, over: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut line = Line::connect(server().port(), "same").unwrap().expect("the server accepts the login");
    while !over.load(SeqCst) {
        let lock = match random.u8(0..8) {
            0 => "lock account in share row exclusive mode".to_owned(),
            1 => "lock event in exclusive mode".to_owned(),
            _ => format!("select from account where id = {} for update", random.i64(11..=14)),
        };
        assert_eq!(line.query(&format!("begin; {lock}")).error(), None);
        thread::sleep(Duration::from_millis(random.u64(1..200))); // some longer than the lanes' lock timeout
        assert_eq!(line.query("rollback").error(), None);
    }
}

fn contents(direct: &mut Line) -> Vec<Vec<Option<String>>> {
    let tables = ["account", "event", "late", "tally"];
    tables
        .iter()
        .flat_map(|table| direct.query(&format!("select * from {table} order by id")).rows())
        .collect()
}
