//! Tests notifications to dependent services: signed, sent once, repeated after failures, and dead after the last delay.
//! The tests run with the service's own table and with Hotrow's queues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use jiff::Timestamp;
use payments::signature::{HEADER, verify};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::crashes::{compare, failing_behaviour};
use crate::load::Load;
use crate::stage::{Caller, GATEWAYS, PATIENCE, Plan, Stage, payment};

/// More than the number of simultaneous notifications.
const TURNS: usize = 1000;
const SECRET: &str = "a secret of sixteen or more";

/// A dependent service with a configurable answer. It records the notifications that it receives.
#[derive(Clone)]
struct Shop {
    status: Arc<Mutex<u16>>,
    received: Arc<Mutex<Vec<Value>>>,
    /// A notification waits for a permit before its answer.
    turns: Arc<Semaphore>,
    /// The number of notifications that wait for an answer or are being answered.
    waiting: Arc<AtomicUsize>,
}

/// A notification that waits for its answer, until it is answered or its sender gives up.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Shop {
    /// Starts a dependent service and registers it under this name. A running worker may notice it only after a second.
    async fn open(stage: &mut Stage, name: &str) -> Self {
        let turns = Arc::new(Semaphore::new(TURNS));
        let status = Arc::new(Mutex::new(200));
        let shop = Self { status, received: Arc::default(), turns, waiting: Arc::default() };
        let router = Router::new().route("/received", post(received)).with_state(shop.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/received", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let body = json!({ "url": url, "secret": SECRET }).to_string();
        let path = format!("/v1/endpoints/{name}");
        let answer = stage.caller().send("PUT", &path, &[], body).await.unwrap();
        assert_eq!(answer.0, 200, "{answer:?}");
        tokio::task::block_in_place(|| stage.worker.restart());
        shop
    }

    fn answers(&self, status: u16) {
        *self.status.lock().unwrap() = status;
    }

    /// Answers no notification from now on.
    fn hang(&self) {
        self.turns.forget_permits(TURNS);
    }

    /// Answers all notifications from now on, including those that are waiting.
    fn resume(&self) {
        self.turns.add_permits(TURNS);
    }

    async fn wait_for_waiting(&self, wanted: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.waiting.load(Relaxed) != wanted {
            assert!(Instant::now() < deadline, "{} wait", self.waiting.load(Relaxed));
            tokio::time::sleep(Duration::from_millis(10)).await; // the condition has no signal
        }
    }

    fn received(&self) -> Vec<Value> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until it has received every event. Repetitions of an event must be equal.
    async fn wait_for_all_events(&self, stage: &Stage) {
        let rows = stage.rows("select id from payments.outbox");
        let events: BTreeSet<String> = rows.into_iter().filter_map(|row| row[0].clone()).collect();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut received: BTreeMap<String, Value> = BTreeMap::new();
            for one in self.received() {
                let first =
                    received.entry(one["id"].as_str().unwrap().to_owned()).or_insert_with(|| one.clone());
                assert_eq!(*first, one, "one event, one text");
            }
            let missing: Vec<_> = events.iter().filter(|id| !received.contains_key(*id)).collect();
            if missing.is_empty() {
                let known = received.keys().filter(|id| events.contains(*id)).count();
                assert_eq!(known, received.len(), "received an unknown event");
                return;
            }
            assert!(Instant::now() < deadline, "it never received {missing:?}");
            tokio::time::sleep(Duration::from_millis(50)).await; // the condition has no signal
        }
    }
}

async fn received(State(shop): State<Shop>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let signature = headers[HEADER].to_str().unwrap();
    assert_eq!(verify(SECRET, Timestamp::now().as_second(), signature, &body), Ok(()));
    shop.received.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
    shop.waiting.fetch_add(1, Relaxed);
    let _waiting = Waiting(shop.waiting.clone());
    let _turn = shop.turns.acquire().await.unwrap();
    StatusCode::from_u16(*shop.status.lock().unwrap()).unwrap()
}

/// Waits until an endpoint has this number of notifications in a state.
async fn listed(caller: &Caller, endpoint: &str, state: &str, wanted: usize) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, page) =
            caller.get(&format!("/v1/notifications?endpoint={endpoint}&state={state}")).await;
        assert_eq!(status, 200, "{page}");
        let listed = page["notifications"].as_array().unwrap();
        if listed.len() == wanted {
            return listed.clone();
        }
        assert!(Instant::now() < deadline, "{endpoint} has {listed:?}");
        tokio::time::sleep(Duration::from_millis(20)).await; // the condition has no signal
    }
}

async fn resend(caller: &Caller, event: &Value, endpoint: &str) -> u16 {
    let path = format!("/v1/notifications/{}/{endpoint}/resend", event.as_str().unwrap());
    caller.post(&path, "unused", &json!({})).await.0
}

async fn repeated_until_delivered_or_dead(plan: Plan) {
    let mut stage = Stage::build(plan, &[]).await;
    let caller = stage.caller();
    let (good, bad) = (Shop::open(&mut stage, "good").await, Shop::open(&mut stage, "bad").await);
    bad.answers(500);
    let (_, paid) = caller.post("/v1/payments", "a", &payment(1000, true)).await;

    let delivered = listed(&caller, "good", "delivered", 1).await;
    let dead = listed(&caller, "bad", "dead", 1).await;
    let received = good.received();
    assert_eq!(received.len(), 1);
    assert_eq!(
        (&received[0]["type"], &received[0]["payment"]["payment"]),
        (&json!("payment.captured"), &paid["id"])
    );
    // Immediately, and once after each delay.
    assert_eq!(bad.received().len(), 3);
    assert!(bad.received().iter().all(|again| again["id"] == received[0]["id"]));
    let event = &received[0]["id"];
    let states = (&delivered[0]["event"], &dead[0]["event"], &dead[0]["error"], &dead[0]["tries"]);
    assert_eq!(states, (event, event, &json!("answered 500"), &json!(3)));
    assert!(delivered[0]["delivered_at"].is_string() && dead[0]["delivered_at"].is_null());

    assert_eq!(resend(&caller, event, "good").await, 409, "the endpoint has it");
    assert_eq!(resend(&caller, event, "nobody").await, 404);
    bad.answers(204);
    assert_eq!(resend(&caller, event, "bad").await, 200);
    listed(&caller, "bad", "delivered", 1).await;
    assert_eq!((bad.received().len(), good.received().len()), (4, 1));
    listed(&caller, "bad", "dead", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn with_the_table_notifications_are_repeated_until_delivered_or_dead() {
    repeated_until_delivered_or_dead(Plan::Direct).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn with_queues_notifications_are_repeated_until_delivered_or_dead() {
    repeated_until_delivered_or_dead(Plan::WithQueues).await;
}

/// An operator can resend before the next delay, and a notification is never sent twice at once.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn with_the_table_a_delayed_notification_can_be_resent_now() {
    let mut stage = Stage::build(Plan::Direct, &[("NOTIFY_SECONDS", "600")]).await;
    let caller = stage.caller();
    let shop = Shop::open(&mut stage, "shop").await;
    shop.answers(500);
    caller.post("/v1/payments", "a", &payment(1000, true)).await;
    let refused =
        "select count(*) from payments.notification where error is not null and claimed_until is null";
    stage.until(refused, "1").await;
    let event = json!(stage.value("select event from payments.notification"));
    assert_eq!(stage.value("select due_at > now() from payments.notification"), "t");

    shop.hang();
    assert_eq!(resend(&caller, &event, "shop").await, 200);
    shop.wait_for_waiting(1).await;
    assert_eq!(shop.received().len(), 2);
    assert_eq!(resend(&caller, &event, "shop").await, 200, "while it is being sent");
    assert_eq!(stage.value("select due_at > now() from payments.notification"), "t", "twice at once");
    shop.resume();
    stage.until(refused, "1").await;
    let deadline = Instant::now() + PATIENCE;
    while shop.received().len() < 3 {
        assert!(Instant::now() < deadline, "the second resend was lost");
        tokio::time::sleep(Duration::from_millis(20)).await; // the condition has no signal
    }
    stage.until(refused, "1").await;
    shop.answers(200);
    assert_eq!(resend(&caller, &event, "shop").await, 200);
    listed(&caller, "shop", "delivered", 1).await;
    assert_eq!(resend(&caller, &event, "shop").await, 409, "the endpoint has it");
}

/// A delayed order in a queue cannot be moved forward, and the service answers so.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn with_queues_a_delayed_notification_cannot_be_resent() {
    let mut stage = Stage::build(Plan::WithQueues, &[("NOTIFY_SECONDS", "600")]).await;
    let caller = stage.caller();
    let shop = Shop::open(&mut stage, "shop").await;
    shop.answers(500);
    caller.post("/v1/payments", "a", &payment(1000, true)).await;
    let event = json!(stage.value("select id from payments.outbox"));
    let path = format!("/v1/notifications/{}/shop/resend", event.as_str().unwrap());
    let find = format!("select state from hotrow.find_order('payments.shop', '{}')", event.as_str().unwrap());
    stage.until(&find, "delayed").await;
    let (status, received) = caller.post(&path, "unused", &json!({})).await;
    assert_eq!((status, &received["type"]), (409, &json!("payments:pending")));
    assert_eq!(stage.value(&find), "delayed");
}

/// One dependent service hangs. Until the worker gives up after ten seconds, attempts are processed and the other
/// services are notified. A busy machine can take longer for that, but hardly three times in a row.
async fn a_hanging_endpoint_delays_no_other(plan: Plan) {
    let mut tries = Vec::new();
    for _ in 0..3 {
        let received = beside_a_hanging_endpoint(plan).await;
        if received == (2, 1, 1) {
            return;
        }
        tries.push(received);
    }
    panic!("only after the bad one was given up: {tries:?}");
}

/// Returns the numbers of notifications that the good service and the bad one have received when the work is done, and of
/// those to which the bad one has not answered.
async fn beside_a_hanging_endpoint(plan: Plan) -> (usize, usize, usize) {
    let mut stage = Stage::build(plan, &[("RECONCILE_SECONDS", "600")]).await;
    let caller = stage.caller();
    let (good, bad) = (Shop::open(&mut stage, "good").await, Shop::open(&mut stage, "bad").await);
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    assert_eq!(caller.post("/v1/payments", "in doubt", &payment(1000, true)).await.0, 202);
    stage.behave(&GATEWAYS, json!({})).await;
    bad.hang();
    caller.post("/v1/payments", "paid", &payment(1000, true)).await;
    bad.wait_for_waiting(1).await;
    stage.rows("update payments.attempt set due_at = now() where state = 'unknown'");
    stage.until("select count(*) from payments.attempt where due_at is null", "2").await;
    listed(&caller, "good", "delivered", 2).await;
    let received = (good.received().len(), bad.received().len(), bad.waiting.load(Relaxed));
    bad.resume();
    listed(&caller, "bad", "delivered", 2).await;
    stage.check_books().await;
    received
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn with_the_table_a_hanging_endpoint_delays_no_other() {
    a_hanging_endpoint_delays_no_other(Plan::Direct).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn with_queues_a_hanging_endpoint_delays_no_other() {
    a_hanging_endpoint_delays_no_other(Plan::WithQueues).await;
}

/// A worker that is asked to stop finishes and records the notifications that it has claimed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_worker_that_is_asked_to_end_finishes_its_claims() {
    let mut stage = Stage::start().await;
    let caller = stage.caller();
    let shop = Shop::open(&mut stage, "shop").await;
    shop.hang();
    caller.post("/v1/payments", "a", &payment(1000, true)).await;
    shop.wait_for_waiting(1).await;
    stage.worker.ask_to_end();
    // A worker that does not wait for its claims ends within this time. No signal shows that it still works.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(stage.worker.has_ended(), None, "the delivery is not recorded yet");
    shop.resume();
    let deadline = Instant::now() + PATIENCE;
    let ended = loop {
        if let Some(ended) = stage.worker.has_ended() {
            break ended;
        }
        assert!(Instant::now() < deadline, "the worker does not end");
        tokio::time::sleep(Duration::from_millis(20)).await; // the condition has no signal
    };
    assert!(ended.success(), "{ended}");
    listed(&caller, "shop", "delivered", 1).await;
    assert_eq!(shop.received().len(), 1);
}

/// Simulates a crash of the service between the outcome and the notification: the attempt stays unfinished until the
/// notification is written.
async fn unfinished_until_written(plan: Plan, table: &str) {
    let mut stage = Stage::build(plan, &[("RECONCILE_SECONDS", "600")]).await;
    let caller = stage.caller();
    let shop = Shop::open(&mut stage, "shop").await;
    let (schema, name) = table.split_once('.').unwrap();
    stage.rows(&format!("alter table {table} rename to away"));
    let (status, _) = caller.post("/v1/payments", "a", &payment(1000, true)).await;
    assert_eq!(status, 503);
    assert_eq!(stage.value("select count(*) from payments.attempt where state = 'succeeded'"), "1");
    assert_eq!(
        stage.value("select due_at is not null from payments.attempt"),
        "t",
        "no worker would find it"
    );
    stage.rows(&format!("alter table {schema}.away rename to {name}"));
    stage.rows("update payments.attempt set due_at = now()");
    shop.wait_for_all_events(&stage).await;
    stage.check_books().await;
    // A repetition of all steps changes nothing.
    stage.rows("update payments.attempt set due_at = now()");
    stage.check_books().await;
    listed(&caller, "shop", "delivered", 1).await;
    listed(&caller, "shop", "pending", 0).await;
    assert_eq!(shop.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn an_attempt_is_not_finished_before_its_notification_is_in_the_table() {
    unfinished_until_written(Plan::Direct, "payments.notification").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn an_attempt_is_not_finished_before_its_notification_is_in_the_queue() {
    unfinished_until_written(Plan::WithQueues, "hotrow.queue_tail").await;
}

async fn delivered_despite_crashes(plan: Plan) {
    let mut stage = Stage::build(plan, &[]).await;
    stage.behave(&GATEWAYS, failing_behaviour()).await;
    let shop = Shop::open(&mut stage, "shop").await;
    let load = Load::start(&stage.caller(), 8);
    for time in 0..6 {
        load.wait_for(15).await;
        tokio::task::block_in_place(|| match (time % 3, &mut stage.hotrow) {
            (0, _) => stage.service.restart(),
            (1, Some(hotrow)) => hotrow.restart(),
            _ => stage.worker.restart(),
        });
    }
    load.wait_for(15).await;
    let received = load.stop().await;
    compare(&stage, &received).await;
    // Notifications that a killed worker had claimed are sent after the claim has expired.
    shop.wait_for_all_events(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn with_the_table_every_event_is_delivered_despite_crashes() {
    delivered_despite_crashes(Plan::Direct).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn with_queues_every_event_is_delivered_despite_crashes() {
    delivered_despite_crashes(Plan::WithQueues).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn with_queues_through_hotrow_every_event_is_delivered_despite_crashes() {
    delivered_despite_crashes(Plan::WithQueuesThroughHotrow).await;
}

/// Queues are installed while programs run. Notifications in the table are still sent, and new ones go into the queues.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn new_queues_are_used_and_the_table_is_emptied() {
    let mut stage = Stage::build(Plan::Direct, &[]).await;
    let caller = stage.caller();
    let shop = Shop::open(&mut stage, "shop").await;
    caller.post("/v1/payments", "first", &payment(1000, true)).await;
    listed(&caller, "shop", "delivered", 1).await;

    stage.migrate();
    let deadline = Instant::now() + PATIENCE;
    for number in 0.. {
        caller.post("/v1/payments", &format!("then-{number}"), &payment(1000, true)).await;
        if stage.value("select count(*) from hotrow.queue_order") != "0" {
            break;
        }
        assert!(Instant::now() < deadline, "the queues are not used");
    }
    shop.wait_for_all_events(&stage).await;
    let left = json!({ "id": "00000000-0000-0000-0000-000000000001", "type": "left" });
    stage.rows(&format!(
        "insert into payments.notification (event, endpoint, body, due_at)
        values ('{}', 'shop', '{left}', now())",
        left["id"].as_str().unwrap()
    ));
    let in_table = "select count(*) from payments.notification where due_at is not null";
    stage.until(in_table, "0").await;
    assert_eq!(shop.received().iter().filter(|received| **received == left).count(), 1);
}
