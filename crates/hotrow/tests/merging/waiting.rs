//! Calls that wait for a result: they are answered as soon as there is one, from any writer and whatever happens to the
//! listening connection; and they end when their time is over, their client disconnects, or the gateway stops.

use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::{Answer, Line, until};
use hotrow_testkit::{Gateway, migrate, patient, server};
use nix::sys::signal::Signal;

use crate::connect;
use tokio_postgres::NoTls;

/// Longer than any test: a call that is answered earlier was woken.
const FOR_EVER: &str = "1 hour";

fn direct(sql: &str) -> Answer {
    let answer = connect(server().port()).query(sql);
    assert_eq!(answer.error(), None, "{sql}");
    answer
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::migrate_once();
        direct(include_str!("boxes.sql"));
    });
}

/// A gateway, and a box whose calls are repeated after `again` without a notification.
fn stage(name: &str, again: &str) -> Gateway {
    install();
    direct(&format!("insert into boxes.box values ('{name}', '{again}')"));
    Gateway::start(&patient(&["--lanes", "1"]))
}

fn take(name: &str, wait: &str) -> String {
    format!("select * from boxes.take('{name}', 1, '{wait}')")
}

fn put(port: u16, name: &str, word: &str) {
    assert_eq!(connect(port).query(&format!("select boxes.put('{name}', '{word}')")).error(), None);
}

fn until_waiting(gateway: &Gateway, count: u64) {
    until("calls wait", || gateway.metric("hotrow_waiting_calls") == count);
}

/// Sends the call and waits until `waiting` calls wait. Counting them first would miss calls that are repeated at that
/// moment, because the listening connection has just been opened.
fn begin(gateway: &Gateway, sql: &str, waiting: u64) -> Line {
    let mut line = connect(gateway.port());
    line.put_query(sql);
    line.send().unwrap();
    until_waiting(gateway, waiting);
    line
}

fn words(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.error(), None);
    answer.rows().into_iter().map(|row| row[1].clone().unwrap()).collect()
}

#[test]
fn a_waiting_call_is_answered_when_any_writer_adds_a_word() {
    let gateway = stage("woken", FOR_EVER);
    let other = Gateway::start(&patient(&["--lanes", "1"]));
    for (port, word) in [(gateway.port(), "same"), (other.port(), "other"), (server().port(), "direct")] {
        let mut line = begin(&gateway, &take("woken", FOR_EVER), 1);
        put(port, "woken", word);
        let answer = line.answer();
        assert_eq!(words(&answer), [word]);
        assert_eq!(answer.command().as_deref(), Some("SELECT 1"));
        until_waiting(&gateway, 0);
    }
    assert!(gateway.metric("hotrow_merged_units_total") >= 3);
}

#[test]
fn answers_are_byte_for_byte_those_of_a_direct_call() {
    let gateway = stage("same", FOR_EVER);
    let ask = |port: u16, wait: &str| {
        let mut line = connect(port);
        let simple = line.query(&format!("select word as w, n from boxes.take('same', 2, '{wait}') t"));
        line.put_unnamed_call(
            "select word from boxes.take($1, $2, $3)",
            &[Some("same"), Some("2"), Some(wait)],
        );
        line.put_sync();
        line.send().unwrap();
        [simple, line.answer()]
    };
    let due = ask(server().port(), "0");
    assert_eq!(due[0].rows().len(), 0);
    for wait in ["0", "-1 s", "20 ms"] {
        let got = ask(gateway.port(), wait);
        assert_eq!(got.each_ref().map(Answer::frames), due.each_ref().map(Answer::frames), "{wait}");
    }
    let since = Instant::now();
    assert_eq!(ask(gateway.port(), "300 ms"), due);
    assert!(
        since.elapsed() >= Duration::from_millis(600),
        "no word was added, and the calls waited {:?}",
        since.elapsed()
    );
    let sql = "select t from boxes.take($1, 1, '1 h') t";
    let mut line = connect(gateway.port());
    line.put_unnamed_call(sql, &[Some("same")]); // this call cannot be merged and waits in the server
    line.put_sync();
    line.send().unwrap();
    put(server().port(), "same", "word");
    assert_eq!(line.answer().rows().len(), 1);
}

#[test]
fn each_word_goes_to_one_waiting_call() {
    let gateway = stage("shared", FOR_EVER);
    direct("insert into boxes.box values ('others', '1 hour')");
    let mut lines: Vec<Line> = (1..=12).map(|n| begin(&gateway, &take("shared", FOR_EVER), n)).collect();
    let mut other = begin(&gateway, &take("others", FOR_EVER), 13);
    for word in 0..lines.len() {
        put(server().port(), "shared", &word.to_string());
    }
    let mut got: Vec<usize> =
        lines.iter_mut().map(|line| words(&line.answer())[0].parse().unwrap()).collect();
    got.sort_unstable();
    assert_eq!(got, (0..12).collect::<Vec<_>>());
    until_waiting(&gateway, 1);
    put(gateway.port(), "others", "late");
    assert_eq!(words(&other.answer()), ["late"]);
}

#[test]
fn no_word_is_lost_between_the_answer_and_the_wait() {
    let gateway = stage("busy", FOR_EVER);
    let (workers, each) = (6, 40);
    thread::scope(|scope| {
        for _ in 0..workers {
            let port = gateway.port();
            scope.spawn(move || {
                let mut line = connect(port);
                for _ in 0..each {
                    assert_eq!(words(&line.query(&take("busy", FOR_EVER))).len(), 1);
                }
            });
        }
        let mut line = connect(server().port());
        for word in 0..workers * each {
            assert_eq!(line.query(&format!("select boxes.put('busy', '{word}')")).error(), None);
        }
    });
}

#[test]
fn a_call_without_a_notification_is_repeated_after_its_batch_functions_interval() {
    let gateway = stage("silent", "100 ms");
    let mut line = begin(&gateway, &take("silent", FOR_EVER), 1);
    direct("insert into boxes.word (box, word) values ('silent', 'found')");
    assert_eq!(words(&line.answer()), ["found"]);
}

#[test]
fn killing_the_listening_connection_loses_no_word() {
    // Its own server, because the test ends the listening connections of all gateways.
    let server = PrivateServer::builder().label("deaf").start().unwrap();
    migrate(&server.url());
    server.query(include_str!("boxes.sql")).unwrap();
    server.query(&format!("insert into boxes.box values ('deaf', '{FOR_EVER}')")).unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &patient(&["--lanes", "1"]));
    for word in ["one", "two", "three"] {
        let mut line = begin(&gateway, &take("deaf", FOR_EVER), 1);
        until("the gateway listens", || {
            let end = "select pg_terminate_backend(pid, 30000) from pg_stat_activity where application_name = 'hotrow listener'";
            !server.query(end).unwrap().is_empty()
        });
        put(server.port(), "deaf", word);
        assert_eq!(words(&line.answer()), [word]);
    }
}

#[test]
fn a_client_that_disconnects_stops_waiting_and_takes_no_word() {
    let gateway = stage("gone", FOR_EVER);
    let (left, mut stays) =
        (begin(&gateway, &take("gone", FOR_EVER), 1), begin(&gateway, &take("gone", FOR_EVER), 2));
    drop(left);
    until_waiting(&gateway, 1);
    put(server().port(), "gone", "kept");
    assert_eq!(words(&stays.answer()), ["kept"]);
}

#[test]
fn statements_sent_after_a_waiting_call_wait_for_it() {
    let gateway = stage("first", FOR_EVER);
    direct(
        "create table public.after_wait (id int primary key, n int not null); insert into public.after_wait values (1, 0)",
    );
    let mut line = connect(gateway.port());
    line.put_query("update public.after_wait set n = n + 1 where id = 1");
    line.put_query(&take("first", FOR_EVER));
    line.put_query("update public.after_wait set n = n + 10 where id = 1");
    line.send().unwrap();
    assert_eq!(line.answer().command().as_deref(), Some("UPDATE 1"));
    until_waiting(&gateway, 1);
    line.put_query("select n from public.after_wait where id = 1");
    line.send().unwrap();
    let n = || direct("select n from public.after_wait").rows()[0][0].clone().unwrap();
    assert_eq!(n(), "1");
    put(server().port(), "first", "go");
    assert_eq!(words(&line.answer()), ["go"]);
    assert_eq!(line.answer().command().as_deref(), Some("UPDATE 1"));
    assert_eq!(line.answer().rows()[0][0].as_deref(), Some("11"));
}

#[tokio::test]
async fn a_waiting_call_that_is_cancelled_ends_at_once() {
    let gateway = stage("cancelled", FOR_EVER);
    let (client, connection) = gateway.config().connect(NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let cancel = client.cancel_token();
    let waits = tokio::spawn(async move {
        let ended = client.simple_query(&take("cancelled", FOR_EVER)).await;
        (ended.map(|_| ()), client)
    });
    hotrow_testkit::until("the call waits", async || gateway.metric("hotrow_waiting_calls") == 1).await;
    cancel.cancel_query(NoTls).await.unwrap();
    let (ended, client) = waits.await.unwrap();
    assert_eq!(ended.unwrap_err().code().unwrap().code(), "57014");
    client.simple_query("select 1").await.unwrap();
    until_waiting(&gateway, 0);
    connection.abort();
}

#[test]
fn a_bad_call_gets_its_own_error_and_waiting_calls_keep_waiting() {
    let gateway = stage("bad", FOR_EVER);
    let mut line = begin(&gateway, &take("bad", FOR_EVER), 1);
    let bad = connect(gateway.port()).query("select * from boxes.take('bad', -1, '1 hour')");
    assert_eq!(bad.error().unwrap().code, "22023");
    until_waiting(&gateway, 1);
    put(gateway.port(), "bad", "good");
    assert_eq!(words(&line.answer()), ["good"]);
}

#[test]
fn a_gateway_that_stops_ends_the_wait_with_an_empty_answer() {
    let mut gateway = stage("stopped", FOR_EVER);
    let mut line = begin(&gateway, &take("stopped", FOR_EVER), 1);
    let since = Instant::now();
    gateway.signal(Signal::SIGTERM);
    assert!(words(&line.answer()).is_empty());
    assert_eq!(line.answer().error().unwrap().code, "57P01");
    assert!(gateway.wait().success());
    assert!(since.elapsed() < Duration::from_secs(9), "the stop took {:?}", since.elapsed());
}

#[tokio::test]
async fn pause_closes_the_listening_connection_and_no_word_is_missed_meanwhile() {
    let gateway = stage("paused", FOR_EVER);
    let console = hotrow_testkit::connect(gateway.config().dbname("hotrow")).await;
    let port = gateway.port();
    let waits = thread::spawn(move || {
        let mut line = connect(port);
        line.query(&take("paused", FOR_EVER))
    });
    // The call is repeated once when the gateway has begun to listen, so it may be in a lane for a moment.
    hotrow_testkit::until("the console shows the waiting call", async || {
        let shown = console.simple_query("show units").await.unwrap();
        shown.iter().any(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => {
                row.get("state") == Some("waits for something to answer")
            }
            _ => false,
        })
    })
    .await;
    console.simple_query("pause").await.unwrap();
    put(server().port(), "paused", "word");
    assert_eq!(gateway.metric("hotrow_lanes_connected"), 0);
    console.simple_query("resume").await.unwrap();
    assert_eq!(words(&waits.join().unwrap()), ["word"]);
    console.simple_query("reconnect").await.unwrap();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(words(&connect(port).query(&take("paused", FOR_EVER))), ["again"]));
        until_waiting(&gateway, 1);
        put(server().port(), "paused", "again");
    });
}
