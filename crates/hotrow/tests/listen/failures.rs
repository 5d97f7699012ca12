//! The listening connection is lost, replaced, or closed by an operator: no client misses a notification without being
//! told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use hotrow_testkit::raw::{Raw, tags};
use hotrow_testkit::{connect, until, value};

use crate::{LISTENER, Stage, count_up, notification};

/// The numbers that a listener gets, without a gap, until its connection is closed or a certain number is there. `got` is
/// the last one so far. Returns the last number and the error that has ended it.
async fn listen(mut raw: Raw, end: Arc<AtomicU32>, got: Arc<AtomicU32>) -> (u32, Option<String>) {
    let (mut next, mut error) = (None, None);
    while let Some(message) = raw.message().await {
        if message.tag == b'E' {
            error = message.field(b'C');
        }
        let Some((_, payload)) = notification(&message) else { continue };
        let number: u32 = payload.parse().unwrap();
        assert_eq!(number, *next.get_or_insert(number), "a notification is missing, or came twice");
        next = Some(number + 1);
        got.store(number, Relaxed);
        if end.load(Relaxed) == number {
            break;
        }
    }
    (next.map_or(0, |next| next - 1), error)
}

async fn terminate_listener(stage: &Stage) {
    let text = format!(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity
          where datname = current_database() and application_name = '{LISTENER}'"
    );
    assert_eq!(value(&stage.direct, &text).await, "1");
}

#[tokio::test]
async fn clients_of_a_lost_listening_connection_are_told_and_get_no_gap_before() {
    let stage = Stage::new(&[]).await;
    let (last, stop, never) =
        (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counter = tokio::spawn(count_up(stage.client().await, "tick", last.clone(), stop.clone()));
    for _ in 0..3 {
        let (mut listeners, mut got) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            got.push(Arc::new(AtomicU32::new(0)));
            let got = got.last().unwrap().clone();
            listeners.push(tokio::spawn(listen(stage.listener("tick").await, never.clone(), got)));
        }
        let mut working = stage.listener("tick").await;
        working.query("begin").await;
        let before = last.load(Relaxed);
        until("notifications are sent", async || last.load(Relaxed) > before + 20).await;
        let all_have = async || got.iter().all(|got| got.load(Relaxed) > before);
        until("each listener has got some", all_have).await;
        terminate_listener(&stage).await;
        for listener in listeners {
            let (number, error) = listener.await.unwrap();
            assert!(number > before, "{number} after {before}");
            assert_eq!(error.as_deref(), Some("08006"));
        }
        // A transaction is finished first.
        assert_eq!(tags(&working.query("select 1").await), "TDCZ");
        working.send(&hotrow_testkit::raw::query("commit")).await;
        let end = working.until_closed().await;
        assert_eq!(tags(&end).replace('A', ""), "CZE");
        assert_eq!(end.last().unwrap().field(b'C').as_deref(), Some("08006"));
    }
    stop.store(1, Relaxed);
    counter.await.unwrap();
    until("no client listens", async || stage.gateway.metric("hotrow_listening_clients") == 0).await;
}

#[tokio::test]
async fn reconnect_replaces_the_listening_connection_and_no_client_notices() {
    let stage = Stage::new(&[]).await;
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    let (last, stop, end) =
        (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counter = tokio::spawn(count_up(stage.client().await, "tick", last.clone(), stop.clone()));
    let mut listeners = Vec::new();
    for _ in 0..5 {
        listeners.push(tokio::spawn(listen(stage.listener("tick").await, end.clone(), Arc::default())));
    }
    let pid = || async {
        let text = format!(
            "select min(pid) from pg_stat_activity where datname = current_database() and application_name = '{LISTENER}'"
        );
        value(&stage.direct, &text).await
    };
    for _ in 0..10 {
        let before = pid().await;
        console.simple_query("reconnect").await.unwrap();
        until("the old connection is closed", async || stage.connections(LISTENER).await == 1).await;
        assert_ne!(pid().await, before);
        // A session that comes in between.
        let mut other = stage.listener("other").await;
        assert_eq!(tags(&other.query("notify other").await), "CAZ");
    }
    stop.store(1, Relaxed);
    counter.await.unwrap();
    end.store(last.load(Relaxed) + 1, Relaxed);
    stage.direct.batch_execute(&format!("notify tick, '{}'", last.load(Relaxed) + 1)).await.unwrap();
    for listener in listeners {
        assert_eq!(listener.await.unwrap(), (last.load(Relaxed) + 1, None));
    }
}

#[tokio::test]
async fn pause_closes_the_listening_connection_and_its_clients_are_told() {
    let stage = Stage::new(&[]).await;
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    let mut listener = stage.listener("a").await;
    console.simple_query("pause").await.unwrap();
    until("all connections are closed", async || stage.backends().await == 0).await;
    let end = listener.until_closed().await;
    assert_eq!(tags(&end), "E");
    assert_eq!(end[0].field(b'C').as_deref(), Some("57P01"));
    console.simple_query("resume").await.unwrap();
    let mut listener = stage.listener("a").await;
    assert_eq!(tags(&listener.query("notify a").await), "CAZ");
}

#[tokio::test]
async fn a_session_keeps_its_connection_if_the_listening_one_cannot_be_opened() {
    let stage = Stage::new(&["--server-wait-ms", "100"]).await;
    let role = &stage.database;
    stage.direct.batch_execute(&format!("create role {role} login")).await.unwrap();
    let mut listener =
        Raw::login(stage.gateway.port(), &[("user", role), ("database", &stage.database)]).await;
    listener.query("select 1").await;
    // The session has its connections, and gets no further one.
    stage.direct.batch_execute(&format!("alter role {role} nologin")).await.unwrap();
    assert_eq!(tags(&listener.query("listen a").await), "CZ");
    assert_eq!(tags(&listener.query("notify a").await), "CAZ");
    stage.direct.batch_execute("notify a").await.unwrap();
    assert_eq!(listener.message().await.unwrap().tag, b'A');
    assert_eq!(stage.connections(LISTENER).await, 0);
    stage.direct.batch_execute(&format!("alter role {role} login")).await.unwrap();
    assert_eq!(tags(&listener.query("listen b").await), "CZ");
    assert_eq!(stage.connections(LISTENER).await, 1);
    stage.direct.batch_execute("begin; notify b; notify a; commit").await.unwrap();
    for channel in ["b", "a"] {
        assert_eq!(notification(&listener.message().await.unwrap()).unwrap().0, channel);
    }
}

#[tokio::test]
async fn a_gateway_that_stops_ends_its_listeners() {
    let mut stage = Stage::new(&[]).await;
    let mut listener = stage.listener("a").await;
    stage.gateway.sigterm();
    let end = listener.until_closed().await;
    assert_eq!(end[0].field(b'C').as_deref(), Some("57P01"));
    assert!(
        tokio::time::timeout(Duration::from_secs(9), async { stage.gateway.wait() }).await.unwrap().success()
    );
}
