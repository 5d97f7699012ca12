//! The merchant's day under recounts: each race that its epoch guards, one step after the other, with the service's own
//! statements and locks that hold the others back. recount_close.sql and recount_open.sql say what must not happen.

use jiff::civil::Date;
use serde_json::json;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::stage::{GATEWAYS, Stage, payment};

const SETTLE_ATTEMPT: &str = include_str!("../../sql/settle_attempt.sql");
const ADD_TO_DAY: &str = include_str!("../../sql/add_to_day.sql");
const RECOUNT_CLOSE: &str = include_str!("../../sql/recount_close.sql");
const RECOUNT_OPEN: &str = include_str!("../../sql/recount_open.sql");

/// Workers look at nothing by themselves before the test is over.
const NO_LADDER: (&str, &str) = ("RECONCILE_SECONDS", "600");

/// How many rows a statement about today has changed; `more` are its values from the fourth on.
async fn today(client: &Client, sql: &str, more: &[&(dyn ToSql + Sync)]) -> u64 {
    let day: Date = client.query_one("select (now() at time zone 'UTC')::date", &[]).await.unwrap().get(0);
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&"shop", &day, &"INR"];
    values.extend(more);
    client.execute(sql, &values).await.unwrap()
}

/// What the day says, and the epoch.
fn day(stage: &Stage) -> (String, String) {
    let value = |column| stage.value(&format!("select {column} from payments.merchant_day"));
    (value("attempts || ' ' || captured"), value("epoch"))
}

/// All is left to a worker, and comes out right.
async fn all_adds_up(stage: &Stage, attempts: &str) {
    stage.rows("update payments.attempt set due_at = now() where due_at is not null");
    stage.adds_up().await;
    assert_eq!(day(stage).0, attempts);
}

/// A service is slow, or dies, between deciding an attempt and adding it; meanwhile a recount has counted it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_recount_has_counted_is_not_added_again() {
    let stage = Stage::with(&[NO_LADDER]).await;
    let mut holder = stage.connect().await;
    let other = stage.connect().await;
    let held = holder.transaction().await.unwrap();
    // The event comes after the decision and before the addition.
    held.batch_execute("lock table payments.outbox in exclusive mode").await.unwrap();
    let caller = stage.caller();
    let paying = tokio::spawn(async move { caller.post("/v1/payments", "a", &payment(1000, true)).await });
    stage.somebody_waits("payments.outbox").await;
    assert_eq!(stage.value("select state from payments.attempt"), "succeeded");
    assert_eq!(today(&other, RECOUNT_CLOSE, &[&0_i64]).await, 1);
    assert_eq!(today(&other, RECOUNT_OPEN, &[&1_i64]).await, 1);
    assert_eq!(day(&stage), ("1 1000".to_owned(), "2".to_owned()));
    held.rollback().await.unwrap();
    assert_eq!(paying.await.unwrap().0, 201);
    assert_eq!(day(&stage).0, "1 1000", "added to a sum that has it");
    assert_eq!(stage.value("select due_at is not null from payments.attempt"), "t", "left to a recount");
    all_adds_up(&stage, "1 1000").await;
}

/// While a day is closed, whoever counts may have looked already, and will write over what is added.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_added_to_a_day_that_is_closed() {
    let stage = Stage::with(&[NO_LADDER]).await;
    let (caller, other) = (stage.caller(), stage.connect().await);
    caller.post("/v1/payments", "first", &payment(1000, true)).await;
    assert_eq!(today(&other, RECOUNT_CLOSE, &[&0_i64]).await, 1);
    let (status, _) = caller.post("/v1/payments", "second", &payment(1000, true)).await;
    assert_eq!(status, 201, "nobody waits for a recount");
    assert_eq!(day(&stage), ("1 1000".to_owned(), "1".to_owned()));
    assert_eq!(stage.value("select count(*) from payments.attempt where due_at is not null"), "1");
    assert_eq!(today(&other, RECOUNT_OPEN, &[&1_i64]).await, 1);
    assert_eq!(day(&stage), ("2 2000".to_owned(), "2".to_owned()));
    all_adds_up(&stage, "2 2000").await;
}

/// A recount has looked and waits for the row; another one's comes and goes, and so does an addition after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_recount_that_comes_late_does_not_write_what_it_saw_before() {
    let stage = Stage::with(&[NO_LADDER]).await;
    let (caller, mut holder, late) = (stage.caller(), stage.connect().await, stage.connect().await);
    caller.post("/v1/payments", "first", &payment(1000, true)).await;
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    let (status, second) = caller.post("/v1/payments", "second", &payment(500, true)).await;
    assert_eq!(status, 202, "the gateway has done it and not said so: {second}");
    assert_eq!(today(&late, RECOUNT_CLOSE, &[&0_i64]).await, 1);

    let between = holder.transaction().await.unwrap();
    let changed = async |sql: &str, more: &[&(dyn ToSql + Sync)]| {
        assert_eq!(today(between.client(), sql, more).await, 1);
    };
    changed(RECOUNT_OPEN, &[&1_i64]).await;
    let opening = tokio::spawn(async move { today(&late, RECOUNT_OPEN, &[&1_i64]).await });
    stage.somebody_waits("payments.merchant_day").await;
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
    assert_eq!(day(&stage), ("2 1500".to_owned(), "2".to_owned()), "written over by an older sum");
    all_adds_up(&stage, "2 1500").await;
}

/// Two recounts find the day open at the same time: if both could close it, it would be open again and counted by none.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_recounts_that_begin_together_one_closes_the_day() {
    let stage = Stage::with(&[NO_LADDER]).await;
    let (caller, one, two) = (stage.caller(), stage.connect().await, stage.connect().await);
    caller.post("/v1/payments", "first", &payment(1000, true)).await;
    // As after somebody who died between deciding an attempt and adding it.
    stage.rows("update payments.merchant_day set attempts = 0, captured = 0, authorized = 0");
    assert_eq!(today(&one, RECOUNT_CLOSE, &[&0_i64]).await, 1);
    assert_eq!(today(&two, RECOUNT_CLOSE, &[&0_i64]).await, 0);
    today(&one, RECOUNT_OPEN, &[&1_i64]).await;
    today(&two, RECOUNT_OPEN, &[&1_i64]).await;
    assert_eq!(day(&stage), ("1 1000".to_owned(), "2".to_owned()));
    all_adds_up(&stage, "1 1000").await;
}
