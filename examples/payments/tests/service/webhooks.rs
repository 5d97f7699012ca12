//! Tests webhooks of payment gateways: forged, replayed, repeated, late.

use jiff::Timestamp;
use payments::signature::{HEADER, sign};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::stage::{Answer, Caller, GATEWAYS, Stage, payment, signed_by};

async fn post(caller: &Caller, gateway: &str, signature: &str, body: &str) -> Answer {
    let path = format!("/v1/webhooks/{gateway}");
    caller.send("POST", &path, &[(HEADER, signature)], body.to_owned()).await.unwrap()
}

pub async fn send(caller: &Caller, gateway: &str, signature: &str, body: &str) -> u16 {
    post(caller, gateway, signature, body).await.0
}

pub fn news(reference: &Value, outcome: &str, event: &str) -> String {
    json!({ "event": event, "reference": reference, "outcome": outcome, "code": null }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_genuine_recent_webhooks_change_anything() {
    let stage = Stage::with(&[("RECONCILE_SECONDS", "60")]).await;
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    let caller = stage.caller();
    let (status, reply) = caller.post("/v1/payments", "a", &payment(1000, true)).await;
    assert_eq!(status, 202, "{reply}");
    let attempt = &reply["last_attempt"];
    let gateway = attempt["gateway"].as_str().unwrap();
    let other = GATEWAYS.into_iter().find(|name| *name != gateway).unwrap();
    let now = Timestamp::now().as_second();
    let forged = news(&attempt["id"], "declined", "forged");

    assert_eq!(send(&caller, gateway, &sign("another secret", now, forged.as_bytes()), &forged).await, 401);
    assert_eq!(send(&caller, gateway, "", &forged).await, 401);
    assert_eq!(
        send(&caller, gateway, &signed_by(other, now, &forged), &forged).await,
        401,
        "another gateway's"
    );
    let genuine = news(&attempt["id"], "succeeded", "genuine");
    let signature = signed_by(gateway, now, &genuine);
    assert_eq!(send(&caller, gateway, &signature, &forged).await, 401, "another body");
    let old = signed_by(gateway, now - 301, &genuine);
    assert_eq!(send(&caller, gateway, &old, &genuine).await, 401, "a replay from the archive");
    assert_eq!(send(&caller, "nobody", &signature, &genuine).await, 404);
    // A genuine webhook of an unknown kind.
    for body in ["{}", r#"{"event":"e","kind":"payout"}"#, "not JSON"] {
        let signature = signed_by(gateway, now, body);
        assert_eq!(post(&caller, gateway, &signature, body).await, (200, json!("kept\n")), "{body}");
        assert_eq!(post(&caller, gateway, &signature, body).await, (200, json!("known\n")), "{body}");
        let kept =
            format!("select count(*) from payments.webhook where convert_from(body, 'UTF8') = '{body}'");
        assert_eq!(stage.value(&kept), "1");
    }
    // A genuine webhook of one gateway about an attempt of another gateway, which is ignored.
    let foreign = news(&attempt["id"], "declined", "foreign");
    assert_eq!(send(&caller, other, &signed_by(other, now, &foreign), &foreign).await, 200);
    let nobodys = news(&json!(Uuid::now_v7()), "succeeded", "nobody's");
    assert_eq!(send(&caller, gateway, &signed_by(gateway, now, &nobodys), &nobodys).await, 200);
    stage.until("select count(*) from payments.webhook where due_at is null", "5").await;
    assert_eq!(stage.value("select state from payments.intent"), "authorizing");

    assert_eq!(post(&caller, gateway, &signature, &genuine).await, (200, json!("kept\n")));
    stage.until("select state from payments.intent", "captured").await;
    assert_eq!(post(&caller, gateway, &signature, &genuine).await, (200, json!("known\n")), "again");
    let changed = news(&attempt["id"], "declined", "genuine");
    let signed = signed_by(gateway, now, &changed);
    assert_eq!(
        post(&caller, gateway, &signed, &changed).await,
        (200, json!("known\n")),
        "the first webhook is kept"
    );
    let late = news(&attempt["id"], "declined", "late");
    assert_eq!(send(&caller, gateway, &signed_by(gateway, now, &late), &late).await, 200);
    stage.until("select count(*) from payments.webhook where due_at is null", "7").await;
    assert_eq!(stage.value("select state from payments.intent"), "captured", "the first outcome is kept");
    let kept = "select convert_from(body, 'UTF8') from payments.webhook where event = 'genuine'";
    assert_eq!(stage.value(kept), genuine);
    stage.check_books().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_whose_service_is_killed_is_left_to_the_workers() {
    let stage = Stage::start().await;
    let caller = stage.caller();
    let (_, reply) = caller.post("/v1/payments", "a", &payment(1000, true)).await;
    let attempt = &reply["last_attempt"];
    // Simulates a service that was killed between the answer and the processing.
    let body = news(&attempt["id"], "succeeded", "left");
    stage.rows(&format!(
        "insert into payments.webhook (gateway, event, body, due_at) values ('{}', 'left', '{body}', now())",
        attempt["gateway"].as_str().unwrap()
    ));
    stage.until("select due_at is null from payments.webhook where event = 'left'", "t").await;
    stage.check_books().await;
}
