//! Tests the merchant's day during recounts: each race that its epoch prevents, one step after another, with the
//! service's own statements and with locks that delay the others. recount_close.sql and recount_open.sql describe the
//! races.

use jiff::civil::Date;
use serde_json::json;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::stage::{GATEWAYS, Stage, payment};

const SETTLE_ATTEMPT: &str = include_str!("../../sql/settle_attempt.sql");
const ADD_TO_DAY: &str = include_str!("../../sql/add_to_day.sql");
const RECOUNT_CLOSE: &str = include_str!("../../sql/recount_close.sql");
const RECOUNT_OPEN: &str = include_str!("../../sql/recount_open.sql");

/// Workers do not look at attempts by themselves during the test.
const LONG_DELAYS: (&str, &str) = ("RECONCILE_SECONDS", "600");

/// The number of rows that a statement about today has changed. `more` has its values from the fourth on.
async fn today(client: &Client, sql: &str, more: &[&(dyn ToSql + Sync)]) -> u64 {
    let day: Date = client.query_one("select (now() at time zone 'UTC')::date", &[]).await.unwrap().get(0);
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&"shop", &day, &"INR"];
    values.extend(more);
    client.execute(sql, &values).await.unwrap()
}

/// The totals of the day, and the epoch.
fn day(stage: &Stage) -> (String, String) {
    let value = |column| stage.value(&format!("select {column} from payments.merchant_day"));
    (value("attempts || ' ' || captured"), value("epoch"))
}

/// Leaves all attempts to a worker and checks the result.
async fn check_totals(stage: &Stage, attempts: &str) {
    stage.rows("update payments.attempt set due_at = now() where due_at is not null");
    stage.check_books().await;
    assert_eq!(day(stage).0, attempts);
}

/// A service is slow or crashes between deciding an attempt and adding it. Meanwhile a recount has counted the attempt.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_counted_attempt_is_not_added_again() {
    let stage = Stage::with(&[LONG_DELAYS]).await;
    let mut holder = stage.connect().await;
    let other = stage.connect().await;
    let held = holder.transaction().await.unwrap();
    // The event is written after the decision and before the addition.
    held.batch_execute("lock table payments.outbox in exclusive mode").await.unwrap();
    let caller = stage.caller();
    let paying = tokio::spawn(async move { caller.post("/v1/payments", "a", &payment(1000, true)).await });
    stage.wait_for_lock("payments.outbox").await;
    assert_eq!(stage.value("select state from payments.attempt"), "succeeded");
    assert_eq!(today(&other, RECOUNT_CLOSE, &[&0_i64]).await, 1);
    assert_eq!(today(&other, RECOUNT_OPEN, &[&1_i64]).await, 1);
    assert_eq!(day(&stage), ("1 1000".to_owned(), "2".to_owned()));
    held.rollback().await.unwrap();
    assert_eq!(paying.await.unwrap().0, 201);
    assert_eq!(day(&stage).0, "1 1000", "added twice");
    assert_eq!(stage.value("select due_at is not null from payments.attempt"), "t", "left to a recount");
    check_totals(&stage, "1 1000").await;
}

/// While a day is closed, a recount may have read the attempts already, and would overwrite an addition.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn nothing_is_added_to_a_closed_day() {
    let stage = Stage::with(&[LONG_DELAYS]).await;
    let (caller, other) = (stage.caller(), stage.connect().await);
    caller.post("/v1/payments", "first", &payment(1000, true)).await;
    assert_eq!(today(&other, RECOUNT_CLOSE, &[&0_i64]).await, 1);
    let (status, _) = caller.post("/v1/payments", "second", &payment(1000, true)).await;
    assert_eq!(status, 201, "no request waits for a recount");
    assert_eq!(day(&stage), ("1 1000".to_owned(), "1".to_owned()));
    assert_eq!(stage.value("select count(*) from payments.attempt where due_at is not null"), "1");
    assert_eq!(today(&other, RECOUNT_OPEN, &[&1_i64]).await, 1);
    assert_eq!(day(&stage), ("2 2000".to_owned(), "2".to_owned()));
    check_totals(&stage, "2 2000").await;
}

/// A recount has read the attempts and waits for the row. Meanwhile another recount and a later addition commit.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_late_recount_does_not_write_old_sums() {
    let stage = Stage::with(&[LONG_DELAYS]).await;
    let (caller, mut holder, late) = (stage.caller(), stage.connect().await, stage.connect().await);
    caller.post("/v1/payments", "first", &payment(1000, true)).await;
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    let (status, second) = caller.post("/v1/payments", "second", &payment(500, true)).await;
    assert_eq!(status, 202, "the gateway executed it without an answer: {second}");
    assert_eq!(today(&late, RECOUNT_CLOSE, &[&0_i64]).await, 1);

    let between = holder.transaction().await.unwrap();
    let changed = async |sql: &str, more: &[&(dyn ToSql + Sync)]| {
        assert_eq!(today(between.client(), sql, more).await, 1);
    };
    changed(RECOUNT_OPEN, &[&1_i64]).await;
    let opening = tokio::spawn(async move { today(&late, RECOUNT_OPEN, &[&1_i64]).await });
    stage.wait_for_lock("payments.merchant_day").await;
    let attempt: uuid::Uuid = second["last_attempt"]["id"].as_str().unwrap().parse().unwrap();
    let now = "select version, (now() at time zone 'UTC')::date from payments.attempt where id = $1";
    let row = between.query_one(now, &[&attempt]).await.unwrap();
    let (version, on): (i64, Date) = (row.get(0), row.get(1));
    let code: Option<&str> = None;
    let settled =
        between.execute(SETTLE_ATTEMPT, &[&attempt, &version, &"succeeded", &code, &on]).await.unwrap();
    assert_eq!(settled, 1);
    changed(ADD_TO_DAY, &[&2_i64, &0_i64, &500_i64, &500_i64, &0_i64]).await;
    between.commit().await.unwrap();

    assert_eq!(opening.await.unwrap(), 0);
    assert_eq!(day(&stage), ("2 1500".to_owned(), "2".to_owned()), "overwritten by an older sum");
    check_totals(&stage, "2 1500").await;
}

/// Two recounts find the day open at the same time. If both could close it, it would be open again and neither would
/// count.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn only_one_of_two_simultaneous_recounts_closes_the_day() {
    let stage = Stage::with(&[LONG_DELAYS]).await;
    let (caller, one, two) = (stage.caller(), stage.connect().await, stage.connect().await);
    caller.post("/v1/payments", "first", &payment(1000, true)).await;
    // Simulates a program that has crashed between deciding an attempt and adding it.
    stage.rows("update payments.merchant_day set attempts = 0, captured = 0, authorized = 0");
    assert_eq!(today(&one, RECOUNT_CLOSE, &[&0_i64]).await, 1);
    assert_eq!(today(&two, RECOUNT_CLOSE, &[&0_i64]).await, 0);
    today(&one, RECOUNT_OPEN, &[&1_i64]).await;
    today(&two, RECOUNT_OPEN, &[&1_i64]).await;
    assert_eq!(day(&stage), ("1 1000".to_owned(), "2".to_owned()));
    check_totals(&stage, "1 1000").await;
}
