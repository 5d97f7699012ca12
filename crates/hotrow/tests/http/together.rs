//! Concurrent requests: HTTP/2, calls merged with those of PostgreSQL clients, an exact sum, overload, and a stop that
//! loses no request.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hotrow_testkit::{config, connect, sqlstate, until, until_it_blocks, value};

use crate::client::{Http2, json};
use crate::{Api, migrate, private};

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_connection_and_other_clients_add_up() {
    let api = Api::start(&[]).await;
    let http2 = Http2::connect(api.port).await;
    let path = "/v1/counters/together/increment";
    let direct = connect(&api.gateway.config()).await;
    let sql = "select value from hotrow.increment('together', 1000)";
    let (replies, _) = tokio::join!(
        join_all((0..300).map(|_| http2.post(path, "{\"amount\": 1}"))),
        join_all((0..10).map(|_| value(&direct, sql))),
    );
    let mut versions: Vec<i64> =
        replies.iter().map(|reply| reply.json()["version"].as_i64().unwrap()).collect();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), 300, "each call has its own version");
    let end = api.ok("GET", "/v1/counters/together", "").await;
    assert_eq!(end, serde_json::json!({"value": 10_300, "version": 310}));
    let merged = api.gateway.metric("merged_units_total");
    assert!(merged >= 150, "only {merged} of 310 calls were merged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_row_holds_up_few_other_requests() {
    let api = Api::start(&["--lane-lock-timeout-ms", "100"]).await;
    let port = api.port;
    let path = |counter: &str| format!("/v1/counters/{counter}/increment");
    api.ok("POST", &path("held"), "").await;
    let outsider = connect(&config(hotrow_testkit::server().port())).await;
    outsider
        .batch_execute("begin; select from hotrow.counter where counter = 'held' for update")
        .await
        .unwrap();
    let held: Vec<_> = (0..50)
        .map(|_| path("held"))
        .map(|path| tokio::spawn(async move { json(port, "POST", &path, "").await }))
        .collect();
    until_it_blocks(&outsider).await;
    let others: Vec<_> = (0..40)
        .map(|number| path(&format!("free-{number}")))
        .map(|path| tokio::spawn(async move { json(port, "POST", &path, "").await.status }))
        .collect();
    let done = || others.iter().filter(|other| other.is_finished()).count();
    until("most others are answered", async || done() >= 30).await;
    assert!(held.iter().all(|waiting| !waiting.is_finished()));
    outsider.batch_execute("commit").await.unwrap();
    for other in others {
        assert_eq!(other.await.unwrap(), 200);
    }
    let values =
        join_all(held).await.into_iter().map(|reply| reply.unwrap().json()["value"].as_i64().unwrap());
    assert_eq!(values.max(), Some(51));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn requests_over_the_queue_limit_are_told_when_to_retry() {
    let server = private("httpfull").await;
    migrate(&server.url());
    let direct = connect(&config(server.port())).await;
    // Longer than the queue wait, and so short that the statement does not count as slow on a busy machine.
    let slow = "create function public.slow() returns trigger language plpgsql as
            $$ begin perform pg_sleep(0.03); return null; end $$;
        create trigger slow after update on hotrow.counter execute function public.slow()";
    direct.batch_execute(slow).await.unwrap();
    let api = Api::in_front_of(&server.url(), &["--lanes", "1", "--queue-wait-ms", "10"]);
    let http2 = Http2::connect(api.port).await;
    let (path, body) = ("/v1/counters/crowded/increment", "{\"amount\": 1}");
    let (carried_out, turned_away) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let deadline = Instant::now() + Duration::from_secs(60);
    // The API has 64 sessions. If their requests fill two batches exactly, none ever waits in the queue. So a client of
    // PostgreSQL sends several calls at once, which run one after another.
    let client = connect(&api.gateway.config()).await;
    let crowd = async {
        while turned_away.load(Relaxed) < 20 {
            let calls = (0..10).map(|_| client.simple_query("select value from hotrow.increment('beside')"));
            for call in join_all(calls).await {
                assert!(call.is_ok() || sqlstate(&call.unwrap_err()) == "53000");
            }
        }
    };
    let requests = join_all((0..100).map(async |_| {
        while turned_away.load(Relaxed) < 20 {
            assert!(Instant::now() < deadline, "no request was rejected, and {carried_out:?} succeeded");
            let reply = http2.post(path, body).await;
            if reply.status == 200 {
                carried_out.fetch_add(1, Relaxed);
                continue;
            }
            assert_eq!((reply.status, reply.problem().as_str()), (429, "queue-full"), "{reply:?}");
            assert_eq!((reply.header("retry-after"), &reply.json()["sqlstate"]), ("1", &"53000".into()));
            turned_away.fetch_add(1, Relaxed);
        }
    }));
    tokio::join!(crowd, requests);
    let carried_out = carried_out.into_inner();
    let end = api.ok("GET", "/v1/counters/crowded", "").await;
    assert_eq!(end["value"], carried_out, "rejected requests changed nothing");
    tokio::time::sleep(Duration::from_secs(1)).await; // as the header says
    assert_eq!(api.ok("POST", path, body).await["value"], carried_out + 1);
}

/// A client that reads no answers takes a bounded part of the gateway's memory, however many requests it sends.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn answers_that_a_client_does_not_read_hold_up_its_next_requests() {
    let api = Api::start(&[]).await;
    let direct = connect(&config(hotrow_testkit::server().port())).await;
    let push = "select count(hotrow.push(7001, 1, repeat('x', 30000))) from generate_series(1, 100)";
    direct.batch_execute(push).await.unwrap();
    let hoarder = Http2::connect_without_reading(api.port).await;
    let path = "/v1/users/7001/inbox?max=1000";
    let replies = join_all((0..20).map(|_| hoarder.head(path))).await;
    let answered = replies.iter().filter(|reply| reply.status() == 200).count();
    // The answer that is not read, and the room that the next one could need, are more than a connection can have.
    assert_eq!(answered, 1, "{replies:?}");
    let busy = replies.iter().filter(|reply| reply.status() == 503 && reply.headers()["retry-after"] == "1");
    assert_eq!(busy.count(), 19, "{replies:?}");
    // Small answers and other connections have room.
    assert_eq!(hoarder.head("/v1/users/7001/inbox/unread").await.status(), 200);
    assert_eq!(api.ok("GET", path, "").await["messages"].as_array().unwrap().len(), 100);
    drop(replies);
    assert_eq!(hoarder.head(path).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_requests_finish() {
    let mut api = Api::start(&[]).await;
    api.ok("POST", "/v1/counters/stop/increment", "").await;
    let outsider = connect(&config(hotrow_testkit::server().port())).await;
    outsider
        .batch_execute("begin; select from hotrow.counter where counter = 'stop' for update")
        .await
        .unwrap();
    let port = api.port;
    let waiting = tokio::spawn(async move { json(port, "POST", "/v1/counters/stop/increment", "").await });
    until_it_blocks(&outsider).await;
    api.gateway.sigterm();
    until("no new connection is accepted", async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err()
    })
    .await;
    assert!(!waiting.is_finished());
    outsider.batch_execute("commit").await.unwrap();
    let reply = tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
    assert_eq!((reply.status, &reply.json()["value"]), (200, &2.into()));
    assert!(api.gateway.wait().success());
}
