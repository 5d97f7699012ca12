//! Invalid calls through the gateway, beside valid calls: the bad call gets a clear error, and no other call is
//! affected.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use hotrow_testkit::line::{Line, Until};
use hotrow_testkit::{Gateway, programs};

use crate::installed;
use crate::sql::literal;

const NEIGHBOURS: usize = 6;
/// How often each bad call is made in a whole run. It should share a batch with others.
const TIMES: u64 = 5;

fn connect(port: u16) -> Line {
    Line::connect(port, "public").unwrap().unwrap_or_else(|refusal| panic!("{:?}", refusal.error()))
}

/// A function, its arguments, and the SQLSTATE.
fn bad_calls() -> Vec<(&'static str, Vec<Option<String>>, &'static str)> {
    let text = |text: &str| Some(text.to_owned());
    let long = Some("x".repeat(10 << 10));
    let used = text("00000000-0000-0000-0000-0000000bad01");
    let shoe = || text("bad.shoe");
    vec![
        ("increment", vec![text(""), text("1")], "22023"),
        ("increment", vec![long.clone(), text("1")], "22023"),
        ("increment", vec![None, text("1")], "22004"),
        ("increment", vec![text("bad.a"), None], "22004"),
        ("increment", vec![text("bad.a"), text("2"), used.clone()], "22023"),
        ("increment", vec![text("bad.b"), text("1"), used.clone()], "22023"),
        ("increment", vec![text("bad.a"), text("9223372036854775808")], "22003"),
        ("increment", vec![text("bad.a"), text("one")], "22P02"),
        ("increment", vec![text("bad.a"), text("1"), text("no uuid")], "22P02"),
        ("drain", vec![text("")], "22023"),
        ("drain", vec![None], "22004"),
        ("drain", vec![text("bad.a"), used.clone()], "22023"),
        ("reserve", vec![shoe(), text("ann"), text("0")], "22023"),
        ("reserve", vec![shoe(), text("ann"), text("-1")], "22023"),
        ("reserve", vec![shoe(), text("ann"), None], "22004"),
        ("reserve", vec![shoe(), None], "22004"),
        ("reserve", vec![None, text("ann")], "22004"),
        ("reserve", vec![shoe(), text("")], "22023"),
        ("reserve", vec![shoe(), long.clone()], "22023"),
        ("reserve", vec![text(""), text("ann")], "22023"),
        ("reserve", vec![long, text("ann")], "22023"),
        ("reserve", vec![shoe(), text("ann"), text("1"), used], "22023"),
        ("confirm", vec![None], "22004"),
        ("confirm", vec![text("no uuid")], "22P02"),
        ("cancel", vec![None], "22004"),
        ("extend", vec![text("00000000-0000-0000-0000-000000000000"), text("0")], "22023"),
        ("extend", vec![text("00000000-0000-0000-0000-000000000000"), text("-1 hour")], "22023"),
        ("extend", vec![text("00000000-0000-0000-0000-000000000000"), None], "22004"),
        ("restock", vec![shoe(), text("0")], "22023"),
    ]
}

/// Calls that are rejected by a status instead, and change nothing either.
const REFUSED: [(&str, &str); 4] = [
    ("select * from hotrow.reserve('bad.none', 'ann')", "unknown_item - -"),
    ("select * from hotrow.confirm('00000000-0000-0000-0000-000000000000')", "unknown_reservation"),
    ("select * from hotrow.increment('bad.full', 1)", "9223372036854775807 1 overflow"),
    ("select * from hotrow.increment('bad.full', 9223372036854775807)", "9223372036854775807 1 overflow"),
];

#[test]
fn a_bad_call_gets_its_error_and_its_neighbours_their_answers() {
    let mut direct = connect(installed());
    for statement in [
        "select * from hotrow.increment('bad.a', 1, '00000000-0000-0000-0000-0000000bad01')",
        "select * from hotrow.increment('bad.full', 9223372036854775807)",
        "select * from hotrow.create_sale('bad.shoe', 1000000000)",
    ] {
        assert_eq!(direct.query(statement).error(), None);
    }
    let gateway = Gateway::start(&[]);
    let (over, incremented, reserved) = (AtomicBool::new(false), AtomicU64::new(1), AtomicU64::new(0));
    thread::scope(|scope| {
        let until = Until(&over);
        for number in 0..NEIGHBOURS {
            let (over, gateway) = (&over, &gateway);
            let (incremented, reserved) = (&incremented, &reserved);
            scope.spawn(move || {
                let mut line = connect(gateway.port());
                while !over.load(Relaxed) {
                    // Two at once: one after the other, before and after a bad call of another client.
                    line.put_unnamed_call(
                        "select * from hotrow.increment($1, $2)",
                        &[Some("bad.a"), Some("1")],
                    );
                    line.put_sync();
                    let buyer = number.to_string();
                    line.put_unnamed_call(
                        "select status from hotrow.reserve($1, $2)",
                        &[Some("bad.shoe"), Some(&buyer)],
                    );
                    line.put_sync();
                    line.send().unwrap();
                    let [first, second] = [line.answer(), line.answer()];
                    assert_eq!((first.error(), second.error()), (None, None));
                    assert_eq!(first.rows()[0][2].as_deref(), Some("ok"));
                    assert_eq!(second.rows()[0][0].as_deref(), Some("reserved"));
                    incremented.fetch_add(1, Relaxed);
                    reserved.fetch_add(1, Relaxed);
                }
            });
        }
        make_bad_calls(&gateway, &bad_calls(), &REFUSED);
        drop(until);
    });
    assert!(gateway.metric("merged_units_total") > 0, "no calls were merged");
    let counted = direct.query("select value, version from hotrow.counter('bad.a')").rows().remove(0);
    let expected = incremented.load(Relaxed).to_string();
    assert_eq!(counted, [Some(expected.clone()), Some(expected)], "value and version count the valid calls");
    let held = direct.query("select held from hotrow.sale('bad.shoe')").rows().remove(0);
    assert_eq!(held, [Some(reserved.load(Relaxed).to_string())]);
    assert!(reserved.load(Relaxed) > 100, "hardly any neighbour succeeded");
}

/// The same for queues and feeds.
fn bad_calls_of_queues_and_feeds() -> Vec<(&'static str, Vec<Option<String>>, &'static str)> {
    let text = |text: &str| Some(text.to_owned());
    let (queue, order, user) =
        (|| text("bad.queue"), || text("00000000-0000-0000-0000-0000000bad02"), || text(USER));
    let (receipt, used) = (|| text("16384"), || text("00000000-0000-0000-0000-0000000bad03"));
    vec![
        ("enqueue", vec![None, order()], "22004"),
        ("enqueue", vec![queue(), None], "22004"),
        ("enqueue", vec![queue(), text("no uuid")], "22P02"),
        ("enqueue", vec![queue(), order(), text("{")], "22P02"),
        ("enqueue", vec![queue(), order(), Some(format!("\"{}\"", "x".repeat(256_001)))], "22023"),
        ("enqueue", vec![queue(), order(), text("{}"), Some("g".repeat(501))], "22023"),
        ("enqueue", vec![queue(), order(), text("{}"), None, text("1969-12-31")], "22023"),
        ("enqueue", vec![queue(), order(), text("{}"), None, None, text("infinity")], "22023"),
        ("enqueue", vec![queue(), order(), text("{}"), None, None, None, text("61")], "22023"),
        ("enqueue_all", vec![queue(), text("{}")], "22023"),
        ("enqueue_all", vec![queue(), text("[1]")], "22023"),
        ("take", vec![text("bad.none")], "P0002"),
        ("take", vec![queue(), None], "22004"),
        ("take", vec![queue(), text("0")], "22023"),
        ("take", vec![queue(), text("1001")], "22023"),
        ("take", vec![queue(), text("1"), text("0")], "22023"),
        ("take", vec![queue(), text("1"), text("1 minute"), text("2 hours")], "22023"),
        ("complete", vec![None, receipt()], "22004"),
        ("complete", vec![queue(), None], "22004"),
        ("complete", vec![queue(), receipt(), None], "22004"),
        ("complete", vec![queue(), receipt(), text("1"), text("{")], "22P02"),
        ("fail", vec![queue(), receipt(), text("x"), text("-1 hour")], "22023"),
        ("release", vec![queue(), None], "22004"),
        ("extend_lease", vec![queue(), receipt(), None], "22004"),
        ("extend_lease", vec![queue(), receipt(), text("0")], "22023"),
        ("push", vec![None, text("1"), text("x")], "22004"),
        ("push", vec![user(), None, text("x")], "22004"),
        ("push", vec![user(), text("1"), None], "22004"),
        ("push", vec![text("ann"), text("1"), text("x")], "22P02"),
        ("push", vec![user(), text("1"), Some("x".repeat(1_000_001))], "22023"),
        ("push", vec![user(), text("1"), text("another text"), None, used()], "22023"),
        ("push", vec![user(), text("1"), text("used"), text("2026-01-01"), used()], "22023"),
        ("post", vec![text("1"), None], "22004"),
        ("post", vec![text("1"), text("used"), used()], "22023"),
        ("consume", vec![None], "22004"),
        ("consume", vec![user(), text("1001")], "22023"),
        ("consume", vec![user(), text("1"), text("best")], "22023"),
        ("follow", vec![user(), None], "22004"),
        ("follow", vec![user(), text("2"), text("1001")], "22023"),
        ("unfollow", vec![None, text("2")], "22004"),
        ("mark_read_up_to", vec![user(), None], "22004"),
    ]
}

const USER: &str = "6601";
const REFUSED_BY_QUEUES_AND_FEEDS: [(&str, &str); 4] = [
    ("select status from hotrow.enqueue('bad.none', gen_random_uuid())", "unknown_queue"),
    ("select outcome from hotrow.complete('bad.queue', 987654400)", "lease_lost"),
    ("select * from hotrow.follow(6601, 6601)", "self"),
    ("select * from hotrow.unfollow(6601, 6602)", "not_following"),
];

/// The results of the neighbours of bad calls of queues and feeds.
#[derive(Default)]
struct Done {
    pushed: AtomicU64,
    enqueued: AtomicU64,
    completed: AtomicU64,
}

impl Done {
    /// Adds one message and one order, and takes one order.
    fn more(&self, line: &mut Line, number: usize) {
        let (from, order) = (number.to_string(), format!("{:032x}", fastrand::u128(..)));
        let push = "select status from hotrow.push($1, $2, $3)";
        line.put_unnamed_call(push, &[Some(USER), Some(&from), Some("hello")]);
        line.put_sync();
        let enqueue = "select status from hotrow.enqueue($1, $2)";
        line.put_unnamed_call(enqueue, &[Some("bad.queue"), Some(&order)]);
        line.put_sync();
        line.put_unnamed_call("select receipt from hotrow.take($1, $2)", &[Some("bad.queue"), Some("1")]);
        line.put_sync();
        line.send().unwrap();
        let answers = [line.answer(), line.answer(), line.answer()];
        assert!(
            answers.iter().all(|answer| answer.error().is_none()),
            "{:?}",
            answers.map(|answer| answer.error())
        );
        assert_eq!(answers[0].rows(), [[Some("ok".to_owned())]]);
        assert_eq!(answers[1].rows(), [[Some("enqueued".to_owned())]]);
        self.pushed.fetch_add(1, Relaxed);
        self.enqueued.fetch_add(1, Relaxed);
        // Another client may have taken the order that was enqueued here.
        for row in answers[2].rows() {
            let complete = "select * from hotrow.complete($1, $2)";
            line.put_unnamed_call(complete, &[Some("bad.queue"), row[0].as_deref()]);
            line.put_sync();
            line.send().unwrap();
            let answer = line.answer();
            assert_eq!((answer.error(), answer.rows()), (None, vec![vec![Some("completed".to_owned())]]));
            self.completed.fetch_add(1, Relaxed);
        }
    }
}

#[test]
#[ignore = "long: make test-all"]
fn a_bad_call_of_a_queue_or_a_feed_does_not_affect_others() {
    let mut direct = connect(installed());
    for statement in [
        "select hotrow.create_queue('bad.queue')",
        "select hotrow.push(6602, 1, 'used', null, '00000000-0000-0000-0000-0000000bad03')",
    ] {
        assert_eq!(direct.query(statement).error(), None);
    }
    let gateway = Gateway::start(&[]);
    let (over, done) = (AtomicBool::new(false), Done::default());
    thread::scope(|scope| {
        let until = Until(&over);
        for number in 0..NEIGHBOURS {
            let (over, done, port) = (&over, &done, gateway.port());
            scope.spawn(move || {
                let mut line = connect(port);
                while !over.load(Relaxed) {
                    done.more(&mut line, number);
                }
            });
        }
        make_bad_calls(&gateway, &bad_calls_of_queues_and_feeds(), &REFUSED_BY_QUEUES_AND_FEEDS);
        drop(until);
    });
    assert!(gateway.metric("merged_units_total") > 0, "no calls were merged");
    let [pushed, enqueued, completed] =
        [done.pushed, done.enqueued, done.completed].map(|number| Some(number.into_inner().to_string()));
    let inbox = format!("select last from hotrow.inbox where user_id = {USER}");
    assert_eq!(direct.query(&inbox).rows(), [[pushed]]);
    let queue = "select enqueued, processed, in_flight from hotrow.queue_stats('bad.queue')";
    assert_eq!(direct.query(queue).rows(), [[enqueued.clone(), completed, Some("0".to_owned())]]);
    assert!(enqueued.unwrap().parse::<u64>().unwrap() > 100, "hardly any neighbour succeeded");
}

/// Makes all bad calls, and those that are rejected by a status, on one connection.
fn make_bad_calls(gateway: &Gateway, bad: &[(&str, Vec<Option<String>>, &str)], refused: &[(&str, &str)]) {
    let mut line = connect(gateway.port());
    for _ in 0..programs(TIMES).max(2) {
        for (function, values, code) in bad {
            bad_call(&mut line, function, values, code);
        }
        for (statement, expected) in refused {
            let answer = line.query(statement);
            assert_eq!(answer.error(), None, "{statement}");
            assert_eq!(crate::sql::answer(&answer.rows()[0]), *expected, "{statement}");
        }
    }
}

/// Makes a call with parameters and as text. A valid call after it in the same write must succeed.
fn bad_call(line: &mut Line, function: &str, values: &[Option<String>], code: &str) {
    let places: Vec<_> = (1..=values.len()).map(|place| format!("${place}")).collect();
    let literals: Vec<_> = values.iter().map(|value| literal(value.as_deref())).collect();
    let parameters: Vec<_> = values.iter().map(Option::as_deref).collect();
    line.put_unnamed_call(&format!("select * from hotrow.{function}({})", places.join(", ")), &parameters);
    line.put_sync();
    line.put_query(&format!("select * from hotrow.{function}({})", literals.join(", ")));
    line.put_query("select * from hotrow.increment('bad.own', 1)");
    line.send().unwrap();
    for _ in 0..2 {
        let answer = line.answer();
        let report = answer.error().unwrap_or_else(|| panic!("{function}({literals:?}) succeeded"));
        assert_eq!(report.code, code, "{function}({literals:?}): {}", report.message);
        let (_, body) = answer.frames().into_iter().find(|(tag, _)| *tag == 'E').unwrap();
        let hint =
            body.split(|byte| *byte == 0).any(|field| field.first() == Some(&b'H') && field.len() > 10);
        assert!(hint || !["22023", "22004"].contains(&code), "{} does not say what to do", report.message);
    }
    let own = line.answer();
    assert_eq!(own.error(), None, "the call after {function}({literals:?})");
}
