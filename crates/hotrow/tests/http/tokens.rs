//! Access to the API: clients with a token if tokens are required, otherwise programs on this machine; web pages never.

use crate::Api;
use crate::client::{json, send};

const PATH: &str = "/v1/counters/tokens/increment";

#[tokio::test(flavor = "multi_thread")]
async fn only_a_token_of_the_file_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, "old-token-0123456789\nnew-token-0123456789\n").unwrap();
    let api = Api::start(&["--http-token-file", file.to_str().unwrap()]).await;
    for headers in [
        &[][..],
        &[("authorization", "Bearer old-token-012345678")],
        &[("authorization", "Basic old-token-0123456789")],
    ] {
        let reply = send(api.port, "POST", PATH, headers, "").await;
        assert_eq!((reply.status, reply.problem().as_str()), (401, "unauthorized"));
        assert!(reply.header("www-authenticate").starts_with("Bearer"), "{reply:?}");
    }
    for (value, token) in [(1, "Bearer old-token-0123456789"), (2, "bearer new-token-0123456789")] {
        let headers = [("authorization", token), ("origin", "https://shop.example")];
        let reply = send(api.port, "POST", PATH, &headers, "").await;
        assert_eq!((reply.status, &reply.json()["value"]), (200, &value.into()));
    }
    for path in ["/health/live", "/health/ready", "/openapi.json"] {
        assert_eq!(json(api.port, "GET", path, "").await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_cannot_call_an_api_without_tokens() {
    let api = Api::start(&[]).await;
    let reply = send(api.port, "POST", PATH, &[("origin", "https://shop.example")], "").await;
    assert_eq!((reply.status, reply.problem().as_str()), (403, "foreign-origin"));
    for site in ["cross-site", "same-site"] {
        let reply = send(api.port, "GET", "/v1/queues", &[("sec-fetch-site", site)], "").await;
        assert_eq!((reply.status, reply.problem().as_str()), (403, "foreign-origin"), "{site}");
    }
    let same = send(api.port, "GET", "/v1/queues", &[("sec-fetch-site", "same-origin")], "").await;
    assert_eq!(same.status, 200, "the page of queues sends such requests");
}

/// For its browser, a page has the same origin if its host name was made to resolve to this machine.
#[tokio::test(flavor = "multi_thread")]
async fn requests_to_another_host_are_rejected_if_no_token_is_required() {
    let api = Api::start(&[]).await;
    for path in ["/v1/queues", "/", "/page/queues.js"] {
        for host in ["evil.example", "evil.example:8080", "10.0.0.1", ""] {
            let headers = [("host", host), ("sec-fetch-site", "same-origin")];
            let reply = send(api.port, "GET", path, &headers, "").await;
            assert_eq!((reply.status, reply.problem().as_str()), (403, "foreign-origin"), "{path} {host}");
        }
        for host in ["localhost", "127.0.0.1:1", "[::1]:8080"] {
            assert_eq!(send(api.port, "GET", path, &[("host", host)], "").await.status, 200, "{path} {host}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, "one-token-0123456789\n").unwrap();
    let api = Api::start(&["--http-token-file", file.to_str().unwrap()]).await;
    let headers = [("host", "shop.example"), ("authorization", "Bearer one-token-0123456789")];
    assert_eq!(send(api.port, "GET", "/v1/queues", &headers, "").await.status, 200);
}
