//! Sessions that listen share one connection: however many listen, each gets every notification, and their other
//! statements are packed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hotrow_testkit::raw::tags;
use hotrow_testkit::{PATIENCE, PATIENT_LANES, config, connect, server, until, value};

use crate::{LISTENER, Stage, count_up, next_payload};

#[tokio::test]
async fn a_session_that_only_listens_holds_no_connection_and_its_statements_are_packed() {
    let stage = Stage::new(&PATIENT_LANES).await;
    let mut listener = stage.listener("a").await;
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    until("the client listens", async || shown(&console, &stage.database).await == "idle, listens").await;
    assert_eq!(stage.gateway.metric("hotrow_listening_clients"), 1);
    assert_eq!(stage.gateway.metric("hotrow_listening_connections"), 1);
    let update = "update t set n = n + 1 where id = 1";
    listener.query(update).await;
    let packed = stage.gateway.metric("hotrow_packed_units_total");
    for _ in 0..10 {
        assert_eq!(tags(&listener.query(update).await), "CZ");
    }
    assert_eq!(stage.gateway.metric("hotrow_packed_units_total"), packed + 10);
    stage.direct.batch_execute("notify a, 'x'").await.unwrap();
    assert_eq!(next_payload(&mut listener).await.as_deref(), Some("x"));
    until("it is counted", async || stage.gateway.metric("hotrow_notifications_total") == 1).await;
    assert_eq!(tags(&listener.query("unlisten *").await), "CZ");
    until("the connection is given back", async || shown(&console, &stage.database).await == "idle").await;
    until("no client listens", async || stage.gateway.metric("hotrow_listening_clients") == 0).await;
}

/// The state of the only client of a database.
async fn shown(console: &tokio_postgres::Client, database: &str) -> String {
    let rows = hotrow_testkit::rows(console, "show clients").await.unwrap();
    let row = rows.iter().find(|row| row[3].as_deref() == Some(database)).unwrap();
    row[7].clone().unwrap()
}

#[tokio::test]
async fn a_listening_connection_that_no_session_needs_is_closed() {
    let stage = Stage::new(&["--held-idle-ms", "200"]).await;
    let listener = stage.listener("a").await;
    assert_eq!(stage.connections(LISTENER).await, 1);
    drop(listener);
    until("the connection is closed", async || stage.connections(LISTENER).await == 0).await;
    let none = async || stage.gateway.metric("hotrow_listening_connections") == 0;
    until("the gateway has noticed", none).await;
    let mut listener = stage.listener("b").await;
    stage.direct.batch_execute("notify b, 'x'").await.unwrap();
    assert_eq!(next_payload(&mut listener).await.as_deref(), Some("x"));
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_thousand_listeners_share_one_connection_and_get_a_notification_soon() {
    const LISTENERS: usize = 1_000;
    let stage = Stage::new(&["--held-idle-ms", "500"]).await;
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS {
        listeners.push(stage.listener("everyone").await);
    }
    assert_eq!(stage.connections(LISTENER).await, 1);
    until("other connections are closed", async || stage.backends().await <= 1).await;
    let mut slowest = Vec::new();
    // On a busy machine it takes some rounds until one is undisturbed.
    let deadline = Instant::now() + PATIENCE;
    for round in 0.. {
        let since = Instant::now();
        stage.direct.batch_execute(&format!("notify everyone, '{round}'")).await.unwrap();
        for listener in &mut listeners {
            assert_eq!(next_payload(listener).await, Some(round.to_string()));
        }
        slowest.push(since.elapsed());
        if since.elapsed() < Duration::from_millis(500) {
            break;
        }
        assert!(Instant::now() < deadline, "{slowest:?}");
    }
    println!("the last of {LISTENERS} listeners got the notification after {slowest:?}");
}

#[tokio::test]
async fn listeners_that_come_and_go_miss_nothing_and_get_nothing_twice() {
    let stage = Stage::new(&[]).await;
    let (last, stop) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counter = tokio::spawn(count_up(stage.client().await, "tick", last.clone(), stop.clone()));
    let stage = Arc::new(stage);
    let many: Vec<_> = (0..4)
        .map(|number| {
            let (stage, last) = (stage.clone(), last.clone());
            tokio::spawn(async move { come_and_go(&stage, &last, number).await })
        })
        .collect();
    for one in many {
        one.await.unwrap();
    }
    stop.store(1, Relaxed);
    counter.await.unwrap();
    assert!(last.load(Relaxed) > 100);
}

/// Listens again and again, in different ways, and checks the numbers that arrive.
async fn come_and_go(stage: &Stage, last: &AtomicU32, number: usize) {
    let mut client = stage.raw().await;
    // A connection of its own for a while, beside the shared one.
    if number % 2 == 1 {
        client.query("listen other").await;
    }
    for round in 0..20 {
        let before = last.load(Relaxed);
        let begins: &[&str] =
            if round % 2 == 0 { &["listen tick"] } else { &["begin", "listen tick", "commit"] };
        let mut got = Vec::new();
        for text in begins {
            got.extend(client.query(text).await);
        }
        let after = last.load(Relaxed);
        for text in ["select 1", "update t set n = n + 1 where id = 1", "begin", "select 1", "commit"] {
            got.extend(client.query(text).await);
        }
        while got.iter().filter(|message| message.tag == b'A').count() < 20 {
            got.push(client.message().await.unwrap());
        }
        let ended = last.load(Relaxed);
        got.extend(
            client.query(if round % 3 == 0 { "unlisten *; listen other" } else { "unlisten tick" }).await,
        );
        let numbers: Vec<u32> =
            got.iter().filter_map(crate::notification).map(|(_, payload)| payload.parse().unwrap()).collect();
        let first = numbers[0];
        // One may be committed before its number is recorded here.
        assert!(first > before && first <= after + 2, "{first} is the first after {before} and {after}");
        assert!(numbers.iter().copied().eq(first..first + numbers.len() as u32), "{numbers:?}");
        assert!(first + numbers.len() as u32 > ended, "{numbers:?} up to {ended}");
    }
}

/// A transaction that drops many tables removes their files after its commit, and signals listeners only then. Meanwhile the
/// session takes a connection, whose LISTEN begins after the notification.
#[tokio::test]
async fn a_notification_whose_sender_signals_late_is_not_lost_when_a_session_changes_other_channels() {
    let stage = Stage::new(&[]).await;
    let mut listener = stage.listener("kept").await;
    let mut sender = connect(config(server().port()).dbname(&stage.database)).await;
    for round in 0..3 {
        listener.query("listen other; unlisten other").await; // its connection is open then
        let tables = "create schema large;
            do $$ begin for n in 1..1500 loop execute format('create table large.t%s ()', n); end loop; end $$";
        sender.batch_execute(tables).await.unwrap();
        let text = format!(
            "begin; update t set n = n + 1; notify kept, 'late {round}'; drop schema large cascade; commit"
        );
        let sends = tokio::spawn(async move {
            sender.batch_execute(&text).await.unwrap();
            sender
        });
        // Without a pause, because the files are removed soon.
        while value(&stage.direct, "select n from t").await != (round + 1).to_string() {}
        let mut got = listener.query("listen other; notify kept, 'own'; notify other, 'own'").await;
        while got.iter().filter(|message| message.tag == b'A').count() < 3 {
            got.push(listener.message().await.unwrap());
        }
        let payloads: Vec<_> =
            got.iter().filter_map(crate::notification).map(|(_, payload)| payload).collect();
        assert_eq!(payloads, [format!("late {round}"), "own".to_owned(), "own".to_owned()]);
        sender = sends.await.unwrap();
        assert_eq!(tags(&listener.query("unlisten other").await), "CZ", "nothing comes twice");
    }
}

#[tokio::test]
async fn one_listening_connection_serves_sessions_with_different_settings() {
    let stage = Stage::new(&[]).await;
    let mut listeners = Vec::new();
    for work_mem in ["1MB", "2MB", "3MB"] {
        let mut listener = stage.listener("a").await;
        listener.query(&format!("set work_mem = '{work_mem}'")).await;
        listener.query("listen b").await;
        listeners.push(listener);
    }
    assert_eq!(stage.connections(LISTENER).await, 1);
    for channel in ["a", "b"] {
        stage.direct.batch_execute(&format!("notify {channel}, 'x'")).await.unwrap();
        for listener in &mut listeners {
            assert_eq!(next_payload(listener).await.as_deref(), Some("x"));
        }
    }
}

#[tokio::test]
async fn connections_are_given_back_without_channels() {
    let stage = Stage::new(&["--held-connections-max", "1"]).await;
    let mut listener = stage.listener("a").await;
    let other = stage.client().await;
    for _ in 0..20 {
        let replies = listener.query("select count(*) from pg_listening_channels()").await;
        assert_eq!(tags(&replies).trim_start_matches('A'), "TDCZ");
        assert_eq!(value(&other, "select count(*) from pg_listening_channels()").await, "0");
        stage.direct.batch_execute("notify a").await.unwrap();
    }
}
