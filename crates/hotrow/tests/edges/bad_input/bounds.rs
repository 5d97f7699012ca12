//! Bounds on shared resources for one client or one role: memory for answers that are not read, and pools.

use std::time::Duration;

use hotrow_core::limits;
use hotrow_testkit::raw::{Message, Raw, query, startup, tags};

use crate::bad_input::Stage;

const MEGABYTE: u64 = 1 << 20;

/// The first column of all rows, as numbers.
fn numbers(replies: &[Message]) -> Vec<u64> {
    let rows = replies.iter().filter(|message| message.tag == b'D');
    rows.map(|row| String::from_utf8(row.values()[0].clone().unwrap()).unwrap().parse().unwrap()).collect()
}

/// The maximum memory of the gateway while others run statements.
async fn most_memory(stage: &Stage, what: &str) -> u64 {
    let mut most = 0;
    for _ in 0..20 {
        stage.others_are_unaffected(what).await;
        most = most.max(stage.gateway.resident());
        tokio::time::sleep(Duration::from_millis(100)).await; // the time in which a gateway without a bound would read on
    }
    most
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn unread_answers_of_reads_take_little_memory_and_keep_their_order() {
    let stage = Stage::new(&[]).await;
    let wide = "alter table t alter label set storage external; update t set label = repeat('x', 250000) where id = 2";
    stage.direct.batch_execute(wide).await.unwrap();
    let before = stage.gateway.resident();
    let mut unread = Vec::new();
    for _ in 0..20 {
        let mut client = stage.raw().await;
        client.send(&query("select n, label from t where id = 2").repeat(1000)).await;
        unread.push(client);
    }
    let most = most_memory(&stage, "reads with unread answers").await;
    assert!(most < before + 200 * MEGABYTE, "{} MB, {} MB before", most / MEGABYTE, before / MEGABYTE);
    drop(unread);
    // A client that reads late gets every answer, in the order of the row's versions.
    let mut late = stage.raw().await;
    late.send(&query("select n, label from t where id = 2").repeat(100)).await;
    for _ in 0..10 {
        stage.bystander.batch_execute("update t set n = n + 1 where id = 2").await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await; // the versions are spread over the reads
    }
    let replies = late.until_ready(100).await;
    assert_eq!(tags(&replies), "TDCZ".repeat(100));
    let numbers = numbers(&replies);
    assert!(numbers.is_sorted(), "{numbers:?}");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn writes_with_unread_answers_wait_until_the_client_reads() {
    let stage = Stage::new(&[]).await;
    let before = stage.gateway.resident();
    let mut unread = Vec::new();
    for _ in 0..4 {
        let mut client = stage.raw().await;
        let write = query("update t set n = n + 1 where id = 2 returning n, repeat('x', 200000)");
        client.send(&write.repeat(600)).await;
        unread.push(client);
    }
    let most = most_memory(&stage, "writes with unread answers").await;
    assert!(most < before + 250 * MEGABYTE, "{} MB, {} MB before", most / MEGABYTE, before / MEGABYTE);
    let replies = unread[0].until_ready(600).await;
    assert_eq!(tags(&replies), "TDCZ".repeat(600));
    let numbers = numbers(&replies);
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn large_answers_of_a_new_write_are_buffered_once_and_then_passed_through() {
    let stage = Stage::new(&[]).await;
    stage.direct.batch_execute("insert into t select id, 0 from generate_series(3, 40) id").await.unwrap();
    // The lane waits for a lock while the others arrive, because they should be one batch.
    stage.direct.batch_execute("begin; update t set n = n where id = 2").await.unwrap();
    let mut blocked = stage.raw().await;
    blocked.send(&query("update t set n = n + 1 where id = 2")).await;
    let before = stage.gateway.resident();
    let mut unread = Vec::new();
    for id in 3..=40 {
        let mut client = stage.raw().await;
        let write = format!("update t set n = n + 1 where id = {id} returning n, repeat('x', 10000000)");
        client.send(&query(&write)).await;
        unread.push(client);
    }
    let most = most_memory(&stage, "writes with large answers").await;
    assert!(most < before + 150 * MEGABYTE, "{} MB, {} MB before", most / MEGABYTE, before / MEGABYTE);
    stage.direct.batch_execute("rollback").await.unwrap();
    for client in &mut unread {
        let replies = client.until_ready(1).await;
        assert_eq!((tags(&replies), numbers(&replies)), ("TDCZ".to_owned(), vec![1]));
    }
}

/// A client of this user with its own startup setting, and the replies to its login.
async fn with_setting(stage: &Stage, user: &str, value: usize) -> (Raw, Vec<Message>) {
    let mut raw = Raw::open(stage.gateway.port()).await;
    let options = format!("-c geqo_threshold={}", value + 2);
    let parameters = [("user", user), ("database", "postgres"), ("options", options.as_str())];
    raw.send(&startup(0x0003_0000, &parameters)).await;
    let mut replies = Vec::new();
    while let Some(message) = raw.message().await {
        let is_last = matches!(message.tag, b'Z' | b'E');
        replies.push(message);
        if is_last {
            break;
        }
    }
    (raw, replies)
}

#[tokio::test]
async fn unused_pools_are_closed_and_one_role_cannot_have_all() {
    let stage = Stage::new(&[]).await;
    let role = format!("{}_many", stage.schema);
    stage.direct.batch_execute(&format!("create role {role} login")).await.unwrap();
    let is_accepted = |replies: &[Message]| replies.last().is_some_and(|last| last.tag == b'Z');
    for value in 0..limits::POOLS_PER_ROLE_MAX + 5 {
        let (_raw, replies) = with_setting(&stage, &role, value).await;
        assert!(is_accepted(&replies), "the client before has disconnected: {value}");
    }
    let mut all = Vec::new();
    for value in 100..100 + limits::POOLS_PER_ROLE_MAX {
        let (raw, replies) = with_setting(&stage, &role, value).await;
        assert!(is_accepted(&replies), "an unused pool is closed: {value}");
        all.push(raw);
    }
    let (_raw, replies) = with_setting(&stage, &role, 1000).await;
    let refused = replies.last().unwrap();
    assert_eq!(refused.field(b'C').as_deref(), Some("53300"));
    let message = refused.field(b'M').unwrap();
    assert!(message.contains(&role), "{message}");
    let (_raw, replies) = with_setting(&stage, "postgres", 1000).await;
    assert!(is_accepted(&replies), "another role has its own limit");
    for raw in &mut all {
        assert_eq!(tags(&raw.query("select 1").await), "TDCZ", "no pool in use is closed");
    }
    stage.others_are_unaffected("a role with many settings").await;
    drop(all);
    stage.direct.batch_execute(&format!("drop role {role}")).await.unwrap();
}
