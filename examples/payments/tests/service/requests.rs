//! Tests idempotency keys, and payments from start to end as a merchant sees them.

use std::io::{Read, Write};
use std::net::TcpStream;

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::load::repeat_until_answered;
use crate::stage::{GATEWAYS, Stage, payment, signed_by};
use crate::webhooks::{news, send};

const TAKE_OVER: &str = include_str!("../../sql/take_over_request.sql");

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_one_request_and_its_answer() {
    let stage = Stage::start().await;
    let caller = stage.caller();
    let first = caller.post("/v1/payments", "a", &payment(1000, true)).await;
    assert_eq!(first.0, 201, "{first:?}");
    assert_eq!(caller.post("/v1/payments", "a", &payment(1000, true)).await, first);
    let other = caller.post("/v1/payments", "a", &payment(1001, true)).await;
    assert_eq!((other.0, &other.1["type"]), (422, &json!("payments:idempotency-key-reused")));
    let path = format!("/v1/payments/{}/refund", first.1["id"].as_str().unwrap());
    assert_eq!(caller.post(&path, "a", &json!({})).await.0, 422, "another path is another request");

    // The gateway is slow, so the request is still running.
    stage.behave(&GATEWAYS, json!({ "latency_ms": 300 })).await;
    let slow = tokio::spawn({
        let caller = caller.clone();
        async move { caller.post("/v1/payments", "slow", &payment(1000, true)).await }
    });
    stage.until("select count(*) from payments.request where key = 'slow'", "1").await;
    let running = caller.post("/v1/payments", "slow", &payment(1000, true)).await;
    assert_eq!((running.0, &running.1["type"]), (409, &json!("payments:idempotency-key-running")));
    let slow = slow.await.unwrap();
    assert_eq!(slow.0, 201);
    assert_eq!(caller.post("/v1/payments", "slow", &payment(1000, true)).await, slow);
    stage.check_books().await;
}

/// A whole answer without its date.
fn whole(stage: &Stage, path: &str, key: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", stage.service_port)).unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: shop\r\nidempotency-key: {key}\r\ncontent-length: {length}\r\nconnection: close"
    );
    socket.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.lines().filter(|line| !line.starts_with("date:")).collect::<Vec<_>>().join("\n")
}

/// A request that the payment's state has refused stays refused, even if it would succeed by now. A merchant has to make
/// a new request.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_refused_stays_refused() {
    let stage = Stage::start().await;
    let caller = stage.caller();
    let (_, new) = caller.post("/v1/payments", "new", &payment(1000, false)).await;
    let path = |command: &str| format!("/v1/payments/{}/{command}", new["id"].as_str().unwrap());
    let (refund, capture) = (path("refund"), path("capture"));
    let ask =
        |path: &str, key: &str, body: &str| tokio::task::block_in_place(|| whole(&stage, path, key, body));
    let too_early = ask(&refund, "too-early", "{}");
    assert!(
        too_early.starts_with("HTTP/1.1 409") && too_early.contains("payments:wrong-state"),
        "{too_early}"
    );
    let part = json!({ "amount": 600 });
    assert_eq!(caller.post(&capture, "part", &part).await.0, 200);
    let too_much = ask(&capture, "too-much", &part.to_string());
    assert!(too_much.starts_with("HTTP/1.1 422"), "{too_much}");
    assert_eq!(caller.post(&capture, "rest", &json!({})).await.0, 200);

    assert_eq!(ask(&refund, "too-early", "{}"), too_early);
    assert_eq!(ask(&capture, "too-much", &part.to_string()), too_much);
    assert!(too_early.contains("content-type: application/problem+json"), "{too_early}");
    let (_, read) = caller.get(&format!("/v1/payments/{}", new["id"].as_str().unwrap())).await;
    assert_eq!((&read["state"], &read["refunded"]), (&json!("captured"), &json!(0)));
    assert_eq!(caller.post(&refund, "in-time", &json!({})).await.0, 200);
    stage.check_books().await;
}

/// A slow first run is refused because the run that took it over did the work. The answer of the second run is the
/// request's answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_taken_over_does_not_record_a_refusal() {
    let stage = Stage::with(&[("RECONCILE_SECONDS", "600"), ("KEY_SECONDS", "600")]).await;
    let caller = stage.caller();
    let (_, new) = caller.post("/v1/payments", "new", &payment(1000, false)).await;
    let path = format!("/v1/payments/{}/capture", new["id"].as_str().unwrap());
    let mut holder = stage.connect().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table payments.intent in access exclusive mode").await.unwrap();
    let slow = tokio::spawn({
        let (caller, path) = (caller.clone(), path.clone());
        async move { caller.post(&path, "slow", &json!({})).await }
    });
    stage.wait_for_lock("from payments.intent").await;
    // Simulates a run that takes the request over and captures.
    let taken_over =
        held.execute(TAKE_OVER, &[&"slow", &run_of(&stage, "slow"), &Uuid::now_v7()]).await.unwrap();
    assert_eq!(taken_over, 1);
    held.batch_execute("update payments.intent set state = 'captured', captured = amount").await.unwrap();
    held.commit().await.unwrap();
    let (status, reply) = slow.await.unwrap();
    assert_eq!((status, &reply["type"]), (409, &json!("payments:idempotency-key-running")));
    assert_eq!(stage.value("select status is null from payments.request where key = 'slow'"), "t");
}

fn run_of(stage: &Stage, key: &str) -> Uuid {
    stage.value(&format!("select run from payments.request where key = '{key}'")).parse().unwrap()
}

/// A later run is refused. The first run may only be slow, and be the reason for the refusal.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_after_the_first_does_not_record_a_refusal() {
    let stage = Stage::with(&[("RECONCILE_SECONDS", "600")]).await;
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    let caller = stage.caller();
    let (status, new) = caller.post("/v1/payments", "new", &payment(1000, true)).await;
    assert_eq!(status, 202, "the outcome of its attempt is unknown: {new}");
    let path = format!("/v1/payments/{}/capture", new["id"].as_str().unwrap());
    let first = caller.post(&path, "again", &json!({})).await;
    assert_eq!((first.0, &first.1["type"]), (409, &json!("payments:under-way")));
    stage.rows("update payments.attempt set due_at = now()");
    stage.until("select state from payments.intent", "captured").await;
    let second = caller.post(&path, "again", &json!({})).await;
    assert_eq!((second.0, &second.1["type"]), (409, &json!("payments:wrong-state")));
    assert_eq!(stage.value("select status is null from payments.request where key = 'again'"), "t");
    stage.check_books().await;
}

/// A run is so slow that another run takes its request over and answers. The answer of the second run is kept.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_two_answers_to_a_request_is_kept() {
    let stage = Stage::with(&[("KEY_SECONDS", "0.1"), ("RECONCILE_SECONDS", "600")]).await;
    let mut holder = stage.connect().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table payments.outbox in exclusive mode").await.unwrap();
    let caller = stage.caller();
    let slow = tokio::spawn({
        let caller = caller.clone();
        async move { caller.post("/v1/payments", "a", &payment(1000, true)).await }
    });
    stage.wait_for_lock("payments.outbox").await;
    let first = repeat_until_answered(&caller, "/v1/payments", "a", &payment(1000, true)).await;
    assert_eq!((first.0, &first.1["state"]), (201, &json!("captured")));
    held.rollback().await.unwrap();
    let slow = slow.await.unwrap();
    assert_eq!((slow.0, &slow.1["type"]), (409, &json!("payments:idempotency-key-running")));
    assert_eq!(caller.post("/v1/payments", "a", &payment(1000, true)).await, first);
    stage.rows("update payments.attempt set due_at = now() where due_at is not null");
    stage.check_books().await;
}

/// Between the attempt's decision and the intent's step, the answer has the state that follows from the outcome, not the
/// old state of the intent.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_outcome_before_the_intent_has_it() {
    let stage = Stage::with(&[("RECONCILE_SECONDS", "600")]).await;
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    let caller = stage.caller();
    let (status, doubted) = caller.post("/v1/payments", "a", &payment(1000, true)).await;
    assert_eq!((status, &doubted["state"]), (202, &json!("authorizing")));
    let mut holder = stage.connect().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("select from payments.intent for update").await.unwrap();
    let attempt = &doubted["last_attempt"];
    let body = news(&attempt["id"], "succeeded", "done");
    let gateway = attempt["gateway"].as_str().unwrap();
    let signature = signed_by(gateway, Timestamp::now().as_second(), &body);
    assert_eq!(send(&caller, gateway, &signature, &body).await, 200);
    stage.wait_for_lock("update payments.intent").await;
    let (status, reply) = caller.post("/v1/payments", "a", &payment(1000, true)).await;
    let sums = (&reply["state"], &reply["captured"], &reply["gateway"], &reply["version"]);
    assert_eq!((status, sums), (201, (&json!("captured"), &json!(1000), &attempt["gateway"], &json!(3))));
    held.rollback().await.unwrap();
    stage.until("select state from payments.intent", "captured").await;
    stage.check_books().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_captured_refunded_and_released_within_its_bounds() {
    let stage = Stage::start().await;
    let caller = stage.caller();
    let (status, new) = caller.post("/v1/payments", "new", &payment(1000, false)).await;
    assert_eq!((status, &new["state"]), (201, &json!("authorized")));
    let id = new["id"].as_str().unwrap();
    let path = |command: &str| format!("/v1/payments/{id}/{command}");
    let steps = [
        ("capture", json!({ "amount": 1001 }), 422, "", 0, 0),
        ("refund", json!({}), 409, "", 0, 0),
        ("capture", json!({ "amount": 300 }), 200, "authorized", 300, 0),
        ("capture", json!({ "amount": 701 }), 422, "", 0, 0),
        ("cancel", json!({}), 200, "captured", 300, 0),
        ("capture", json!({}), 409, "", 0, 0),
        ("confirm", json!({}), 409, "", 0, 0),
        ("refund", json!({ "amount": 301 }), 422, "", 0, 0),
        ("refund", json!({ "amount": 100 }), 200, "captured", 300, 100),
        ("refund", json!({}), 200, "refunded", 300, 300),
        ("refund", json!({}), 409, "", 0, 0),
    ];
    for (step, (command, body, wanted, state, captured, refunded)) in steps.into_iter().enumerate() {
        let (status, reply) = caller.post(&path(command), &format!("step-{step}"), &body).await;
        assert_eq!(status, wanted, "{command}: {reply}");
        if status == 200 {
            let sums = (&reply["state"], &reply["captured"], &reply["refunded"]);
            assert_eq!(sums, (&json!(state), &json!(captured), &json!(refunded)), "{command}");
        }
    }
    let (_, read) = caller.get(&format!("/v1/payments/{id}")).await;
    let kinds: Vec<_> = read["attempts"].as_array().unwrap().iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, ["authorize", "capture", "void", "refund", "refund"]);
    let (_, listed) = caller.get("/v1/payments?merchant=shop&limit=1").await;
    assert_eq!((&listed["payments"][0]["id"], &listed["before"]), (&json!(id), &json!(id)));
    let (_, rest) = caller.get(&format!("/v1/payments?merchant=shop&before={id}")).await;
    assert_eq!(rest["payments"], json!([]));
    stage.check_books().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_is_unknown_until_the_gateway_reports_it() {
    let stage = Stage::start().await;
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    let caller = stage.caller();
    let (status, reply) = caller.post("/v1/payments", "a", &payment(1000, true)).await;
    // A worker may determine the outcome before the answer is written. The answer then has this outcome.
    let known = status == 201 && reply["state"] == "captured";
    assert!(known || status == 202 && reply["state"] == "authorizing", "{status} {reply}");
    let (status, reply) = repeat_until_answered(&caller, "/v1/payments", "a", &payment(1000, true)).await;
    assert_eq!((status, &reply["state"]), (201, &json!("captured")));
    stage.check_books().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_gateway_is_excluded_and_another_is_tried() {
    let mut stage = Stage::start().await;
    let caller = stage.caller();
    tokio::task::block_in_place(|| stage.gateways.kill_dash_nine());
    let (status, reply) = caller.post("/v1/payments", "a", &payment(1000, true)).await;
    assert_eq!((status, &reply["type"]), (503, &json!("payments:no-gateway")));
    assert_eq!(stage.value("select count(*) from payments.attempt where state = 'not_executed'"), "3");
    tokio::task::block_in_place(|| stage.gateways.restart());
    let (status, reply) = repeat_until_answered(&caller, "/v1/payments", "a", &payment(1000, true)).await;
    assert_eq!((status, &reply["state"]), (201, &json!("captured")));
    assert_eq!(stage.value("select count(*) from payments.intent"), "1");

    // A gateway answers 503. After several of these answers it is excluded, and the others get its payments.
    stage.behave(&["lotus"], json!({ "down": true })).await;
    for number in 0..60 {
        let key = format!("b-{number}");
        caller.post("/v1/payments", &key, &payment(1000, true)).await;
    }
    let doubted = "select count(*) < 30 from payments.attempt where gateway = 'lotus' and code like '%503%'";
    stage.until(doubted, "t").await;
    stage.behave(&["lotus"], json!({})).await;
    stage.check_books().await;
}
