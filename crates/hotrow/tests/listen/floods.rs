//! A client that does not read its notifications holds up nobody, and does not use memory without bound.

use hotrow_testkit::raw::tags;

use crate::{Stage, notification};

/// Notifications of 8 KB.
const FLOOD: usize = 6_000;

#[tokio::test]
async fn a_client_that_does_not_read_is_told_and_others_get_everything() {
    let stage = Stage::new(&[]).await;
    let mut deaf = Vec::new();
    for _ in 0..20 {
        deaf.push(stage.listener("flood").await);
    }
    let mut busy = stage.listener("flood").await;
    assert_eq!(tags(&busy.query("begin").await), "CZ");
    let mut reads = stage.listener("flood").await;
    let before = stage.gateway.resident();
    for first in (1..=FLOOD).step_by(100) {
        let text = format!(
            "select count(pg_notify('flood', rpad(n || ' ', 7999, 'x'))) from generate_series({first}, {}) n",
            first + 99
        );
        stage.direct.batch_execute(&text).await.unwrap();
        for number in first..first + 100 {
            let (_, payload) = notification(&reads.message().await.unwrap()).unwrap();
            assert!(payload.starts_with(&format!("{number} ")), "{number}");
        }
    }
    // 20 clients share what waits for them.
    let grown = stage.gateway.resident().saturating_sub(before);
    assert!(grown < 100 << 20, "the gateway has grown by {} MiB", grown >> 20);
    for client in &mut deaf {
        let end = client.until_closed().await;
        for (number, message) in (1..).zip(&end) {
            match notification(message) {
                Some((_, payload)) => assert!(payload.starts_with(&format!("{number} ")), "{number}"),
                // A client that does not read for long does not get this either.
                None => assert_eq!(message.field(b'C').as_deref(), Some("53200")),
            }
        }
    }
    assert_eq!(stage.gateway.metric("hotrow_refused_total"), 21);
    // A long transaction is finished before its client is told.
    assert_eq!(tags(&busy.query("select 1").await), "TDCZ");
    busy.send(&hotrow_testkit::raw::query("commit")).await;
    let end = busy.until_closed().await;
    assert_eq!(end.last().unwrap().field(b'C').as_deref(), Some("53200"));
    assert!(end.len() < FLOOD, "{}", end.len());
}

#[tokio::test]
async fn a_flood_in_one_transaction_of_the_listener_itself_comes_before_its_ready_for_query() {
    let stage = Stage::new(&[]).await;
    let mut listener = stage.listener("own").await;
    let replies =
        listener.query("select count(pg_notify('own', n::text)) from generate_series(1, 5000) n").await;
    let numbers: Vec<_> = replies.iter().filter_map(notification).map(|(_, payload)| payload).collect();
    assert!(numbers.iter().cloned().eq((1..=5000).map(|number| number.to_string())), "{}", numbers.len());
    assert_eq!(tags(&replies).replace('A', ""), "TDCZ");
}
