//! Tests that the events of one payment are written in order, even if a program crashes between two statements.

use jiff::Timestamp;
use serde_json::json;

use crate::load::repeat_until_answered;
use crate::stage::{GATEWAYS, Stage, payment, signed_by};
use crate::webhooks::{news, send};

const LONG_DELAYS: (&str, &str) = ("RECONCILE_SECONDS", "600");

fn types(stage: &Stage) -> Vec<String> {
    let rows = stage.rows("select type from payments.outbox order by at");
    rows.into_iter().filter_map(|row| row[0].clone()).collect()
}

/// Simulates a crash of the service between the outcome and its event: the next step waits until the event is written.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn no_step_begins_before_the_event_of_the_last_one_is_written() {
    let stage = Stage::with(&[LONG_DELAYS]).await;
    let caller = stage.caller();
    stage.rows("alter table payments.outbox rename to away");
    assert_eq!(caller.post("/v1/payments", "new", &payment(1000, false)).await.0, 503);
    stage.rows("alter table payments.away rename to outbox");
    let id = stage.value("select id from payments.intent");
    let capture = format!("/v1/payments/{id}/capture");
    let (status, reply) = caller.post(&capture, "capture", &json!({})).await;
    assert_eq!((status, &reply["type"]), (409, &json!("payments:under-way")));
    stage.rows("update payments.attempt set due_at = now() where due_at is not null");
    assert_eq!(repeat_until_answered(&caller, &capture, "capture", &json!({})).await.0, 200);
    stage.check_books().await;
    assert_eq!(types(&stage), ["payment.authorized", "payment.captured"]);
}

/// A webhook reports that the order was not executed, and its task is slow. Meanwhile the request gives up and wants to
/// use another gateway. It must wait until the event and the step of the first attempt are written.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn another_gateway_is_not_asked_before_the_consequences_of_the_first_attempt_are_written() {
    let stage = Stage::with(&[LONG_DELAYS, ("GATEWAY_SECONDS", "2")]).await;
    stage.behave(&GATEWAYS, json!({ "forgets": 1.0 })).await;
    let mut holder = stage.connect().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table payments.outbox in exclusive mode").await.unwrap();
    let caller = stage.caller();
    let paying = tokio::spawn({
        let caller = caller.clone();
        async move { caller.post("/v1/payments", "a", &payment(1000, true)).await }
    });
    stage.until("select count(*) from payments.transition", "1").await;
    let gateway = stage.value("select gateway from payments.attempt");
    let body = news(&json!(stage.value("select id from payments.attempt")), "not_executed", "never");
    let signature = signed_by(&gateway, Timestamp::now().as_second(), &body);
    assert_eq!(send(&caller, &gateway, &signature, &body).await, 200);
    let wait_for_it = "select count(*) from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%into payments.outbox%'";
    stage.until(wait_for_it, "2").await;
    assert_eq!(stage.value("select count(*) from payments.attempt"), "1");
    stage.behave(&GATEWAYS, json!({})).await;
    held.rollback().await.unwrap();
    let (status, reply) = paying.await.unwrap();
    assert_eq!((status, &reply["state"]), (201, &json!("captured")));
    stage.check_books().await;
    assert_eq!(types(&stage), ["payment.not_executed", "payment.captured"]);
}
