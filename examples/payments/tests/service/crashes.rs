//! Kills every program with SIGKILL under load, with gateways that lose and repeat messages. No payment is lost or
//! charged twice, and no event is missing. Only the gateways' books survive.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::load::{FinalAnswer, Load};
use crate::stage::{GATEWAYS, Plan, Stage};

const SHOPPERS: usize = 8;
const BETWEEN_CRASHES: usize = 20;

/// Frequent failures of all kinds at the payment gateways.
pub fn failing_behaviour() -> Value {
    json!({ "latency_ms": 2, "jitter_ms": 20, "declines": 0.05, "forgets": 0.05, "silent": 0.05,
        "webhook_delay_ms": 30, "duplicates": 0.2, "lost_webhooks": 0.2 })
}

/// All answers match the tables, and no key has two payments.
pub async fn compare(stage: &Stage, answers: &[FinalAnswer]) {
    stage.check_books().await;
    let rows = stage.rows("select id, state, captured, refunded from payments.intent");
    let mut ours: HashMap<String, (String, i64, i64)> = HashMap::new();
    for row in rows {
        let [id, state, captured, refunded] = row.as_slice() else { panic!("{row:?}") };
        let number = |text: &Option<String>| text.as_ref().unwrap().parse().unwrap();
        ours.insert(id.clone().unwrap(), (state.clone().unwrap(), number(captured), number(refunded)));
    }
    assert_eq!(ours.len(), answers.len(), "one payment for each key");
    for (id, state, captured, refunded) in answers {
        assert_eq!(ours[id], (state.clone(), *captured, *refunded), "{id}");
    }
}

async fn crash(mut stage: Stage, times: usize, mut what: impl FnMut(&mut Stage)) {
    stage.behave(&GATEWAYS, failing_behaviour()).await;
    let load = Load::start(&stage.caller(), SHOPPERS);
    for _ in 0..times {
        load.wait_for(BETWEEN_CRASHES).await;
        tokio::task::block_in_place(|| what(&mut stage));
    }
    load.wait_for(BETWEEN_CRASHES).await;
    let answers = load.stop().await;
    compare(&stage, &answers).await;
}

fn restart_server(stage: &mut Stage) {
    stage.server.kill_dash_nine().unwrap();
    stage.server.restart().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_service_that_is_killed_under_load_loses_and_duplicates_nothing() {
    crash(Stage::start().await, 4, |stage| stage.service.restart()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_worker_that_is_killed_under_load_loses_and_duplicates_nothing() {
    crash(Stage::start().await, 4, |stage| stage.worker.restart()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn two_workers_killed_in_turn_lose_and_duplicate_nothing() {
    let stage = Stage::start().await;
    let mut second = tokio::task::block_in_place(|| stage.worker.start_another());
    let mut first_is_next = true;
    let restart = |stage: &mut Stage| {
        if first_is_next {
            stage.worker.restart()
        } else {
            second.restart()
        }
        first_is_next = !first_is_next;
    };
    crash(stage, 4, restart).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_server_that_is_killed_under_load_loses_and_duplicates_nothing() {
    crash(Stage::start().await, 2, restart_server).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_server_that_is_killed_behind_hotrow_loses_and_duplicates_nothing() {
    crash(Stage::build(Plan::ThroughHotrow, &[]).await, 2, restart_server).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_payment_gateway_that_is_killed_under_load_keeps_its_book() {
    crash(Stage::start().await, 2, |stage| stage.gateways.restart()).await;
}
