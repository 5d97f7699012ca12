//! Queues over HTTP: the answer of each path, calls that wait, and clients that disconnect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hotrow_testkit::{connect, until, until_it_blocks, value};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Http2, Reply};
use crate::{Api, client};

fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn order(number: u32) -> String {
    json!({ "order_id": id(number) }).to_string()
}

/// Creates a queue and returns its path.
async fn queue(api: &Api, name: &str, settings: &str) -> String {
    let path = format!("/v1/queues/{name}");
    assert_eq!(api.ok("PUT", &path, settings).await, json!({"status": "created"}));
    path
}

async fn take(api: &Api, path: &str, body: &str) -> Vec<Value> {
    api.ok("POST", &format!("{path}/take"), body).await["orders"].as_array().unwrap().clone()
}

fn receipt(path: &str, order: &Value, action: &str) -> String {
    format!("{path}/receipts/{}/{action}", order["receipt"])
}

const FAILED: &str = r#"{"error": "no stock", "retry_in": 0}"#;

fn outcome(outcome: &str) -> Value {
    json!({ "outcome": outcome })
}

/// Enqueues the orders 1 to 3, the first one repeatedly.
async fn enqueue_three(api: &Api, orders: &str) {
    let payload =
        r#"{"price": 12.50, "serial": 12345678901234567890123456789, "text": "é \ud83d\ude00 \\u0000"}"#;
    let first = format!(
        r#"{{"order_id": "{}", "payload": {payload}, "group_key": "ann", "priority": 0,
            "created_at": "2020-01-01T01:00:00+01:00", "not_before": null}}"#,
        id(1)
    );
    let enqueued = api.ok("POST", orders, &first).await;
    assert_eq!(enqueued["status"], "enqueued");
    assert_eq!(api.ok("POST", orders, &first).await, json!({"id": enqueued["id"], "status": "duplicate"}));
    let many =
        json!({"orders": [{"order_id": id(1)}, {"order_id": id(2), "payload": "two"}, {"order_id": id(3)}]});
    let many = api.ok("POST", &format!("{orders}/batch"), &many.to_string()).await;
    let statuses: Vec<_> = many["orders"].as_array().unwrap().iter().map(|order| &order["status"]).collect();
    assert_eq!(statuses, ["duplicate", "enqueued", "enqueued"]);
    let waiting = api.ok("GET", &format!("{orders}?state=waiting&max=2"), "").await;
    assert_eq!(waiting["orders"][1]["order_id"], id(2));
    let after = format!("{orders}?after={}", waiting["orders"][1]["id"]);
    assert_eq!(api.ok("GET", &after, "").await["orders"][0]["order_id"], id(3));
}

/// Takes the three orders. Completes the first, releases the second and fails the third.
async fn take_and_answer_three(api: &Api, path: &str, orders: &str) {
    let taken = take(api, path, r#"{"max": 10, "lease": 60.5}"#).await;
    let ids: Vec<_> = taken.iter().map(|order| order["order_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, [id(1), id(2), id(3)]);
    assert_eq!((&taken[0]["group_key"], &taken[0]["attempt"]), (&json!("ann"), &json!(1)));
    assert_eq!(taken[0]["created_at"], "2020-01-01T00:00:00Z");
    assert_eq!((&taken[1]["payload"], &taken[2]["payload"]), (&json!("two"), &Value::Null));
    let found = client::json(api.port, "GET", &format!("{orders}/{}", id(1)), "").await;
    assert_eq!(found.json()["state"], "leased");
    for digits in ["12.50", "12345678901234567890123456789"] {
        assert!(found.text.contains(digits), "{found:?}");
    }
    let extended = api.ok("POST", &receipt(path, &taken[0], "extend"), r#"{"lease": 600}"#).await;
    assert_eq!(extended["outcome"], "extended");
    let complete = receipt(path, &taken[0], "complete");
    let done = r#"{"status": 7, "result": {"a": [1, null]}}"#;
    assert_eq!(api.ok("POST", &complete, done).await, outcome("completed"));
    assert_eq!(api.ok("POST", &complete, done).await, outcome("lease_lost"));
    let found = api.ok("GET", &format!("{orders}/{}", id(1)), "").await;
    assert_eq!((&found["state"], &found["status"]), (&json!("processed"), &json!(7)));
    assert_eq!(found["result"], json!({"a": [1, null]}));
    assert_eq!(api.ok("POST", &receipt(path, &taken[1], "release"), "").await, outcome("released"));
    assert_eq!(api.ok("POST", &receipt(path, &taken[2], "fail"), FAILED).await, outcome("retrying"));
}

/// Takes the released and the failed order. Completes the first and fails the second, which is then dead and redriven.
async fn take_two_again(api: &Api, path: &str, orders: &str) {
    let again = take(api, path, r#"{"max": 2}"#).await;
    assert_eq!((&again[0]["attempt"], &again[1]["attempt"]), (&json!(1), &json!(2)));
    assert_eq!(api.ok("POST", &receipt(path, &again[1], "fail"), FAILED).await, outcome("dead"));
    let dead = api.ok("GET", &format!("{orders}?state=dead"), "").await;
    assert_eq!(dead["orders"][0]["error"], "no stock");
    let all = json!({"receipts": [again[0]["receipt"], again[1]["receipt"]]}).to_string();
    let all = api.ok("POST", &format!("{path}/complete"), &all).await;
    assert_eq!(all["receipts"][0], json!({"receipt": again[0]["receipt"], "outcome": "completed"}));
    assert_eq!(all["receipts"][1]["outcome"], "lease_lost");
    assert_eq!(api.ok("POST", &format!("{path}/redrive"), "").await, json!({"redriven": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_created_used_and_dropped() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "life", r#"{"max_attempts": 2, "retry": 0}"#).await;
    for (settings, status) in [(r#"{"max_attempts": 2, "retry": 0}"#, "exists"), ("", "differs")] {
        assert_eq!(api.ok("PUT", &path, settings).await, json!({ "status": status }));
    }
    let orders = format!("{path}/orders");
    enqueue_three(&api, &orders).await;
    take_and_answer_three(&api, &path, &orders).await;
    take_two_again(&api, &path, &orders).await;

    assert_eq!(api.ok("POST", &format!("{path}/pause"), "").await, json!({"status": "paused"}));
    assert!(take(&api, &path, "").await.is_empty());
    let stats = api.ok("GET", &path, "").await;
    assert_eq!((&stats["depth"], &stats["processed"]), (&json!(1), &json!(2)));
    assert_eq!((&stats["dead"], &stats["paused"]), (&json!(0), &json!(true)));
    let listed = api.ok("GET", "/v1/queues?after=lifd&max=1", "").await;
    assert_eq!((&listed["queues"][0]["queue"], &listed["queues"][0]["depth"]), (&json!("life"), &json!(1)));
    assert_eq!(api.ok("POST", &format!("{path}/resume"), "").await, json!({"status": "resumed"}));
    let last = take(&api, &path, r#"{"at_most_once": true}"#).await;
    assert_eq!((&last[0]["order_id"], &last[0]["receipt"]), (&json!(id(3)), &Value::Null));
    assert_eq!(api.ok("GET", &path, "").await["processed"], 3);

    for status in ["dropped", "unknown_queue"] {
        assert_eq!(api.ok("DELETE", &path, "").await, json!({ "status": status }));
    }
    let unknown = json!({"id": null, "status": "unknown_queue"});
    assert_eq!(api.ok("POST", &format!("{path}/orders"), &order(9)).await, unknown);
    let gone = client::json(api.port, "GET", &path, "").await;
    assert_eq!((gone.status, gone.problem().as_str()), (404, "not-found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_rejected() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "invalid", "").await;
    let order = |field: &str| format!(r#"{{"order_id": "{}", {field}}}"#, id(1));
    let (orders, batch, taking) =
        (format!("{path}/orders"), format!("{path}/orders/batch"), format!("{path}/take"));
    let fail = format!("{path}/receipts/1/fail");
    for (target, body) in [
        (&orders, "{}".to_owned()),
        (&orders, r#"{"order_id": "7"}"#.to_owned()),
        (&orders, order(r#""payload": "\u0000""#)),
        (&orders, order(r#""payload": "\ud83d""#)),
        (&orders, order(&format!(r#""payload": {}{}"#, "[".repeat(101), "]".repeat(101)))),
        (&orders, order(r#""group_key": """#)),
        (&orders, order(&format!(r#""group_key": "{}""#, "k".repeat(501)))),
        (&orders, order(r#""created_at": "1969-12-31T23:59:59Z""#)),
        (&orders, order(r#""priority": 61"#)),
        (&batch, r#"{"orders": []}"#.to_owned()),
        (&batch, json!({"orders": vec![json!({"order_id": id(1)}); 1001]}).to_string()),
        (&taking, r#"{"max": 0}"#.to_owned()),
        (&taking, r#"{"max": -1}"#.to_owned()),
        (&taking, r#"{"max": 1001}"#.to_owned()),
        (&taking, r#"{"lease": 0}"#.to_owned()),
        (&taking, r#"{"lease": 2592001}"#.to_owned()),
        (&taking, r#"{"wait": 61}"#.to_owned()),
        (&taking, r#"{"lease": 1, "at_most_once": true}"#.to_owned()),
        (&fail, r#"{"error": "\u0000"}"#.to_owned()),
        (&fail, r#"{"retry_in": -1}"#.to_owned()),
        (&format!("{path}/receipts/1/extend"), "{}".to_owned()),
        (&format!("{path}/receipts/x/complete"), String::new()),
        (&format!("{path}/receipts/-1/release"), String::new()),
        (&format!("{path}/complete"), r#"{"receipts": [-1]}"#.to_owned()),
    ] {
        let refused = client::json(api.port, "POST", target, &body).await;
        assert_eq!((refused.status, refused.problem().as_str()), (400, "bad-request"), "{target} {body}");
    }
    for target in [format!("{orders}?state=lost"), format!("{orders}?max=0"), "/v1/queues?max=0".to_owned()] {
        assert_eq!(client::json(api.port, "GET", &target, "").await.status, 422, "{target}");
    }
    for (body, status) in
        [(r#"{"shards": 17}"#, 422), (r#"{"order_by": "chance"}"#, 422), (r#"{"retry": -1}"#, 400)]
    {
        assert_eq!(client::json(api.port, "PUT", &path, body).await.status, status, "{body}");
    }
    let unknown = client::json(api.port, "GET", &format!("{orders}/{}", id(1)), "").await;
    assert_eq!((unknown.status, unknown.problem().as_str()), (404, "not-found"));
    let large = json!({"orders": [{"order_id": id(1), "payload": "x".repeat(200_000)}]}).to_string();
    assert_eq!(api.ok("POST", &batch, &large).await["orders"][0]["status"], "enqueued");
    let larger = json!({"orders": [{"order_id": id(2), "payload": "x".repeat(1_100_000)}]}).to_string();
    let refused = client::json(api.port, "POST", &batch, &larger).await;
    assert_eq!((refused.status, refused.problem().as_str()), (413, "body-too-large"));
    let too_large = json!({"orders": [{"order_id": id(3), "payload": noise(300_000)}]}).to_string();
    assert_eq!(client::json(api.port, "POST", &batch, &too_large).await.status, 422);
}

/// Text that cannot be compressed.
fn noise(length: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    (0..length).map(|_| random.alphanumeric()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_are_merged_and_each_order_is_taken_once() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "crowd", "").await;
    let http2 = Http2::connect(api.port).await;
    let (bodies, enqueue) = ((0..200).map(order).collect::<Vec<_>>(), format!("{path}/orders"));
    let enqueued = join_all(bodies.iter().map(|body| http2.post(&enqueue, body))).await;
    assert!(enqueued.iter().all(|reply| reply.json()["status"] == "enqueued"), "{enqueued:?}");
    let merged = api.gateway.metric("merged_units_total");
    assert!(merged >= 100, "only {merged} of 200 orders were merged");
    let taking = format!("{path}/take");
    let taken = join_all((0..200).map(|_| http2.post(&taking, "{}"))).await;
    let taken: Vec<_> = taken.iter().map(|reply| reply.json()["orders"][0].clone()).collect();
    let completing: Vec<_> = taken.iter().map(|order| receipt(&path, order, "complete")).collect();
    let done = join_all(completing.iter().map(|path| http2.post(path, "{}"))).await;
    assert!(done.iter().all(|reply| reply.json() == json!({"outcome": "completed"})), "{done:?}");
    let mut ids: Vec<_> = taken.iter().map(|order| order["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 200, "each order was taken once");
    let after = api.gateway.metric("merged_units_total") - merged;
    assert!(after >= 200, "only {after} of 400 takes and completions were merged");
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_calls_are_merged() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "many", "").await;
    let batch = format!("{path}/orders/batch");
    let http2 = Http2::connect(api.port).await;
    let order = |number: u32| json!({"order_id": id(number), "payload": {"n": number}});
    let bodies: Vec<_> = (0..90)
        .map(|one| json!({"orders": (3 * one..3 * one + 3).map(order).collect::<Vec<_>>()}).to_string())
        .collect();
    let merged = api.gateway.metric("merged_units_total");
    let enqueued = join_all(bodies.iter().map(|body| http2.post(&batch, body))).await;
    let mut ids = Vec::new();
    for reply in enqueued {
        let orders = reply.json()["orders"].as_array().unwrap().clone();
        let own: Vec<_> = orders.iter().map(|order| order["id"].as_i64().unwrap()).collect();
        assert_eq!((own[1], own[2], own.len()), (own[0] + 1, own[0] + 2, 3), "{reply:?}");
        ids.extend(own);
    }
    let merged = api.gateway.metric("merged_units_total") - merged;
    assert!(merged >= 45, "only {merged} of 90 batches were merged");
    let taken = take(&api, &path, r#"{"max": 270}"#).await;
    let stored =
        taken.iter().map(|order| (order["order_id"].as_str().unwrap(), order["id"].as_i64().unwrap()));
    let stored: BTreeMap<_, _> = stored.collect();
    for (number, answered) in ids.into_iter().enumerate() {
        assert_eq!(stored[id(number as u32).as_str()], answered, "order {number} has another ID");
    }
    let receipts: Vec<_> = taken.iter().map(|order| order["receipt"].as_i64().unwrap()).collect();
    let complete = format!("{path}/complete");
    let bodies: Vec<_> =
        receipts.chunks(3).map(|some| json!({"receipts": some, "status": 7}).to_string()).collect();
    let merged = api.gateway.metric("merged_units_total");
    let done = join_all(bodies.iter().map(|body| http2.post(&complete, body))).await;
    for (reply, receipts) in done.iter().zip(receipts.chunks(3)) {
        let all: Vec<_> =
            receipts.iter().map(|receipt| json!({"receipt": receipt, "outcome": "completed"})).collect();
        assert_eq!(reply.json(), json!({ "receipts": all }));
    }
    let merged = api.gateway.metric("merged_units_total") - merged;
    assert!(merged >= 45, "only {merged} of 90 completions were merged");
    assert_eq!(api.ok("GET", &path, "").await["processed"], 270);
}

/// Starts a take that waits, without reading its answer yet.
fn waits(api: &Api, path: &str, seconds: u32) -> tokio::task::JoinHandle<Reply> {
    let (port, path) = (api.port, format!("{path}/take"));
    let body = format!(r#"{{"wait": {seconds}}}"#);
    tokio::spawn(async move { client::json(port, "POST", &path, &body).await })
}

async fn until_waiting(api: &Api, calls: u64) {
    until(&format!("{calls} calls wait"), async || api.gateway.metric("waiting_calls") == calls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_calls_hold_up_no_other_and_get_new_orders() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "patience", "").await;
    let since = Instant::now();
    assert!(take(&api, &path, r#"{"wait": 0.2}"#).await.is_empty());
    assert!(since.elapsed() >= Duration::from_millis(200));
    let waiting: Vec<_> = (0..20).map(|_| waits(&api, &path, 60)).collect();
    until_waiting(&api, 20).await;
    assert!(take(&api, &path, "").await.is_empty());
    for number in 0..20 {
        api.ok("POST", &format!("{path}/orders"), &order(number)).await;
    }
    let mut ids = Vec::new();
    for waited in waiting {
        let reply = waited.await.unwrap();
        ids.push(reply.json()["orders"][0]["order_id"].as_str().unwrap().to_owned());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..20).map(id).collect::<Vec<_>>());
    assert!(
        since.elapsed() < Duration::from_secs(55),
        "the calls were answered only at the end of their wait"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_call_gets_an_order_that_is_retried_when_it_is_due() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "again", r#"{"retry": 1}"#).await;
    api.ok("POST", &format!("{path}/orders"), &order(1)).await;
    let first = take(&api, &path, r#"{"lease": 600}"#).await;
    let waiting = waits(&api, &path, 60);
    until_waiting(&api, 1).await;
    let since = Instant::now();
    api.ok("POST", &receipt(&path, &first[0], "fail"), "{}").await;
    assert_eq!(waiting.await.unwrap().json()["orders"][0]["attempt"], 2);
    let waited = since.elapsed();
    assert!((1000..5000).contains(&waited.as_millis()), "it was answered after {waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_over_the_limit_is_rejected_at_once() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "rush", "").await;
    let taking = format!("{path}/take");
    let connections = [Http2::connect(api.port).await, Http2::connect(api.port).await];
    let refused = async {
        let all = (0..300).map(|number| connections[number % 2].post(&taking, r#"{"wait": 60}"#));
        let replies = join_all(all).await;
        replies.iter().filter(|reply| reply.status == 503 && reply.problem() == "busy").count()
    };
    let stop = async {
        until_waiting(&api, 256).await;
        api.gateway.sigterm();
    };
    assert_eq!(tokio::join!(refused, stop).0, 44);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disconnects_while_it_waits_takes_nothing() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "gone", "").await;
    let before = api.gateway.metric("clients");
    // Waits for the session's end, because the waiting call also disappears for a moment whenever it is repeated.
    let ended = async || {
        until("its session has ended", async || api.gateway.metric("clients") == before).await;
    };
    let leaving = begin(&api, &path, r#"{"wait": 60}"#).await;
    until_waiting(&api, 1).await;
    drop(leaving);
    ended().await;
    let (http2, taking) = (Arc::new(Http2::connect(api.port).await), format!("{path}/take"));
    let request = http2.clone();
    let leaving = tokio::spawn(async move { request.post(&taking, r#"{"wait": 60}"#).await });
    until_waiting(&api, 1).await;
    leaving.abort();
    ended().await;
    api.ok("POST", &format!("{path}/orders"), &order(1)).await;
    let stats = api.ok("GET", &path, "").await;
    assert_eq!((&stats["in_flight"], &stats["depth"]), (&json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_calls_get_an_error_when_the_queue_is_dropped() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "dropped", "").await;
    // The call is not repeated before the end of its wait.
    let waiting = waits(&api, &path, 9);
    until_waiting(&api, 1).await;
    assert_eq!(api.ok("DELETE", &path, "").await, json!({"status": "dropped"}));
    let reply = waiting.await.unwrap();
    assert_eq!((reply.status, reply.problem().as_str()), (404, "not-found"));
    assert_eq!(reply.json()["hint"], "Create it with PUT /v1/queues/{queue}.");
}

/// Sends a take whose answer is not read.
async fn begin(api: &Api, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", api.port)).await.unwrap();
    let request = format!(
        "POST {path}/take HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_taken_for_a_client_that_disconnected_are_released() {
    let api = Api::start(&[]).await;
    let path = queue(&api, "orphan", "").await;
    api.ok("POST", &format!("{path}/orders"), &order(1)).await;
    let outsider = connect(&hotrow_testkit::config(hotrow_testkit::server().port())).await;
    let lock = "begin; select from hotrow.queue_lock l join hotrow.queue q on q.number = l.queue
        where q.queue = 'orphan' and l.side = 'h' for update of l";
    outsider.batch_execute(lock).await.unwrap();
    let watcher = connect(&hotrow_testkit::config(hotrow_testkit::server().port())).await;
    let before = leases(&watcher).await;
    let leaving = begin(&api, &path, r#"{"lease": 86400}"#).await;
    until_it_blocks(&outsider).await;
    drop(leaving);
    // The gateway must see the disconnect before the answer. Only its log shows that.
    until("the gateway has seen the disconnect", async || {
        api.gateway.log().contains("an HTTP connection has ended")
    })
    .await;
    outsider.batch_execute("commit").await.unwrap();
    until("the order is released", async || {
        let found = api.ok("GET", &format!("{path}/orders/{}", id(1)), "").await;
        found["state"] == "waiting" && found["attempt"] == 0 && leases(&watcher).await == before + 1
    })
    .await;
    assert_eq!(take(&api, &path, "").await[0]["attempt"], 1);
}

/// The number of the queue's last lease. It shows whether a waiting order was ever taken.
async fn leases(watcher: &tokio_postgres::Client) -> i64 {
    let sql = "select max(h.leases) from hotrow.queue_head h join hotrow.queue q on q.number = h.queue
        where q.queue = 'orphan'";
    value(watcher, sql).await.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_wait_with_an_empty_answer() {
    let mut api = Api::start(&[]).await;
    let path = queue(&api, "closing", "").await;
    let waiting = waits(&api, &path, 60);
    until_waiting(&api, 1).await;
    let since = Instant::now();
    api.gateway.sigterm();
    let reply = waiting.await.unwrap();
    assert_eq!((reply.status, reply.json()), (200, json!({"orders": []})));
    assert!(api.gateway.wait().success());
    assert!(since.elapsed() < Duration::from_secs(9), "the stop took {:?}", since.elapsed());
}
