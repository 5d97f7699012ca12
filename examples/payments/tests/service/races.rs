//! Tests that a payment has one outcome if a webhook, the reconciliation, the request and a second command act on it at
//! the same time.

use std::time::Duration;

use serde_json::json;

use crate::load::repeat_until_answered;
use crate::stage::{GATEWAYS, Stage, payment};

const PAYMENTS: usize = 1000;
const AT_ONCE: usize = 100;

/// The webhook arrives at about the time when the request gives up and a worker looks. At the same time, cancels and
/// captures are sent repeatedly.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn webhook_reconciliation_and_cancel_agree_on_one_outcome_a_thousand_times() {
    let settings = [("GATEWAY_SECONDS", "0.5"), ("RECONCILE_SECONDS", "0.5,0.2")];
    let stage = Stage::with(&settings).await;
    let manners = json!({ "silent": 0.3, "declines": 0.1, "forgets": 0.05, "jitter_ms": 20,
        "webhook_delay_ms": 480, "duplicates": 0.3, "lost_webhooks": 0.3 });
    stage.behave(&GATEWAYS, manners).await;
    let caller = stage.caller();
    for round in 0..PAYMENTS / AT_ONCE {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..AT_ONCE {
            let (caller, key) = (caller.clone(), format!("{round}-{number}"));
            tasks.spawn(async move {
                let body = payment(1000, number % 2 == 0);
                // Gateways that do not answer are excluded, and sometimes all of them are.
                let first = loop {
                    let (status, first) = caller.post("/v1/payments", &key, &body).await;
                    if status != 503 {
                        break first;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await; // a client's pause before it tries again
                };
                let id = first["id"].as_str().unwrap();
                let path = |command: &str| format!("/v1/payments/{id}/{command}");
                let (cancel, capture) = (path("cancel"), path("capture"));
                let (cancel_key, capture_key) = (format!("{key}-cancel"), format!("{key}-capture"));
                let nothing = json!({});
                let (cancelled, captured) = tokio::join!(
                    repeat_until_answered(&caller, &cancel, &cancel_key, &nothing),
                    repeat_until_answered(&caller, &capture, &capture_key, &nothing),
                );
                // Either can be refused, but both cannot have succeeded.
                let both = cancelled.1["state"] == "canceled" && captured.1["state"] == "captured";
                assert!(!both, "{cancelled:?} {captured:?}");
            });
        }
        tasks.join_all().await;
    }
    stage.check_books().await;
    let number = |what: &str| -> usize {
        stage.value(&format!("select count(*) from payments.attempt a where {what}")).parse().unwrap()
    };
    assert!(number("state in ('succeeded', 'declined', 'not_executed')") >= PAYMENTS);
    // The race took place. Only the request settles an attempt without a look of a worker and without a webhook. Only a
    // worker determines that a gateway has never received an order. The test cannot determine what settled the others.
    let reported = "exists (select from payments.webhook w
        where convert_from(w.body, 'UTF8')::json ->> 'reference' = a.id::text)";
    assert_ne!(number(&format!("gateway <> 'none' and tries = 0 and not {reported}")), 0);
    assert_ne!(number("code = 'never_heard_of' and tries > 0"), 0);
    assert_ne!(number(&format!("version > 2 and {reported}")), 0, "a webhook for an attempt in doubt");
}

/// Sends the same request twice at once: one does the work, and the other is told so or gets its answer.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn the_same_request_twice_at_once_makes_one_payment() {
    let stage = Stage::start().await;
    let caller = stage.caller();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (caller, key) = (caller.clone(), format!("key-{}", number / 4));
        tasks.spawn(async move {
            repeat_until_answered(&caller, "/v1/payments", &key, &payment(1000, true)).await
        });
    }
    let mut answers: Vec<String> =
        tasks.join_all().await.into_iter().map(|(_, body)| body.to_string()).collect();
    answers.sort();
    answers.dedup();
    assert_eq!(answers.len(), 50, "one answer for each key");
    assert_eq!(stage.value("select count(*) from payments.intent"), "50");
    stage.check_books().await;
}
