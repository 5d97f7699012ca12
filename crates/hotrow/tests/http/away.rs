//! A server that is stopped, lost during a call, or without the hotrow schema: no outcome is guessed, and calls work
//! again without a restart of the gateway.

use hotrow_testkit::{config, connect, until, value};

use crate::client::{json, send};
use crate::{Api, migrate, private};

const PATH: &str = "/v1/counters/away/increment";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_call_that_was_not_sent_can_be_repeated() {
    let server = private("httpaway").await;
    migrate(&server.url());
    let api = Api::in_front_of(&server.url(), &["--server-wait-ms", "300", "--held-wait-ms", "300"]);
    assert_eq!(api.ok("GET", "/health/ready", "").await["status"], "ready");
    assert_eq!(api.ok("POST", PATH, "").await["value"], 1);
    server.stop().unwrap();
    for (method, path) in [("GET", "/v1/counters/away"), ("GET", "/health/ready"), ("POST", PATH)] {
        let reply = json(api.port, method, path, "").await;
        assert_eq!(
            (reply.status, reply.problem().as_str()),
            (503, "server-away"),
            "{method} {path}: {reply:?}"
        );
        assert_eq!(reply.header("retry-after"), "1");
    }
    assert_eq!(api.ok("GET", "/health/live", "").await["status"], "live");
    server.restart().unwrap();
    until("the server is back", async || json(api.port, "GET", "/health/ready", "").await.status == 200)
        .await;
    until("calls are back", async || json(api.port, "POST", PATH, "{\"amount\": 0}").await.status == 200)
        .await;
    assert_eq!(api.ok("GET", "/v1/counters/away", "").await["value"], 1, "a rejected call has no effect");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_call_that_was_lost_is_repeated_with_its_key() {
    let server = private("httplost").await;
    migrate(&server.url());
    let api = Api::in_front_of(&server.url(), &["--server-wait-ms", "400"]);
    assert_eq!(api.ok("POST", PATH, "").await["value"], 1);
    let outsider = connect(&config(server.port())).await;
    outsider
        .batch_execute("begin; select from hotrow.counter where counter = 'away' for update")
        .await
        .unwrap();
    let (port, key) = (api.port, [("idempotency-key", "0193e1a0-7b1c-7e2a-9d3f-5c4b6a798099")]);
    let waiting = tokio::spawn(async move { send(port, "POST", PATH, &key, "").await });
    let watcher = connect(&config(server.port())).await;
    // The call runs alone by then. In a lane, the commit would not be sent before the answers have arrived.
    let blocked =
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%hotrow.incr%'
        and clock_timestamp() - query_start > interval '300 ms'";
    until("the request waits", async || value(&watcher, blocked).await != "0").await;
    server.kill_dash_nine().unwrap();
    let reply = waiting.await.unwrap();
    assert_eq!((reply.status, reply.problem().as_str()), (504, "outcome-unknown"), "{reply:?}");
    assert!(reply.json()["hint"].as_str().unwrap().contains("same Idempotency-Key"));
    server.restart().unwrap();
    until("calls are back", async || send(port, "POST", PATH, &key, "").await.status == 200).await;
    assert_eq!(send(port, "POST", PATH, &key, "").await.json()["value"], 2);
    assert_eq!(api.ok("GET", "/v1/counters/away", "").await["version"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_pack_the_error_says_what_to_do_and_calls_work_after_its_installation() {
    let server = private("httpbare").await;
    let api = Api::in_front_of(&server.url(), &[]);
    for (method, path) in [("GET", "/health/ready"), ("GET", "/v1/counters/away"), ("POST", PATH)] {
        let reply = json(api.port, method, path, "").await;
        assert_eq!((reply.status, reply.problem().as_str()), (503, "pack-missing"), "{path}: {reply:?}");
        let (detail, hint) = (reply.json()["detail"].clone(), reply.json()["hint"].clone());
        assert!(detail.as_str().unwrap().contains("has no schema hotrow"), "{reply:?}");
        assert!(hint.as_str().unwrap().contains("hotrow migrate"), "{reply:?}");
    }
    migrate(&server.url());
    assert_eq!(api.ok("GET", "/health/ready", "").await["status"], "ready");
    assert_eq!(api.ok("POST", PATH, "").await["value"], 1);
}
