//! Clients that do not read, and clients that disconnect during a transaction or message.

use std::time::{Duration, Instant};

use hotrow_testkit::raw::{bind, execute, flush, frame, parse, query, sync, tags};
use hotrow_testkit::{rows, until, value};

use crate::bad_input::Stage;

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_client_that_never_reads_does_not_hold_up_others() {
    let stage = Stage::new(&[]).await;
    let mut unread = stage.raw().await;
    stage.direct.batch_execute("update t set label = repeat('x', 100000) where id = 2").await.unwrap();
    // Large answers of a lane and of a held connection, until the sockets are full.
    let large = [query("select label from t where id = 2"), query("select repeat('y', 100000)")].concat();
    let sending = async {
        for _ in 0..200 {
            unread.try_send(&large).await.unwrap();
        }
    };
    let others = async |what: &str| {
        let begun = Instant::now();
        for _ in 0..10 {
            stage.others_are_unaffected(what).await;
            assert_eq!(value(&stage.bystander, "select length(label) from t where id = 2").await, "100000");
            assert_eq!(value(&stage.bystander, "select count(*) from t").await, "2");
        }
        begun.elapsed()
    };
    let alone = others("no other client").await;
    let filled = tokio::time::timeout(Duration::from_secs(2), sending).await;
    let beside = others("a client that does not read").await;
    assert!(beside < Duration::from_secs(10) + 3 * alone, "{beside:?}, and {alone:?} before");
    if filled.is_ok() {
        // When the client reads, it gets all its answers.
        let replies = unread.until_ready(400).await;
        assert_eq!(tags(&replies), "TDCZ".repeat(400));
        assert!(
            replies
                .iter()
                .all(|message| message.tag != b'D' || message.values()[0].as_ref().unwrap().len() == 100_000)
        );
    }
}

#[tokio::test]
async fn disconnecting_in_a_transaction_rolls_it_back() {
    let stage = Stage::new(&[]).await;
    let update = "update t set n = 1000 where id = 2";
    for (what, bytes, readies) in [
        ("in a transaction", [query("begin"), query(update)].concat(), 2),
        ("in a transaction, with Terminate", [query("begin"), query(update), frame(b'X', b"")].concat(), 2),
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
        stage.others_are_unaffected(what).await;
        assert_eq!(value(&stage.direct, "select n from t where id = 2").await, "0", "{what}");
    }
    let held = "select count(*) from pg_stat_activity where state like 'idle in transaction%'
        and query like '%n = 1000%'";
    until("no transaction is left open", async || value(&stage.direct, held).await == "0").await;
}

#[tokio::test]
async fn disconnecting_before_the_sync_rolls_the_unit_back() {
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
    stage.others_are_unaffected("half a unit").await;
    assert_eq!(value(&stage.direct, "select n from t where id = 2").await, "0");
}

#[tokio::test]
async fn complete_units_run_even_if_the_client_disconnects() {
    let stage = Stage::new(&[]).await;
    let mut raw = stage.raw().await;
    let unit = [parse("", "update t set n = n + 1 where id = 2"), bind("", "", &[]), execute("", 0), sync()]
        .concat();
    raw.send(&unit.repeat(50)).await;
    raw.send(&frame(b'X', b"")).await;
    assert!(raw.until_closed().await.iter().all(|message| message.tag != b'E'));
    until("all are done", async || value(&stage.direct, "select n from t where id = 2").await == "50").await;
    stage.others_are_unaffected("a client that disconnects at once").await;
}

#[tokio::test]
async fn statements_before_a_terminate_run_on_a_held_connection_too() {
    let stage = Stage::new(&[]).await;
    let mut raw = stage.raw().await;
    let all = query("update t set n = n + 1");
    raw.send(&[all.clone(), all, query("select sum(n) from t"), frame(b'X', b"")].concat()).await;
    assert_eq!(tags(&raw.until_closed().await), "CZCZTDCZ");
    assert_eq!(value(&stage.direct, "select sum(n) from t").await, "4");
}
