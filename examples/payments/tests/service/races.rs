//! Webhook, reconciliation, the request itself and a second command meet on one payment: it has one outcome.

use std::time::Duration;

use serde_json::json;

use crate::load::insist;
use crate::stage::{GATEWAYS, Stage, payment};

const PAYMENTS: usize = 1000;
const AT_ONCE: usize = 100;

/// The webhook comes at about the time when the request gives up and a worker looks; a cancel comes at the same time,
/// over and over, and again a capture.
#[tokio::test(flavor = "multi_thread")]
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
                // Gateways that seem to be dead are left out, all of them now and then.
                let first = loop {
                    let (status, first) = caller.post("/v1/payments", &key, &body).await;
                    if status != 503 {
                        break first;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                };
                let id = first["id"].as_str().unwrap();
                let path = |command: &str| format!("/v1/payments/{id}/{command}");
                let (cancel, capture) = (path("cancel"), path("capture"));
                let (cancel_key, capture_key) = (format!("{key}-cancel"), format!("{key}-capture"));
                let nothing = json!({});
                let (cancelled, captured) = tokio::join!(
                    insist(&caller, &cancel, &cancel_key, &nothing),
                    insist(&caller, &capture, &capture_key, &nothing),
                );
                // Either may be refused; both can't have been done.
                let both = cancelled.1["state"] == "canceled" && captured.1["state"] == "captured";
                assert!(!both, "{cancelled:?} {captured:?}");
            });
        }
        tasks.join_all().await;
    }
    stage.adds_up().await;
    let number = |what: &str| -> usize {
        stage.value(&format!("select count(*) from payments.attempt a where {what}")).parse().unwrap()
    };
    assert!(number("state in ('succeeded', 'declined', 'not_executed')") >= PAYMENTS);
    // The race was run. Only the request itself settles what no worker looked at and no webhook came for; only a worker finds
    // out that a gateway has never heard of something. The test cannot know who settled the others.
    let told = "exists (select from payments.webhook w
        where convert_from(w.body, 'UTF8')::json ->> 'reference' = a.id::text)";
    assert_ne!(number(&format!("gateway <> 'none' and tries = 0 and not {told}")), 0);
    assert_ne!(number("code = 'never_heard_of' and tries > 0"), 0);
    assert_ne!(number(&format!("version > 2 and {told}")), 0, "a webhook for one in doubt");
}

/// Two of the same request at once: one works, the other is told so or gets its answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_twice_at_once_makes_one_payment() {
    let stage = Stage::start().await;
    let caller = stage.caller();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (caller, key) = (caller.clone(), format!("key-{}", number / 4));
        tasks.spawn(async move { insist(&caller, "/v1/payments", &key, &payment(1000, true)).await });
    }
    let mut answers: Vec<String> =
        tasks.join_all().await.into_iter().map(|(_, body)| body.to_string()).collect();
    answers.sort();
    answers.dedup();
    assert_eq!(answers.len(), 50, "one answer for each key");
    assert_eq!(stage.value("select count(*) from payments.intent"), "50");
    stage.adds_up().await;
}
