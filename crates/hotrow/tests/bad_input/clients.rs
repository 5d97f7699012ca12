//! Clients that don't read and clients that leave in the middle of something.

use std::time::{Duration, Instant};

use hotrow_testkit::raw::{bind, execute, flush, frame, parse, query, sync, tags};
use hotrow_testkit::{rows, until, value};

use crate::Stage;

#[tokio::test]
async fn a_client_that_never_reads_does_not_hold_up_others() {
    let stage = Stage::new(&[]).await;
    let mut deaf = stage.raw().await;
    stage.direct.batch_execute("update t set label = repeat('x', 100000) where id = 2").await.unwrap();
    // Large answers through a lane and on a connection of its own, until the sockets are full.
    let large = [query("select label from t where id = 2"), query("select repeat('y', 100000)")].concat();
    let sending = async {
        for _ in 0..200 {
            deaf.try_send(&large).await.unwrap();
        }
    };
    let filled = tokio::time::timeout(Duration::from_secs(2), sending).await;
    let begun = Instant::now();
    for _ in 0..10 {
        stage.others_go_on("a deaf client").await;
        assert_eq!(value(&stage.bystander, "select length(label) from t where id = 2").await, "100000");
        assert_eq!(value(&stage.bystander, "select count(*) from t").await, "2");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    if filled.is_ok() {
        // Once it reads, it gets all it has asked for.
        let said = deaf.until_ready(400).await;
        assert_eq!(tags(&said), "TDCZ".repeat(400));
        assert!(
            said.iter()
                .all(|message| message.tag != b'D' || message.values()[0].as_ref().unwrap().len() == 100_000)
        );
    }
}

#[tokio::test]
async fn who_leaves_in_a_transaction_has_done_nothing() {
    let stage = Stage::new(&[]).await;
    let update = "update t set n = 1000 where id = 2";
    for (what, bytes, readies) in [
        ("in a transaction", [query("begin"), query(update)].concat(), 2),
        ("in a transaction, politely", [query("begin"), query(update), frame(b'X', b"")].concat(), 2),
        ("in a failed one", [query("begin"), query(update), query("select 1 / 0")].concat(), 3),
    ] {
        let mut raw = stage.raw().await;
        raw.send(&bytes).await;
        raw.until_ready(readies).await;
        drop(raw);
        until("the row is free", async || {
            !rows(&stage.direct, "select 1 from t where id = 2 for update skip locked")
                .await
                .unwrap()
                .is_empty()
        })
        .await;
        stage.others_go_on(what).await;
        assert_eq!(value(&stage.direct, "select n from t where id = 2").await, "0", "{what}");
    }
    let held = "select count(*) from pg_stat_activity where state like 'idle in transaction%'
        and query like '%n = 1000%'";
    until("no transaction is left open", async || value(&stage.direct, held).await == "0").await;
}

#[tokio::test]
async fn who_leaves_before_the_sync_has_done_nothing() {
    let stage = Stage::new(&[]).await;
    let unit = [parse("", "update t set n = 1000 where id = 2"), bind("", "", &[]), execute("", 0)].concat();
    let mut raw = stage.raw().await;
    raw.send(&unit).await;
    drop(raw);
    let mut raw = stage.raw().await;
    raw.send(&[unit.clone(), flush()].concat()).await;
    for _ in 0..3 {
        raw.message().await.unwrap();
    }
    drop(raw);
    until("the row is free", async || {
        !rows(&stage.direct, "select 1 from t where id = 2 for update skip locked").await.unwrap().is_empty()
    })
    .await;
    stage.others_go_on("half a unit").await;
    assert_eq!(value(&stage.direct, "select n from t where id = 2").await, "0");
}

#[tokio::test]
async fn whole_units_are_done_even_if_nobody_waits_for_the_answer() {
    let stage = Stage::new(&[]).await;
    let mut raw = stage.raw().await;
    let unit = [parse("", "update t set n = n + 1 where id = 2"), bind("", "", &[]), execute("", 0), sync()]
        .concat();
    raw.send(&unit.repeat(50)).await;
    raw.send(&frame(b'X', b"")).await;
    assert!(raw.until_closed().await.iter().all(|message| message.tag != b'E'));
    until("all are done", async || value(&stage.direct, "select n from t where id = 2").await == "50").await;
    stage.others_go_on("a client in a hurry").await;
}

#[tokio::test]
async fn what_stands_before_a_goodbye_is_done_on_a_held_connection_too() {
    let stage = Stage::new(&[]).await;
    let mut raw = stage.raw().await;
    let all = query("update t set n = n + 1");
    raw.send(&[all.clone(), all, query("select sum(n) from t"), frame(b'X', b"")].concat()).await;
    assert_eq!(tags(&raw.until_closed().await), "CZCZTDCZ");
    assert_eq!(value(&stage.direct, "select sum(n) from t").await, "4");
}
