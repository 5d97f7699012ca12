//! Invalid requests: each is rejected with a problem that gives the reason, and changes nothing.

use hotrow_testkit::server;

use crate::Api;
use crate::client::{Header, Reply, json, send};

const JSON: Header<'static> = ("content-type", "application/json");
const INCREMENT: &str = "/v1/counters/bad/increment";

#[tokio::test(flavor = "multi_thread")]
async fn invalid_bodies_names_and_keys_are_rejected() {
    let api = Api::start(&[]).await;
    let long = format!("/v1/counters/{}/increment", "n".repeat(501));
    let cases: &[(&str, &str, &str)] = &[
        ("POST", INCREMENT, "{"),
        ("POST", INCREMENT, "[1]"),
        ("POST", INCREMENT, "{\"amount\": 1.5}"),
        ("POST", INCREMENT, "{\"amount\": \"1\"}"),
        ("POST", INCREMENT, "{\"amount\": 9223372036854775808}"),
        ("POST", INCREMENT, "{\"amounts\": 1}"),
        ("POST", &long, "{}"),
        ("POST", "/v1/counters/%00/increment", "{}"),
        ("POST", "/v1/counters/%ff/increment", "{}"),
        // Browsers remove these names from a path.
        ("GET", "/v1/queues/.", ""),
        ("PUT", "/v1/queues/..", "{}"),
        ("POST", "/v1/queues/%2e%2E/pause", ""),
        ("GET", "/v1/queues/./orders/0193e1a0-7b1c-7e2a-9d3f-5c4b6a7980aa", ""),
        ("POST", "/v1/counters/../drain", ""),
        ("PUT", "/v1/counters/bad", "{\"strategy\": \"Ledger\"}"),
        ("PUT", "/v1/sales/bad", "{}"),
        ("PUT", "/v1/sales/bad", "{\"stock\": 1, \"hold\": \"PT1M\"}"),
        ("PUT", "/v1/sales/bad", "{\"stock\": 1, \"hold\": 0}"),
        ("PUT", "/v1/sales/bad", "{\"stock\": 1, \"starts_at\": \"tomorrow\"}"),
        ("POST", "/v1/sales/bad/reservations", "{\"buyer\": \"\"}"),
        ("POST", "/v1/sales/bad/reservations", "{\"buyer\": \"ann\", \"quantity\": 0}"),
        ("POST", "/v1/reservations", "{\"buyer\": \"ann\", \"items\": []}"),
        ("POST", "/v1/reservations", "{\"buyer\": \"ann\", \"items\": [[\"cup\", 1]]}"),
        ("POST", "/v1/reservations", "{\"buyer\": \"ann\", \"items\": [{\"item\": \"cup\", \"n\": 1}]}"),
        ("POST", "/v1/reservations/7/confirm", ""),
        ("POST", "/v1/users/1/posts", r#"{"content": "a\u0000b"}"#),
        ("POST", "/v1/users/1/inbox", r#"{"from_user": 1, "content": "a\u0000b"}"#),
        ("POST", "/v1/users/1/inbox/consume", r#"{"sort": "\u0000"}"#),
        (
            "POST",
            "/v1/users/1/inbox",
            r#"{"from_user": 1, "content": "a", "created_at": "-004800-01-01T00:00:00Z"}"#,
        ),
    ];
    for (method, path, body) in cases {
        let reply = json(api.port, method, path, body).await;
        assert_eq!((reply.status, reply.problem().as_str()), (400, "bad-request"), "{method} {path} {body}");
    }
    for key in ["7", ""] {
        let reply = send(api.port, "POST", INCREMENT, &[JSON, ("idempotency-key", key)], "{}").await;
        assert_eq!((reply.status, reply.problem().as_str()), (400, "bad-request"), "{key:?}");
    }
    assert_eq!(api.ok("GET", "/v1/counters/bad", "").await["version"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_without_effect_is_rejected() {
    let api = Api::start(&[]).await;
    let key = ("idempotency-key", "0193e1a0-7b1c-7e2a-9d3f-5c4b6a7980aa");
    api.ok("POST", "/v1/users/31/inbox", r#"{"from_user": 1, "content": "a"}"#).await;
    api.ok("PUT", "/v1/queues/keys", "").await;
    for (method, path, body) in [
        ("POST", "/v1/users/31/inbox/consume", "{\"max\": 1}"),
        ("POST", "/v1/users/31/inbox/read", "{\"up_to\": 1}"),
        ("POST", "/v1/queues/keys/take", "{}"),
        ("POST", "/v1/queues/keys/receipts/16384/fail", "{}"),
        ("PUT", "/v1/counters/keys", "{}"),
        ("DELETE", "/v1/queues/keys", ""),
    ] {
        let reply = send(api.port, method, path, &[JSON, key], body).await;
        assert_eq!((reply.status, reply.problem().as_str()), (400, "bad-request"), "{method} {path}");
        assert!(reply.json()["detail"].as_str().unwrap().contains("Idempotency-Key"), "{reply:?}");
    }
    assert_eq!(send(api.port, "GET", "/v1/users/31/inbox/unread", &[key], "").await.json()["unread"], 1);
    let reply = send(api.port, "POST", "/v1/counters/keys/increment", &[key], "").await;
    assert_eq!(reply.json()["status"], "ok", "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_the_pack_rejects_are_reported() {
    let api = Api::start(&[]).await;
    for (path, body) in [
        ("/v1/counters/judged", "{\"min\": 2, \"max\": 1}"),
        ("/v1/sales/judged", "{\"stock\": -1}"),
        ("/v1/sales/judged", "{\"stock\": 1, \"per_buyer\": 0}"),
        (
            "/v1/sales/judged",
            r#"{"stock": 1, "starts_at": "2030-01-01T00:00:00Z", "ends_at": "2029-01-01T00:00:00Z"}"#,
        ),
        ("/v1/sales/judged", "{\"stock\": 1, \"hold\": 31536000}"),
    ] {
        let reply = json(api.port, "PUT", path, body).await;
        assert_eq!((reply.status, reply.problem().as_str()), (422, "refused-argument"), "{body}: {reply:?}");
        assert_eq!(reply.json()["sqlstate"], "22023", "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_methods_types_and_sizes_are_rejected() {
    let api = Api::start(&[]).await;
    let expect = |reply: Reply, status: u16, problem: &str| {
        assert_eq!((reply.status, reply.problem().as_str()), (status, problem), "{reply:?}");
        reply
    };
    for path in ["/page", "/page/", "/v1", "/v1/counters/", "/v1/counters/a/b", "/v2/counters/a", "/metrics"]
    {
        expect(json(api.port, "GET", path, "").await, 404, "not-found");
    }
    for (method, path, allowed) in [
        ("DELETE", "/v1/counters/bad", "PUT,GET,HEAD"),
        ("GET", INCREMENT, "POST"),
        ("POST", "/openapi.json", "GET,HEAD"),
    ] {
        let reply = expect(json(api.port, method, path, "").await, 405, "method-not-allowed");
        assert_eq!(reply.header("allow"), allowed);
    }
    for headers in [&[][..], &[("content-type", "text/plain")]] {
        expect(send(api.port, "POST", INCREMENT, headers, "{}").await, 415, "not-json");
    }
    let large = format!("{{\"amount\": 1{}}}", " ".repeat(70_000));
    expect(json(api.port, "POST", INCREMENT, &large).await, 413, "body-too-large");
    let fits = format!("{{\"amount\": 1{}}}", " ".repeat(60_000));
    assert_eq!(api.ok("POST", INCREMENT, &fits).await["status"], "ok");
}

#[test]
fn public_addresses_need_tokens() {
    let output = hotrow_testkit::hotrow()
        .args(["serve", "--upstream", &server().url(), "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("--http-token-file"), "{errors}");
}
