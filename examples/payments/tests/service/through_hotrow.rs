//! Tests the same service with Hotrow's port in its DATABASE_URL.

use std::time::Instant;

use serde_json::json;

use crate::crashes::{compare, failing_behaviour};
use crate::load::Load;
use crate::stage::{GATEWAYS, Plan, Stage};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn hotrow_killed_under_load_loses_and_duplicates_nothing() {
    let mut stage = Stage::build(Plan::ThroughHotrow, &[]).await;
    stage.behave(&GATEWAYS, failing_behaviour()).await;
    let load = Load::start(&stage.caller(), 8);
    for _ in 0..3 {
        load.wait_for(20).await;
        tokio::task::block_in_place(|| stage.hotrow.as_mut().unwrap().restart());
    }
    load.wait_for(20).await;
    let answers = load.stop().await;
    compare(&stage, &answers).await;
}

/// All statements of a payment, about ten, are packed without changes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn every_statement_of_a_payment_is_packed() {
    // All steps are fast, so a worker finds no work.
    let settings = [("RECONCILE_SECONDS", "600"), ("GATEWAY_SECONDS", "60")];
    let stage = Stage::through_patient_hotrow(&settings).await;
    stage.behave(&GATEWAYS, json!({ "webhooks_url": "" })).await;
    let load = Load::start(&stage.caller(), 32);
    load.wait_for(100).await; // by then all connections have prepared all statements
    let count = async || {
        let (packed, passed) = ("packed_units_total", "passed_through_units_total");
        (stage.metric(packed).await, stage.metric(passed).await, stage.metric("batches_total").await)
    };
    let (packed, passed, batches) = count().await;
    let began = Instant::now();
    let payments = load.wait_for(100).await as u64;
    let after = count().await;
    let seconds = began.elapsed().as_secs();
    let (packed, passed, batches) = (after.0 - packed, after.1 - passed, after.2 - batches);
    let answers = load.stop().await;
    assert!(packed >= 11 * payments, "{packed} packed");
    // The claims of the worker, and the queries for endpoints and queues: about ten per second, independent of the number
    // of payments.
    assert!(passed < 30 + 20 * seconds, "{passed} passed through in {seconds} s");
    assert!(batches < packed, "{batches} batches");
    compare(&stage, &answers).await;
}
