//! Dependent services: told once, signed, again when they fail, never for ever; the same by the service's own table and by
//! hotrow's queues.

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

use crate::crashes::{bad_manners, compare};
use crate::load::Load;
use crate::stage::{Caller, GATEWAYS, PATIENCE, Plan, Stage, payment};

/// More than there are ever told at once.
const TURNS: usize = 1000;
const SECRET: &str = "a secret of sixteen or more";

/// A dependent service that answers as it is told and keeps what it is sent.
#[derive(Clone)]
struct Shop {
    status: Arc<Mutex<u16>>,
    told: Arc<Mutex<Vec<Value>>>,
    /// Who is told waits for a turn before the answer.
    turns: Arc<Semaphore>,
    /// So many wait for theirs, or are answered at this moment.
    waiting: Arc<AtomicUsize>,
}

/// One who waits for an answer, until it comes or nobody waits for it any more.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Shop {
    /// Open, and known under this name: a worker that was there before may not know it for a second.
    async fn open(stage: &mut Stage, name: &str) -> Self {
        let turns = Arc::new(Semaphore::new(TURNS));
        let status = Arc::new(Mutex::new(200));
        let shop = Self { status, told: Arc::default(), turns, waiting: Arc::default() };
        let router = Router::new().route("/told", post(told)).with_state(shop.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/told", listener.local_addr().unwrap());
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

    /// Answers nobody.
    fn hangs(&self) {
        self.turns.forget_permits(TURNS);
    }

    /// Answers everybody, who waits already too.
    fn goes_on(&self) {
        self.turns.add_permits(TURNS);
    }

    async fn has_waiting(&self, wanted: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.waiting.load(Relaxed) != wanted {
            assert!(Instant::now() < deadline, "{} wait", self.waiting.load(Relaxed));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn told(&self) -> Vec<Value> {
        self.told.lock().unwrap().clone()
    }

    /// Waits until it has been told every event there is; each time the same.
    async fn knows_everything(&self, stage: &Stage) {
        let rows = stage.rows("select id from payments.outbox");
        let events: BTreeSet<String> = rows.into_iter().filter_map(|row| row[0].clone()).collect();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut told: BTreeMap<String, Value> = BTreeMap::new();
            for one in self.told() {
                let first = told.entry(one["id"].as_str().unwrap().to_owned()).or_insert_with(|| one.clone());
                assert_eq!(*first, one, "one event, one text");
            }
            let missing: Vec<_> = events.iter().filter(|id| !told.contains_key(*id)).collect();
            if missing.is_empty() {
                let known = told.keys().filter(|id| events.contains(*id)).count();
                assert_eq!(known, told.len(), "told of an event that there is not");
                return;
            }
            assert!(Instant::now() < deadline, "it was never told {missing:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn told(State(shop): State<Shop>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let signature = headers[HEADER].to_str().unwrap();
    assert_eq!(verify(SECRET, Timestamp::now().as_second(), signature, &body), Ok(()));
    shop.told.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
    shop.waiting.fetch_add(1, Relaxed);
    let _waiting = Waiting(shop.waiting.clone());
    let _turn = shop.turns.acquire().await.unwrap();
    StatusCode::from_u16(*shop.status.lock().unwrap()).unwrap()
}

/// Waits until an endpoint has so many notifications in a state.
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
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn resend(caller: &Caller, event: &Value, endpoint: &str) -> u16 {
    let path = format!("/v1/notifications/{}/{endpoint}/resend", event.as_str().unwrap());
    caller.post(&path, "unused", &json!({})).await.0
}

async fn told_until_they_listen(plan: Plan) {
    let mut stage = Stage::build(plan, &[]).await;
    let caller = stage.caller();
    let (good, bad) = (Shop::open(&mut stage, "good").await, Shop::open(&mut stage, "bad").await);
    bad.answers(500);
    let (_, paid) = caller.post("/v1/payments", "a", &payment(1000, true)).await;

    let delivered = listed(&caller, "good", "delivered", 1).await;
    let dead = listed(&caller, "bad", "dead", 1).await;
    let told = good.told();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["type"], &told[0]["payment"]["payment"]), (&json!("payment.captured"), &paid["id"]));
    // At once, and once for each rung.
    assert_eq!(bad.told().len(), 3);
    assert!(bad.told().iter().all(|again| again["id"] == told[0]["id"]));
    let event = &told[0]["id"];
    let states = (&delivered[0]["event"], &dead[0]["event"], &dead[0]["error"], &dead[0]["tries"]);
    assert_eq!(states, (event, event, &json!("answered 500"), &json!(3)));
    assert!(delivered[0]["delivered_at"].is_string() && dead[0]["delivered_at"].is_null());

    assert_eq!(resend(&caller, event, "good").await, 409, "it has it");
    assert_eq!(resend(&caller, event, "nobody").await, 404);
    bad.answers(204);
    assert_eq!(resend(&caller, event, "bad").await, 200);
    listed(&caller, "bad", "delivered", 1).await;
    assert_eq!((bad.told().len(), good.told().len()), (4, 1));
    listed(&caller, "bad", "dead", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_table_dependents_are_told_until_they_listen_or_we_give_up() {
    told_until_they_listen(Plan::Direct).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_queues_dependents_are_told_until_they_listen_or_we_give_up() {
    told_until_they_listen(Plan::WithQueues).await;
}

/// A person need not wait for the ladder; and what is being told is not told twice at once.
#[tokio::test(flavor = "multi_thread")]
async fn by_the_table_what_waits_for_its_time_is_resent_now() {
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

    shop.hangs();
    assert_eq!(resend(&caller, &event, "shop").await, 200);
    shop.has_waiting(1).await;
    assert_eq!(shop.told().len(), 2);
    assert_eq!(resend(&caller, &event, "shop").await, 200, "while it is told");
    assert_eq!(stage.value("select due_at > now() from payments.notification"), "t", "twice at once");
    shop.goes_on();
    stage.until(refused, "1").await;
    let deadline = Instant::now() + PATIENCE;
    while shop.told().len() < 3 {
        assert!(Instant::now() < deadline, "the second resend is forgotten");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stage.until(refused, "1").await;
    shop.answers(200);
    assert_eq!(resend(&caller, &event, "shop").await, 200);
    listed(&caller, "shop", "delivered", 1).await;
    assert_eq!(resend(&caller, &event, "shop").await, 409, "it has it");
}

/// A queue has no way to bring an order forward, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn by_queues_what_waits_for_its_time_is_not_said_to_be_due() {
    let mut stage = Stage::build(Plan::WithQueues, &[("NOTIFY_SECONDS", "600")]).await;
    let caller = stage.caller();
    let shop = Shop::open(&mut stage, "shop").await;
    shop.answers(500);
    caller.post("/v1/payments", "a", &payment(1000, true)).await;
    let event = json!(stage.value("select id from payments.outbox"));
    let path = format!("/v1/notifications/{}/shop/resend", event.as_str().unwrap());
    let find = format!("select state from hotrow.find_order('payments.shop', '{}')", event.as_str().unwrap());
    stage.until(&find, "delayed").await;
    let (status, told) = caller.post(&path, "unused", &json!({})).await;
    assert_eq!((status, &told["type"]), (409, &json!("payments:pending")));
    assert_eq!(stage.value(&find), "delayed");
}

/// One dependent service hangs: until the worker gives it up after ten seconds, attempts are looked at, and the others told.
async fn who_hangs_holds_up_nobody(plan: Plan) {
    let mut stage = Stage::build(plan, &[("RECONCILE_SECONDS", "600")]).await;
    let caller = stage.caller();
    let (good, bad) = (Shop::open(&mut stage, "good").await, Shop::open(&mut stage, "bad").await);
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    assert_eq!(caller.post("/v1/payments", "in doubt", &payment(1000, true)).await.0, 202);
    stage.behave(&GATEWAYS, json!({})).await;
    bad.hangs();
    caller.post("/v1/payments", "paid", &payment(1000, true)).await;
    bad.has_waiting(1).await;
    stage.rows("update payments.attempt set due_at = now() where state = 'unknown'");
    stage.until("select count(*) from payments.attempt where due_at is null", "2").await;
    listed(&caller, "good", "delivered", 2).await;
    let told = (good.told().len(), bad.told().len(), bad.waiting.load(Relaxed));
    assert_eq!(told, (2, 1, 1), "only after the bad one was given up");
    bad.goes_on();
    listed(&caller, "bad", "delivered", 2).await;
    stage.adds_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_table_who_hangs_holds_up_nobody() {
    who_hangs_holds_up_nobody(Plan::Direct).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_queues_who_hangs_holds_up_nobody() {
    who_hangs_holds_up_nobody(Plan::WithQueues).await;
}

/// A worker that is asked to end finishes what it has taken, and notes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_asked_to_end_finishes_what_it_has_taken() {
    let mut stage = Stage::start().await;
    let caller = stage.caller();
    let shop = Shop::open(&mut stage, "shop").await;
    shop.hangs();
    caller.post("/v1/payments", "a", &payment(1000, true)).await;
    shop.has_waiting(1).await;
    stage.worker.ask_to_end();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(stage.worker.has_ended(), None, "it was told, and not noted");
    shop.goes_on();
    let deadline = Instant::now() + PATIENCE;
    let ended = loop {
        if let Some(ended) = stage.worker.has_ended() {
            break ended;
        }
        assert!(Instant::now() < deadline, "it goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(ended.success(), "{ended}");
    listed(&caller, "shop", "delivered", 1).await;
    assert_eq!(shop.told().len(), 1);
}

/// As when the service is killed between the outcome and the notification: the attempt stays open until it is written.
async fn not_written_not_finished(plan: Plan, table: &str) {
    let mut stage = Stage::build(plan, &[("RECONCILE_SECONDS", "600")]).await;
    let caller = stage.caller();
    let shop = Shop::open(&mut stage, "shop").await;
    let (schema, name) = table.split_once('.').unwrap();
    stage.rows(&format!("alter table {table} rename to away"));
    let (status, _) = caller.post("/v1/payments", "a", &payment(1000, true)).await;
    assert_eq!(status, 503);
    assert_eq!(stage.value("select count(*) from payments.attempt where state = 'succeeded'"), "1");
    assert_eq!(stage.value("select due_at is not null from payments.attempt"), "t", "nobody would find it");
    stage.rows(&format!("alter table {schema}.away rename to {name}"));
    stage.rows("update payments.attempt set due_at = now()");
    shop.knows_everything(&stage).await;
    stage.adds_up().await;
    // And when somebody goes through all of it again, that changes nothing.
    stage.rows("update payments.attempt set due_at = now()");
    stage.adds_up().await;
    listed(&caller, "shop", "delivered", 1).await;
    listed(&caller, "shop", "pending", 0).await;
    assert_eq!(shop.told().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_is_not_finished_before_its_notification_is_in_the_table() {
    not_written_not_finished(Plan::Direct, "payments.notification").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_is_not_finished_before_its_notification_is_in_the_queue() {
    not_written_not_finished(Plan::WithQueues, "hotrow.queue_tail").await;
}

async fn told_whoever_dies(plan: Plan) {
    let mut stage = Stage::build(plan, &[]).await;
    stage.behave(&GATEWAYS, bad_manners()).await;
    let shop = Shop::open(&mut stage, "shop").await;
    let load = Load::start(&stage.caller(), 8);
    for time in 0..6 {
        load.flows(15).await;
        tokio::task::block_in_place(|| match (time % 3, &mut stage.hotrow) {
            (0, _) => stage.service.restart(),
            (1, Some(hotrow)) => hotrow.restart(),
            _ => stage.worker.restart(),
        });
    }
    load.flows(15).await;
    let told = load.stop().await;
    compare(&stage, &told).await;
    // What a worker held when it died is told when its claim has ended.
    shop.knows_everything(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_table_no_event_is_told_to_nobody_whoever_is_killed() {
    told_whoever_dies(Plan::Direct).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_queues_no_event_is_told_to_nobody_whoever_is_killed() {
    told_whoever_dies(Plan::WithQueues).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_queues_through_hotrow_no_event_is_told_to_nobody_whoever_is_killed() {
    told_whoever_dies(Plan::WithQueuesThroughHotrow).await;
}

/// Queues appear while programs run: what is in the table is still sent, what is new goes into them.
#[tokio::test(flavor = "multi_thread")]
async fn queues_that_appear_are_used_and_the_table_is_emptied() {
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
    shop.knows_everything(&stage).await;
    let left = json!({ "id": "00000000-0000-0000-0000-000000000001", "type": "left" });
    stage.rows(&format!(
        "insert into payments.notification (event, endpoint, body, due_at)
        values ('{}', 'shop', '{left}', now())",
        left["id"].as_str().unwrap()
    ));
    let in_table = "select count(*) from payments.notification where due_at is not null";
    stage.until(in_table, "0").await;
    assert_eq!(shop.told().iter().filter(|told| **told == left).count(), 1);
}
