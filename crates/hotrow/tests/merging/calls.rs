//! Calls of functions with a merge rule: every caller gets the answer of a single call, in every form of call; a bad
//! call does not affect others; and a batch function that breaks its contract is detected. The rule is that of
//! docs/merge-rules.md.

use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hotrow_testkit::line::{Answer, Line};
use hotrow_testkit::{Gateway, PATIENCE, patient, server};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use crate::connect;
use crate::together::Together;

const CLIENTS: usize = 16;
const CALLS: usize = 40;
const STOCK: usize = 30;

/// Installs the hotrow schema and the guide's example on the server that this file's tests share.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::migrate_once();
        let guide = include_str!("../../../../docs/merge-rules.md");
        let mut direct = connect(server().port());
        let blocks: Vec<&str> =
            guide.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert_eq!(blocks.len(), 3, "table and batch function, function, rule");
        for sql in blocks {
            assert_eq!(direct.query(sql).error(), None, "{sql}");
        }
    });
}

/// A form in which a client repeatedly calls one item's sale.
#[derive(Clone, Copy, Debug)]
enum Form {
    Simple(&'static str),
    /// Parse, Bind, Describe and Execute; parameters and results in text or binary.
    Extended {
        sql: &'static str,
        binary: bool,
        described: bool,
    },
}

const FORMS: [Form; 8] = [
    Form::Simple("select * from merge_example.sell('{}', 1)"),
    Form::Simple("select stock as left_over, sold from merge_example.sell(quantity => 1, sku => '{}') as s"),
    Form::Simple("select merge_example.sell('{}', 1)"),
    Form::Extended { sql: "select * from merge_example.sell($1, $2)", binary: false, described: true },
    Form::Extended { sql: "select * from merge_example.sell($1, $2)", binary: true, described: true },
    Form::Extended {
        sql: "select sold from merge_example.sell($1::text, $2::bigint)",
        binary: true,
        described: false,
    },
    Form::Extended { sql: "select merge_example.sell($1, 1)", binary: false, described: true },
    Form::Extended { sql: "select merge_example.sell($1, 1) as answer", binary: true, described: true },
];

impl Form {
    fn put(self, item: &str, out: &mut BytesMut) {
        match self {
            Form::Simple(sql) => frontend::query(&sql.replace("{}", item), out).unwrap(),
            Form::Extended { sql, binary, described } => {
                frontend::parse("", sql, [], out).unwrap();
                let one = if binary { &[0, 0, 0, 0, 0, 0, 0, 1][..] } else { b"1" };
                let values = [item.as_bytes(), one];
                let count = if sql.contains("$2") { 2 } else { 1 };
                let format = i16::from(binary);
                let put = |value: &&[u8], out: &mut BytesMut| {
                    out.extend_from_slice(value);
                    Ok(IsNull::No)
                };
                assert!(frontend::bind("", "", [format], &values[..count], put, [format], out).is_ok());
                if described {
                    frontend::describe(b'P', "", out).unwrap();
                }
                frontend::execute("", 0, out).unwrap();
                frontend::sync(out);
            }
        }
    }
}

/// The answers to a client that sells the whole stock of its item and keeps calling.
fn sell_out(line: &mut Line, form: Form, item: &str) -> Vec<Answer> {
    let call = |_| {
        form.put(item, &mut line.out);
        line.send().unwrap();
        line.answer()
    };
    (0..CALLS).map(call).collect()
}

fn new_item(item: &str) {
    let sql = format!("insert into merge_example.item values ('{item}', {STOCK})");
    assert_eq!(connect(server().port()).query(&sql).error(), None);
}

fn merged(gateway: &Gateway) -> u64 {
    gateway.metric("hotrow_merged_units_total")
}

#[test]
fn a_merged_call_is_answered_byte_for_byte_like_a_single_one() {
    install();
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    for (number, form) in FORMS.into_iter().enumerate() {
        let item = |client: usize| format!("form{number}_{client}");
        (0..=CLIENTS).for_each(|client| new_item(&item(client)));
        let due = sell_out(&mut connect(server().port()), form, &item(CLIENTS));
        assert!(due.iter().all(|answer| answer.whole && answer.error().is_none()), "{:?}", due[0].frames());
        let before = merged(&gateway);
        let start = Together::new(CLIENTS);
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (item, due, start, port) = (item(client), &due, &start, gateway.port());
                scope.spawn(move || {
                    let start = start.caller();
                    let mut line = connect(port);
                    start.wait();
                    for (got, due) in sell_out(&mut line, form, &item).iter().zip(due) {
                        assert_eq!(got.frames(), due.frames(), "{form:?}");
                    }
                });
            }
        });
        assert!(merged(&gateway) - before > (CLIENTS * CALLS / 4) as u64, "{form:?} was not merged");
    }
}

#[test]
fn one_item_is_sold_exactly_once_and_every_answer_fits() {
    install();
    new_item("hot");
    let gateways = [Gateway::start(&["--lanes", "1"]), Gateway::start(&["--lanes", "1"])];
    let ports = [gateways[0].port(), gateways[1].port(), server().port()];
    let mut sold: Vec<usize> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let answers = sell_out(&mut connect(ports[client % 3]), FORMS[client % 2 * 3], "hot");
                    let rows = answers.iter().map(|answer| answer.rows().remove(0));
                    let left = rows.filter(|row| row[0].as_deref() == Some("t")).map(|row| row[1].clone());
                    left.map(|left| left.unwrap().parse().unwrap()).collect::<Vec<usize>>()
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    sold.sort_unstable();
    assert_eq!(
        sold,
        (0..STOCK).collect::<Vec<_>>(),
        "each answer has the stock that was left after its sale"
    );
}

#[test]
fn a_bad_call_among_good_ones_gets_its_own_error_and_does_not_affect_others() {
    install();
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    (0..CLIENTS).for_each(|client| new_item(&format!("good{client}")));
    new_item("bad");
    let due = sell_out(&mut connect(server().port()), FORMS[3], "good0");
    new_item("good_first");
    let before = merged(&gateway);
    thread::scope(|scope| {
        for client in 1..CLIENTS {
            let (due, port) = (&due, gateway.port());
            scope.spawn(move || {
                assert_eq!(sell_out(&mut connect(port), FORMS[3], &format!("good{client}")), *due);
            });
        }
        let port = gateway.port();
        scope.spawn(move || {
            let mut line = connect(port);
            for _ in 0..5 {
                line.put_unnamed_call("select * from merge_example.sell($1, $2)", &[Some("bad"), Some("0")]);
                line.put_sync();
                line.send().unwrap();
                let report = line.answer().error().expect("a quantity of 0 is an error");
                assert_eq!(
                    (report.code.as_str(), report.message.as_str()),
                    ("22023", "quantity is 0 or less")
                );
                line.put_unnamed_call(
                    "select * from merge_example.sell($1, $2)",
                    &[Some("bad"), Some("many")],
                );
                line.put_sync();
                line.send().unwrap();
                assert_eq!(
                    line.answer().error().expect("a quantity that is not a number is an error").code,
                    "22P02"
                );
            }
        });
    });
    assert!(merged(&gateway) > before);
    let passed = gateway.metric("hotrow_passed_through_units_total");
    let mut line = connect(gateway.port());
    line.put_unnamed_call("select * from merge_example.sell($1, $2)", &[Some("bad"), Some("0")]);
    line.put_sync();
    line.send().unwrap();
    assert!(line.answer().error().is_some());
    (0..9).for_each(|_| {
        assert_eq!(line.query("select * from merge_example.sell('good_first', 1)").error(), None)
    });
    let passed = gateway.metric("hotrow_passed_through_units_total") - passed;
    assert!(passed <= 1, "a session whose call failed ran single calls {passed} times");
    assert_eq!(
        connect(server().port()).query("select stock from merge_example.item where sku = 'bad'").rows()[0][0]
            .as_deref(),
        Some("30")
    );
}

#[test]
fn a_call_in_a_transaction_is_an_ordinary_call() {
    install();
    new_item("own");
    let gateway = Gateway::start(&["--lanes", "1"]);
    let mut line = connect(gateway.port());
    assert_eq!(line.query("begin").error(), None);
    assert_eq!(line.query("select * from merge_example.sell('own', 5)").rows()[0][1].as_deref(), Some("25"));
    assert_eq!(line.query("rollback").error(), None);
    assert_eq!(line.query("select * from merge_example.sell('own', 1)").rows()[0][1].as_deref(), Some("29"));
}

#[test]
fn a_batch_function_that_loses_a_row_is_detected() {
    install();
    let mut direct = connect(server().port());
    let made = direct.query(
        "create function public.lossy_batch(name text[]) returns table (answer text)
         language sql volatile as $$ select * from unnest(name) offset 1 $$;
         create function public.lossy(name text, out answer text)
         language sql volatile as $$ select $1 from pg_sleep(0.01) $$;
         select hotrow.add_merge_rule('public.lossy(text)', 'public.lossy_batch(text[])', 'name')",
    );
    assert_eq!(made.error(), None);
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    let found = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let mut line = connect(gateway.port());
                scope.spawn(move || {
                    let deadline = Instant::now() + Duration::from_secs(20);
                    while Instant::now() < deadline {
                        let answer = line.query("select * from public.lossy('x')");
                        match answer.error() {
                            Some(report) => return Some(report.code),
                            // The statement is passed through after its batch function was detected as faulty.
                            None if is_unmerged_answer(&answer) => {}
                            None => panic!("{:?}", answer.frames()),
                        }
                    }
                    None
                })
            })
            .collect();
        clients.into_iter().filter_map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(found.len() >= 2 && found.iter().all(|code| code == "39000"), "{found:?}");
}

fn is_unmerged_answer(answer: &Answer) -> bool {
    answer.rows() == [[Some("x".to_owned())]]
}

#[test]
fn a_call_that_would_wait_too_long_is_rejected_at_once() {
    install();
    let made = connect(server().port()).query(
        "create function public.slow_batch(name text[]) returns table (answer text) language sql volatile as $$
             select u.name from unnest(name) u (name), lateral (select pg_sleep(0.02) where u.name <> '') s (done)
         $$;
         create function public.slow(name text, out answer text)
         language sql volatile as $$ select $1 from pg_sleep(0.02) $$;
         select hotrow.add_merge_rule('public.slow(text)', 'public.slow_batch(text[])', 'name', most_calls => 2)",
    );
    assert_eq!(made.error(), None);
    let gateway = Gateway::start(&patient(&["--lanes", "1", "--queue-wait-ms", "100"]));
    let (accepted, refused): (Vec<_>, Vec<_>) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS * 2)
            .map(|_| {
                let mut line = connect(gateway.port());
                scope.spawn(move || {
                    let mut calls = Vec::new();
                    for _ in 0..20 {
                        let sent = Instant::now();
                        let answer = line.query("select * from public.slow('x')");
                        let (report, took) = (answer.error(), sent.elapsed());
                        calls.push((report.is_none(), took));
                        let Some(report) = report else { continue };
                        assert_eq!(report.code, "53000");
                        thread::sleep(Duration::from_millis(20)); // a client's pause before it tries again
                    }
                    calls
                })
            })
            .collect();
        let calls = clients.into_iter().flat_map(|client| client.join().unwrap());
        calls.partition(|(is_accepted, _)| *is_accepted)
    });
    let median = |calls: Vec<(bool, Duration)>| {
        let mut times: Vec<Duration> = calls.into_iter().map(|(_, took)| took).collect();
        times.sort();
        times
            .get(times.len() / 2)
            .copied()
            .expect("32 clients at 50 calls a second: some accepted, some rejected")
    };
    let (accepted, refused) = (median(accepted), median(refused));
    assert!(refused < accepted, "rejected after {refused:?}, and answered after {accepted:?} from the queue");
}

#[test]
fn many_calls_after_slow_single_calls_are_accepted() {
    install();
    let made = connect(server().port()).query(
        "create function public.steady_batch(name text[]) returns table (answer text) language sql volatile as $$
             select u.name from pg_sleep(0.02), unnest(name) u (name)
         $$;
         create function public.steady(name text, out answer text)
         language sql volatile as $$ select $1 from pg_sleep(0.02) $$;
         select hotrow.add_merge_rule('public.steady(text)', 'public.steady_batch(text[])', 'name', most_calls => 256)",
    );
    assert_eq!(made.error(), None);
    let gateway = Gateway::start(&patient(&["--lanes", "1", "--queue-wait-ms", "2000"]));
    let mut alone = connect(gateway.port());
    for _ in 0..20 {
        assert_eq!(alone.query("select * from public.steady('x')").rows(), [[Some("x".to_owned())]]);
    }
    // Single calls, at the pace of the earlier ones, would take 8 seconds. Merged calls take a few batches.
    let mut crowd: Vec<_> = (0..400).map(|_| connect(gateway.port())).collect();
    for line in &mut crowd {
        line.put_query("select * from public.steady('x')");
        line.send().unwrap();
    }
    for line in &mut crowd {
        let answer = line.answer();
        assert_eq!(answer.rows(), [[Some("x".to_owned())]], "{:?}", answer.error());
    }
}

#[test]
fn sighup_makes_new_rules_known_at_once() {
    install();
    new_item("early");
    let gateway = Gateway::start(&patient(&["--lanes", "1", "--catalog-age-ms", "600000"]));
    let mut direct = connect(server().port());
    let made = direct.query(
        "create function public.late_batch(name text[]) returns table (answer text)
         language sql volatile as $$ select * from unnest(name) $$;
         create function public.late(name text, out answer text) language sql volatile as $$ select $1 $$",
    );
    assert_eq!(made.error(), None);
    // A session that has called an unknown function keeps its connection, so each call has its own session.
    let passed = || {
        let mut line = connect(gateway.port());
        let before = gateway.metric("hotrow_passed_through_units_total");
        assert_eq!(line.query("select * from public.late('x')").error(), None);
        gateway.metric("hotrow_passed_through_units_total") > before
    };
    assert!(passed());
    let rule = "select hotrow.add_merge_rule('public.late(text)', 'public.late_batch(text[])', 'name')";
    assert_eq!(direct.query(rule).error(), None);
    assert!(passed(), "the gateway uses the catalog's old state for minutes");
    gateway.signal(nix::sys::signal::Signal::SIGHUP);
    let deadline = Instant::now() + PATIENCE; // half of the age at which the gateway reads the catalog again
    while passed() {
        assert!(Instant::now() < deadline, "the rule is not known long after the signal");
    }
}

#[tokio::test]
async fn clients_that_request_utf8_share_lanes_with_those_that_get_it_by_default() {
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    connect(server().port()).query("create table public.encoded (id int primary key, word text)");
    let mut by_default = connect(gateway.port());
    assert_eq!(by_default.query("insert into public.encoded values (1, 'one')").error(), None);
    let on_request = hotrow_testkit::connect(&gateway.config_in("public")).await;
    on_request.batch_execute("insert into public.encoded values (2, 'deux é')").await.unwrap();
    assert_eq!(gateway.metric("hotrow_packed_units_total"), 2);
    assert_eq!(gateway.metric("hotrow_lanes_connected"), 1);

    // In a database with another encoding, a client that requests UTF-8 gets UTF-8.
    let latin = "create database latin template template0 encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'";
    assert_eq!(connect(server().port()).query(latin).error(), None);
    let on_request = hotrow_testkit::connect(gateway.config().dbname("latin")).await;
    let word = "select 'é' || current_setting('client_encoding') || octet_length('é')";
    assert_eq!(hotrow_testkit::value(&on_request, word).await, "éUTF81");
}
