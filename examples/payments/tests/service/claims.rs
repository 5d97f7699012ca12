//! Tests how workers claim due rows: they skip locked rows and move the time of the others to the next delay.

use serde_json::json;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;

use crate::stage::{Caller, GATEWAYS, Stage, payment};

const CLAIM_ATTEMPTS: &str = include_str!("../../sql/claim_attempts.sql");
const CLAIM_WEBHOOKS: &str = include_str!("../../sql/claim_webhooks.sql");
const CLAIM_NOTIFICATIONS: &str = include_str!("../../sql/claim_notifications.sql");

const MOST: i64 = 100;

async fn pay(caller: &Caller, payments: usize) {
    let mut tasks = JoinSet::new();
    for number in 0..payments {
        let caller = caller.clone();
        tasks.spawn(
            async move { caller.post("/v1/payments", &number.to_string(), &payment(1000, true)).await },
        );
    }
    tasks.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_one_worker_has_locked_are_skipped_by_others() {
    let mut stage = Stage::with(&[("RECONCILE_SECONDS", "600")]).await;
    tokio::task::block_in_place(|| stage.worker.kill_dash_nine());
    stage.behave(&GATEWAYS, json!({ "webhooks_url": "" })).await;
    pay(&stage.caller(), 3).await;
    stage.rows("update payments.attempt set due_at = now()");
    stage.rows(
        "insert into payments.webhook (gateway, event, body, due_at)
        select 'lotus', n::text, '', now() from generate_series(1, 3) n",
    );
    stage.rows(
        "insert into payments.notification (event, endpoint, body, due_at)
        select gen_random_uuid(), 'shop', '', now() from generate_series(1, 3)",
    );
    let (mut one, other) = (stage.connect().await, stage.connect().await);
    other.batch_execute("set lock_timeout = '2s'").await.unwrap();
    let ladder = vec![60.0];
    let attempts: &[&(dyn ToSql + Sync)] = &[&ladder, &MOST, &false];
    let cases: [(&str, &str, &[&(dyn ToSql + Sync)]); 3] = [
        ("attempt", CLAIM_ATTEMPTS, attempts),
        ("webhook", CLAIM_WEBHOOKS, &[&MOST]),
        ("notification", CLAIM_NOTIFICATIONS, &[&"shop", &MOST]),
    ];
    for (table, claim, values) in cases {
        let held = one.transaction().await.unwrap();
        let first = format!("select from payments.{table} order by due_at limit 1 for update");
        held.batch_execute(&first).await.unwrap();
        let claimed = other.query(claim, values).await;
        assert_eq!(claimed.unwrap_or_else(|error| panic!("{table}: {error:?}")).len(), 2, "{table}");
        held.rollback().await.unwrap();
        assert_eq!(other.query(claim, values).await.unwrap().len(), 1, "{table}: what was held");
        assert_eq!(other.query(claim, values).await.unwrap().len(), 0, "{table}: all are claimed");
    }
}

/// Checks that the seconds in a column deviate by at most a tenth and are not all equal.
fn are_about(stage: &Stage, column: &str, wanted: f64) {
    let rows = stage.rows(&format!("select extract(epoch from {column})::float8 from payments.attempt"));
    let mut seconds: Vec<f64> = rows.iter().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect();
    assert!(seconds.iter().all(|it| (0.9 * wanted..=1.1 * wanted).contains(it)), "{seconds:?}, not {wanted}");
    seconds.dedup();
    assert!(seconds.len() > 1, "all at the same time: {seconds:?}");
}

/// Tests the delays from the first look, which the service sets, to the last delay, which is repeated.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_looked_at_after_each_delay() {
    let mut stage = Stage::with(&[("RECONCILE_SECONDS", "600")]).await;
    tokio::task::block_in_place(|| stage.worker.kill_dash_nine());
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    pay(&stage.caller(), 5).await;
    are_about(&stage, "due_at - created_at", 600.0);
    let mut client = stage.connect().await;
    let ladder = vec![60.0, 300.0, 3600.0, 86400.0];
    for wanted in [300.0, 3600.0, 86400.0, 86400.0] {
        stage.rows("update payments.attempt set due_at = now()");
        // The test stores the time of the claim in `created_at`, which no statement reads. It is constant within a
        // transaction.
        let claiming = client.transaction().await.unwrap();
        assert_eq!(claiming.query(CLAIM_ATTEMPTS, &[&ladder, &MOST, &true]).await.unwrap().len(), 5);
        claiming.batch_execute("update payments.attempt set created_at = now()").await.unwrap();
        claiming.commit().await.unwrap();
        are_about(&stage, "due_at - created_at", wanted);
    }
    assert_eq!(stage.value("select min(tries) || ' ' || max(tries) from payments.attempt"), "4 4");
}

/// Otherwise, the recounts of a long day would never end: attempts that are settled during a recount are left to a later
/// one.
#[tokio::test(flavor = "multi_thread")]
async fn a_day_is_recounted_once_for_all_due_attempts() {
    let stage = Stage::with(&[("RECONCILE_SECONDS", "600"), ("GATEWAY_SECONDS", "10")]).await;
    pay(&stage.caller(), 120).await;
    stage.rows("update payments.attempt set due_at = now()");
    stage.until("select count(*) from payments.attempt where due_at is not null", "0").await;
    assert_eq!(stage.value("select max(epoch) from payments.merchant_day"), "2");
    stage.check_books().await;
}
