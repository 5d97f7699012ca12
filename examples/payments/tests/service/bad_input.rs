//! Tests that invalid requests are rejected with a status and a reason, and leave no rows.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::stage::{Stage, payment};

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_and_leaves_nothing() {
    let stage = Stage::start().await;
    let caller = stage.caller();
    let raw = async |body: String, key: &str| {
        let headers: &[(&str, &str)] = if key.is_empty() { &[] } else { &[("idempotency-key", key)] };
        caller.send("POST", "/v1/payments", headers, body).await.unwrap()
    };
    let with = |name: &str, value: Value| {
        let mut body = payment(1000, true);
        body[name] = value;
        body.to_string()
    };
    let cases = [
        (with("amount", json!(0)), 422),
        (with("amount", json!(-1)), 422),
        (with("amount", json!(1.5)), 422),
        (with("amount", json!("1000")), 422),
        (with("amount", json!(1_000_000_000_001_i64)), 422),
        (with("amount", json!(9_223_372_036_854_775_807_i64)), 422),
        (with("amount", json!(1000)).replace("1000", "9223372036854775808"), 422),
        (with("amount", json!(1000)).replace("1000", "1e400"), 400),
        (with("currency", json!("XXX")), 422),
        (with("currency", json!("inr")), 422),
        (with("currency", json!("")), 422),
        (with("mode", json!("cash")), 422),
        (with("merchant", json!("")), 422),
        (with("merchant", json!("a\u{0}b")), 422),
        (with("customer", json!("x".repeat(101))), 422),
        (with("extra", json!(1)), 422),
        ("{".to_owned(), 400),
        ("[]".to_owned(), 422),
        (String::new(), 422),
        ("\u{feff}{}".to_owned(), 400),
        ("[".repeat(60_000), 422),
        (" ".repeat(100_000), 413),
    ];
    for (body, wanted) in cases {
        let (status, answer) = raw(body.clone(), "key").await;
        assert_eq!(status, wanted, "{}: {answer}", &body[..body.len().min(200)]);
    }
    let good = payment(1000, true).to_string();
    for key in ["", " ", &"k".repeat(256), "späte"] {
        assert_eq!(raw(good.clone(), key).await.0, 400, "key {key:?}");
    }
    for (method, path, wanted) in [
        ("GET", "/v1/payments/nonsense", 404),
        ("GET", "/v1/payments/00000000-0000-0000-0000-000000000000", 404),
        ("GET", "/v1/payments", 422),
        ("GET", "/v1/payments?merchant=shop&limit=0", 422),
        ("GET", "/v1/payments?merchant=shop&limit=101", 422),
        ("GET", "/v1/payments?merchant=shop&before=x", 422),
        ("GET", "/v1/payments?merchant=%00", 422),
        ("GET", "/v1/merchants/shop/days/yesterday", 422),
        ("GET", "/nowhere", 404),
        ("DELETE", "/v1/payments", 405),
        ("PUT", "/v1/endpoints/shop", 422),
    ] {
        let (status, _) = caller.send(method, path, &[], Bytes::new()).await.unwrap();
        assert_eq!(status, wanted, "{method} {path}");
    }
    let nobody = "/v1/payments/00000000-0000-0000-0000-000000000000/capture";
    assert_eq!(caller.post(nobody, "capture", &json!({})).await.0, 404);
    assert_eq!(stage.value("select count(*) from payments.intent"), "0");
    assert_eq!(stage.value("select count(*) from payments.attempt"), "0");
    assert_eq!(raw(good, "key").await.0, 201, "the key was not used up");
    stage.check_books().await;
}
