//! Merged calls that return several rows, or none: each caller gets its own rows, byte for byte those of a direct call;
//! a bad call does not affect others; and a batch function that mixes callers up is detected.

use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hotrow_testkit::line::{Answer, Line};
use hotrow_testkit::{Gateway, patient, server};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use crate::connect;
use crate::together::Together;

const CLIENTS: usize = 16;

/// Installs the bags of words. Each draw takes some words out, in the order in which they were put in.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::migrate_once();
        let made = connect(server().port()).query(include_str!("bags.sql"));
        assert_eq!(made.error(), None);
    });
}

/// A form in which a client draws repeatedly, from no words to more than the bag has.
#[derive(Clone, Copy, Debug)]
enum Form {
    Simple(&'static str),
    Extended {
        sql: &'static str,
        /// Formats of the results.
        results: &'static [i16],
        binary: bool,
        described: bool,
        rows_max: i32,
    },
}

const fn extended(sql: &'static str, binary: bool, results: &'static [i16], described: bool) -> Form {
    Form::Extended { sql, results, binary, described, rows_max: 0 }
}

const FORMS: [Form; 11] = [
    Form::Simple("select * from bags.draw('{}', 1)"),
    Form::Simple("select * from bags.draw('{}', 3)"),
    Form::Simple("select word as w, place from bags.draw(most => 2, bag => '{}') as d"),
    Form::Simple("select bags.draw('{}', 2)"),
    extended("select * from bags.draw($1, $2)", false, &[], true),
    extended("select * from bags.draw($1, $2)", true, &[1], true),
    extended("select * from bags.draw($1, $2)", true, &[1, 0], false),
    extended("select bags.draw($1, $2) as pair", false, &[1], true),
    extended("select word from bags.words($1, $2) word", true, &[0], true),
    extended("select bags.words($1, $2)", false, &[], false),
    extended("select * from bags.rows($1, $2)", false, &[0, 1], true),
];

impl Form {
    fn put(self, bag: &str, out: &mut BytesMut) {
        match self {
            Form::Simple(sql) => frontend::query(&sql.replace("{}", bag), out).unwrap(),
            Form::Extended { sql, results, binary, described, rows_max } => {
                frontend::parse("", sql, [], out).unwrap();
                let two = if binary { &[0, 0, 0, 2][..] } else { b"2" };
                let put = |value: &&[u8], out: &mut BytesMut| {
                    out.extend_from_slice(value);
                    Ok(IsNull::No)
                };
                let values = [bag.as_bytes(), two];
                let results = results.iter().copied();
                assert!(
                    frontend::bind("", "", [i16::from(binary)], values, |v, out| put(&v, out), results, out)
                        .is_ok()
                );
                if described {
                    frontend::describe(b'P', "", out).unwrap();
                }
                frontend::execute("", rows_max, out).unwrap();
                frontend::sync(out);
            }
        }
    }
}

/// The answers to a client that empties a bag of ten and keeps drawing.
fn empty(line: &mut Line, form: Form, bag: &str) -> Vec<Answer> {
    let call = |_| {
        form.put(bag, &mut line.out);
        line.send().unwrap();
        line.answer()
    };
    (0..14).map(call).collect()
}

fn fill(bag: &str) {
    let sql =
        format!("insert into bags.word select '{bag}', n, repeat('w', n) from generate_series(1, 10) n");
    assert_eq!(connect(server().port()).query(&sql).error(), None);
}

#[test]
fn every_caller_gets_exactly_the_rows_of_a_direct_call() {
    install();
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    for (number, form) in FORMS.into_iter().enumerate() {
        let bag = |client: usize| format!("bag{number}_{client}");
        (0..=CLIENTS).for_each(|client| fill(&bag(client)));
        let due = empty(&mut connect(server().port()), form, &bag(CLIENTS));
        assert!(due.iter().all(|answer| answer.whole && answer.error().is_none()), "{:?}", due[0].frames());
        assert_eq!(due.iter().map(|answer| answer.rows().len()).sum::<usize>(), 10, "{form:?}");
        let before = gateway.metric("hotrow_merged_units_total");
        let start = Together::new(CLIENTS);
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (bag, due, start, port) = (bag(client), &due, &start, gateway.port());
                scope.spawn(move || {
                    let start = start.caller();
                    let mut line = connect(port);
                    start.wait();
                    for (got, due) in empty(&mut line, form, &bag).iter().zip(due) {
                        assert_eq!(got.frames(), due.frames(), "{form:?}");
                    }
                });
            }
        });
        assert!(gateway.metric("hotrow_merged_units_total") > before, "{form:?} was not merged");
    }
}

#[test]
fn an_execute_with_a_row_limit_is_answered_as_on_a_direct_connection() {
    install();
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    let form = Form::Extended {
        sql: "select * from bags.draw($1, $2)",
        results: &[],
        binary: false,
        described: true,
        rows_max: 1,
    };
    fill("limited");
    fill("limited_direct");
    let due = empty(&mut connect(server().port()), form, "limited_direct");
    assert_eq!(empty(&mut connect(gateway.port()), form, "limited"), due);
    assert!(due[0].frames().iter().any(|(tag, _)| *tag == 's'), "the server has suspended the portal");
}

#[test]
fn every_word_is_drawn_once_by_clients_of_two_gateways_and_direct_ones() {
    install();
    let words = 500;
    let fill =
        format!("insert into bags.word select 'shared', n, n::text from generate_series(1, {words}) n");
    assert_eq!(connect(server().port()).query(&fill).error(), None);
    let gateways = [Gateway::start(&["--lanes", "1"]), Gateway::start(&["--lanes", "1"])];
    let ports = [gateways[0].port(), gateways[1].port(), server().port()];
    let mut drawn: Vec<usize> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let (mut line, mut mine) = (connect(ports[client % 3]), Vec::new());
                    loop {
                        let answer = line.query("select word, place from bags.draw('shared', 3)");
                        let places: Vec<usize> = answer
                            .rows()
                            .iter()
                            .map(|row| row[1].as_deref().unwrap().parse().unwrap())
                            .collect();
                        assert!(places.is_sorted(), "{places:?}");
                        if places.is_empty() {
                            assert_eq!(answer.command().as_deref(), Some("SELECT 0"));
                            return mine;
                        }
                        mine.extend(places);
                    }
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    drawn.sort_unstable();
    assert_eq!(drawn, (1..=words).collect::<Vec<_>>());
}

#[test]
fn a_bad_call_among_good_ones_gets_its_own_error_and_does_not_affect_others() {
    install();
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    let good = |client: usize| format!("good_{client}");
    (0..CLIENTS).for_each(|client| fill(&good(client)));
    let due = empty(&mut connect(server().port()), FORMS[4], &good(0));
    thread::scope(|scope| {
        for client in 1..CLIENTS {
            let (due, port) = (&due, gateway.port());
            scope.spawn(move || assert_eq!(empty(&mut connect(port), FORMS[4], &good(client)), *due));
        }
        let port = gateway.port();
        scope.spawn(move || {
            let mut line = connect(port);
            for _ in 0..5 {
                line.put_unnamed_call("select * from bags.draw($1, $2)", &[Some("bad"), Some("-1")]);
                line.put_sync();
                line.send().unwrap();
                assert_eq!(
                    line.answer().error().expect("a negative number of words is an error").code,
                    "22023"
                );
            }
        });
    });
}

#[test]
fn a_batch_function_whose_rows_belong_to_no_call_or_are_out_of_order_is_detected() {
    install();
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    for (name, rows) in [
        ("beyond", "select cardinality($1) + 1, 'x' union all select 1, 'x'"),
        ("zeroth", "select 0, 'x'"),
        ("unsure", "select null::int, 'x'"),
        ("backwards", "select c, 'x' from generate_series(1, cardinality($1)) c order by c desc"),
    ] {
        // A single call is correct. Only merged calls show the fault.
        let sql = format!(
            "create function public.{name}_batch(name text[]) returns table (call int, answer text)
             language sql volatile as $$ {rows} $$;
             create function public.{name}(name text) returns table (answer text)
             language sql volatile as $$ select $1 from pg_sleep(0.01) $$;
             select hotrow.add_merge_rule('public.{name}(text)', 'public.{name}_batch(text[])', 'name')"
        );
        assert_eq!(connect(server().port()).query(&sql).error(), None);
        let (found, deadline) = (Mutex::new(Vec::new()), Instant::now() + Duration::from_secs(30));
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let (mut line, found) = (connect(gateway.port()), &found);
                scope.spawn(move || {
                    while found.lock().unwrap().len() < 2 && Instant::now() < deadline {
                        let answer = line.query(&format!("select * from public.{name}('x')"));
                        match answer.error() {
                            Some(report) => found.lock().unwrap().push(report.code),
                            // The statement is passed through after its batch function was detected as faulty.
                            None => assert_eq!(answer.rows(), [[Some("x".to_owned())]]),
                        }
                    }
                });
            }
        });
        let found = found.into_inner().unwrap();
        assert!(found.len() >= 2 && found.iter().all(|code| code == "39000"), "{name}: {found:?}");
    }
}
