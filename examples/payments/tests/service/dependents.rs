//! Dependent services: told once, signed, again when they fail, never for ever.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use jiff::Timestamp;
use payments::signature::{HEADER, verify};
use serde_json::{Value, json};

use crate::stage::{Caller, PATIENCE, Stage, payment};

const SECRET: &str = "a secret of sixteen or more";

/// A dependent service that answers as it is told and keeps what it is sent.
#[derive(Clone)]
struct Shop {
    status: Arc<Mutex<u16>>,
    told: Arc<Mutex<Vec<Value>>>,
}

impl Shop {
    async fn open() -> (Self, String) {
        let shop = Self { status: Arc::new(Mutex::new(200)), told: Arc::default() };
        let router = Router::new().route("/told", post(told)).with_state(shop.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/told", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (shop, url)
    }
}

async fn told(State(shop): State<Shop>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let signature = headers[HEADER].to_str().unwrap();
    assert_eq!(verify(SECRET, Timestamp::now().as_second(), signature, &body), Ok(()));
    shop.told.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
    StatusCode::from_u16(*shop.status.lock().unwrap()).unwrap()
}

async fn register(caller: &Caller, name: &str, url: &str) -> u16 {
    let body = json!({ "url": url, "secret": SECRET }).to_string();
    let path = format!("{}/v1/endpoints/{name}", caller.base);
    caller.client.send("PUT", &path, &[], Bytes::from(body), PATIENCE).await.unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_are_told_until_they_listen_or_we_give_up() {
    let stage = Stage::start().await;
    let caller = stage.caller();
    let (good, good_url) = Shop::open().await;
    let (bad, bad_url) = Shop::open().await;
    *bad.status.lock().unwrap() = 500;
    assert_eq!(register(&caller, "good", &good_url).await, 200);
    assert_eq!(register(&caller, "bad", &bad_url).await, 200);
    // The service looks for new endpoints once a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let (_, paid) = caller.post("/v1/payments", "a", &payment(1000, true)).await;

    stage.until("select count(*) from payments.notification where state = 'delivered'", "1").await;
    stage.until("select count(*) from payments.notification where state = 'dead'", "1").await;
    let told = good.told.lock().unwrap().clone();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["type"], &told[0]["payment"]["payment"]), (&json!("payment.captured"), &paid["id"]));
    // At once, and once for each rung.
    assert_eq!(bad.told.lock().unwrap().len(), 3);
    assert!(bad.told.lock().unwrap().iter().all(|again| again["id"] == told[0]["id"]));

    let (_, dead) = caller.get("/v1/notifications?endpoint=bad&state=dead").await;
    assert_eq!(dead["notifications"][0]["error"], json!("answered 500"));
    *bad.status.lock().unwrap() = 204;
    let event = dead["notifications"][0]["event"].as_str().unwrap();
    let (status, _) =
        caller.post(&format!("/v1/notifications/{event}/bad/resend"), "unused", &json!({})).await;
    assert_eq!(status, 200);
    stage.until("select count(*) from payments.notification where state = 'delivered'", "2").await;
    assert_eq!(bad.told.lock().unwrap().len(), 4);
    let (status, _) =
        caller.post(&format!("/v1/notifications/{event}/nobody/resend"), "unused", &json!({})).await;
    assert_eq!(status, 404);
}
