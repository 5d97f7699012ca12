//! `GET /live`, the stream of the operations page: who gets it, how many do, and what it contains.

use std::time::{SystemTime, UNIX_EPOCH};

use hotrow_http::limits;
use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, connect, try_connect, until, value};
use serde_json::Value;

use crate::Api;
use crate::client::{Events, Header, send};

async fn events(api: &Api, headers: &[Header<'_>]) -> Events {
    Events::open(api.port, "/live", headers).await
}

/// The next event with this name.
async fn next(events: &mut Events, name: &str) -> Value {
    loop {
        let (found, data) = events.next().await.expect("the stream goes on");
        if found == name {
            return data;
        }
    }
}

/// A file with these lines, and the option that names it.
fn tokens(lines: &str) -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, lines).unwrap();
    let option = ["--http-token-file".to_owned(), file.to_str().unwrap().to_owned()];
    (folder, option)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_history_and_has_the_state_each_second() {
    let api = Api::start(&[]).await;
    let mut stream = events(&api, &[]).await;
    assert_eq!(stream.header("content-type"), "text/event-stream");
    let (first, about) = stream.next().await.unwrap();
    assert_eq!(
        (first.as_str(), &about["can_change"], &about["shows_values"]),
        ("about", &true.into(), &false.into())
    );
    assert!(
        about["addresses"][0].as_str().unwrap().ends_with(&format!(":{}", api.gateway.port())),
        "{about}"
    );
    let (second, history) = stream.next().await.unwrap();
    assert_eq!(second, "history");
    assert!(history.as_array().unwrap().len() <= limits::LIVE_HISTORY_SECONDS);
    let client = connect(&api.gateway.config()).await;
    let mut units = 0.0;
    while units < 1.0 {
        value(&client, "select 1").await;
        let state = next(&mut stream, "state").await;
        units += state["units"].as_f64().unwrap();
        assert!(state["at"].as_u64().is_some() && state["lanes"].is_array() && state["gauges"].is_object());
        assert!(state["shadow"].as_array().unwrap().is_empty(), "nothing is in shadow mode");
    }
    let mut late = events(&api, &[]).await;
    let points = next(&mut late, "history").await;
    let sum: f64 = points.as_array().unwrap().iter().map(|point| point["units"].as_f64().unwrap()).sum();
    assert!(sum >= 1.0, "the history has the units of the past seconds: {points}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn an_outage_begins_when_the_gateway_has_noticed_it() {
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let server = PrivateServer::builder().label("outage").start().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &["--http", "127.0.0.1:0", "--server-wait-ms", "200"]);
    value(&connect(&gateway.config()).await, "select 1").await;
    server.stop().unwrap();
    until("the gateway has noticed", || async {
        let _ = try_connect(&gateway.config()).await; // the first one may be admitted without a connection
        gateway.log().contains("the server is unreachable")
    })
    .await;
    let noticed = seconds();
    until("another second", || async { seconds() > noticed + 1 }).await;
    let mut stream = Events::open(gateway.http_port(), "/live", &[]).await;
    let since = loop {
        if let Some(since) = next(&mut stream, "state").await["server_problem"]["since"].as_u64() {
            break since;
        }
    };
    assert!(since <= noticed, "{since} is when the page was opened, and the gateway knew at {noticed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_streams_share_the_samples() {
    let api = Api::start(&[]).await;
    let (mut one, mut other) = (events(&api, &[]).await, events(&api, &[]).await);
    let first = next(&mut one, "state").await;
    let mut second = next(&mut other, "state").await;
    while second["at"].as_u64() < first["at"].as_u64() {
        second = next(&mut other, "state").await;
    }
    let mut first = first;
    while first["at"].as_u64() < second["at"].as_u64() {
        first = next(&mut one, "state").await;
    }
    assert_eq!(first, second, "two samples in one second");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_streams_is_bounded() {
    let api = Api::start(&[]).await;
    let mut streams = Vec::new();
    for _ in 0..limits::LIVE_STREAMS_MAX {
        streams.push(events(&api, &[]).await);
    }
    let refused = send(api.port, "GET", "/live", &[], "").await;
    assert_eq!((refused.status, refused.problem().as_str()), (503, "busy"));
    drop(streams.pop());
    until("the place of a client that has gone is free again", || async {
        Events::try_open(api.port, "/live", &[]).await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_needs_a_token_if_tokens_are_set() {
    let (_folder, option) = tokens("full-token-0123456789\nread-only reader-token-0123456789\n");
    let api = Api::start(&option.each_ref().map(String::as_str)).await;
    let refused = send(api.port, "GET", "/live", &[], "").await;
    assert_eq!((refused.status, refused.problem().as_str()), (401, "unauthorized"));
    for (token, can_change) in [("full-token-0123456789", true), ("reader-token-0123456789", false)] {
        let token = format!("Bearer {token}");
        let mut stream = events(&api, &[("authorization", &token)]).await;
        assert_eq!(next(&mut stream, "about").await["can_change"], can_change);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_reading_can_only_read() {
    let (_folder, option) = tokens("read-only reader-token-0123456789\n");
    let api = Api::start(&option.each_ref().map(String::as_str)).await;
    let headers = [("authorization", "Bearer reader-token-0123456789")];
    for path in ["/v1/queues", "/v1/counters", "/v1/sales", "/v1/feeds"] {
        assert_eq!(send(api.port, "GET", path, &headers, "").await.status, 200, "{path}");
    }
    for (method, path) in [
        ("POST", "/v1/counters/read/increment"),
        ("PUT", "/v1/queues/read"),
        ("DELETE", "/v1/queues/read"),
        ("POST", "/v1/queues/read/pause"),
    ] {
        let reply = send(api.port, method, path, &headers, "").await;
        assert_eq!((reply.status, reply.problem().as_str()), (403, "read-only"), "{method} {path}");
        assert!(reply.json()["hint"].as_str().unwrap().contains("--http-token-file"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_hosts_and_other_pages_get_no_stream() {
    let api = Api::start(&[]).await;
    for headers in [
        [("host", "evil.example"), ("sec-fetch-site", "same-origin")],
        [("host", "localhost"), ("sec-fetch-site", "cross-site")],
        [("host", "localhost"), ("origin", "http://localhost:3000")],
    ] {
        let reply = send(api.port, "GET", "/live", &headers, "").await;
        assert_eq!((reply.status, reply.problem().as_str()), (403, "foreign-origin"), "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_own_page_can_change_something() {
    let api = Api::start(&[]).await;
    let (host, origin) = (format!("127.0.0.1:{}", api.port), format!("http://127.0.0.1:{}", api.port));
    let same = ("sec-fetch-site", "same-origin");
    let path = "/v1/counters/page/increment";
    let reply = send(api.port, "POST", path, &[("host", &host), ("origin", &origin), same], "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let other = ("origin", "http://127.0.0.1:3000");
    let reply = send(api.port, "POST", path, &[("host", &host), other, same], "").await;
    assert_eq!((reply.status, reply.problem().as_str()), (403, "foreign-origin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateways_own_checks_are_not_among_the_statements() {
    let api = Api::start(&[]).await;
    assert_eq!(send(api.port, "GET", "/health/ready", &[], "").await.status, 200);
    api.ok("POST", "/v1/counters/own_checks/increment", "").await;
    api.ok("GET", "/v1/queues", "").await;
    let mut stream = events(&api, &[]).await;
    let state = next(&mut stream, "state").await;
    let texts: Vec<_> = state["statements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|shown| shown["statement"].as_str().unwrap())
        .collect();
    assert!(texts.iter().any(|text| text.contains("hotrow.increment")), "{texts:#?}");
    assert!(
        !texts.iter().any(|text| text.contains("pg_catalog.pg_") || text.contains("has_function")),
        "{texts:#?}"
    );
}

/// Values of keys are in the stream only if the setting allows it, and those of statements never.
#[tokio::test(flavor = "multi_thread")]
async fn values_are_hidden_unless_allowed() {
    const SECRET: &str = "ann-of-green-gables";
    for (option, shows) in [("false", false), ("true", true)] {
        let api = Api::start(&["--http-show-values", option]).await;
        let client = connect(&api.gateway.config()).await;
        let table = format!("live_{option}");
        let create = format!("create table {table} (name text primary key, n int not null default 0)");
        client.batch_execute(&create).await.unwrap();
        client.batch_execute(&format!("insert into {table} values ('{SECRET}')")).await.unwrap();
        let mut stream = events(&api, &[]).await;
        loop {
            let update = format!("update {table} set n = n + 1 where name = '{SECRET}'");
            client.batch_execute(&update).await.unwrap();
            let state = next(&mut stream, "state").await;
            assert!(shows || !state.to_string().contains(SECRET), "{state}");
            assert!(!state["statements"].to_string().contains(SECRET), "{state}");
            let keys = state["keys"].as_array().unwrap();
            let named =
                |key: &&Value| key["table"].as_str().unwrap().ends_with(&table) && key["kind"] == "write";
            let Some(key) = keys.iter().find(named) else { continue };
            assert_eq!(key["columns"][0], "name");
            assert_eq!(key["values"][0].as_str(), shows.then_some(SECRET));
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_streams() {
    let mut api = Api::start(&[]).await;
    let mut stream = events(&api, &[]).await;
    next(&mut stream, "state").await;
    api.gateway.sigterm();
    while stream.next().await.is_some() {}
    let status = tokio::task::block_in_place(|| api.gateway.wait());
    assert!(status.success());
    assert!(!api.gateway.log().contains("some HTTP requests did not finish"), "{}", api.gateway.log());
}
