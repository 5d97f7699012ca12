//! Tests that each change is a compare-and-set on state and version: a statement with an older version or another
//! expected state changes nothing. Races would show this only by chance.

use jiff::civil::Date;
use serde_json::json;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::stage::{GATEWAYS, Stage, payment};

const BEGIN_INTENT: &str = include_str!("../../sql/begin_intent.sql");
const SETTLE_INTENT: &str = include_str!("../../sql/settle_intent.sql");
const DOUBT_ATTEMPT: &str = include_str!("../../sql/doubt_attempt.sql");
const SETTLE_ATTEMPT: &str = include_str!("../../sql/settle_attempt.sql");

#[tokio::test(flavor = "multi_thread")]
async fn statements_with_an_old_version_change_nothing() {
    let stage = Stage::with(&[("RECONCILE_SECONDS", "600")]).await;
    stage.behave(&GATEWAYS, json!({ "silent": 1.0, "lost_webhooks": 1.0 })).await;
    let caller = stage.caller();
    let new = {
        let mut new = payment(1000, true);
        new["confirm"] = json!(false);
        new
    };
    let (_, new) = caller.post("/v1/payments", "new", &new).await;
    let (status, paid) = caller.post("/v1/payments", "paid", &payment(1000, true)).await;
    assert_eq!(status, 202, "the outcome of its attempt is unknown: {paid}");
    let id = |value: &serde_json::Value| value.as_str().unwrap().parse::<Uuid>().unwrap();
    let (created, doubted, attempt) = (id(&new["id"]), id(&paid["id"]), id(&paid["last_attempt"]["id"]));
    let client = stage.connect().await;
    let changed =
        async |sql: &str, values: &[&(dyn ToSql + Sync)]| client.execute(sql, values).await.unwrap();

    // The new intent has version 1.
    let begin = async |version: i64, state: &str| {
        changed(BEGIN_INTENT, &[&created, &version, &state, &"authorizing", &attempt]).await
    };
    assert_eq!((begin(0, "created").await, begin(2, "created").await), (0, 0), "another version");
    assert_eq!(begin(1, "authorized").await, 0, "another state");
    assert_eq!((begin(1, "created").await, begin(1, "created").await), (1, 0), "once");

    // Its attempt is unknown and has version 2.
    let doubt = async |version: i64| changed(DOUBT_ATTEMPT, &[&attempt, &version, &"why"]).await;
    assert_eq!((doubt(1).await, doubt(2).await), (0, 0), "in doubt already");
    let day: Date = "2026-11-22".parse().unwrap();
    let code: Option<&str> = None;
    let settle =
        async |version: i64| changed(SETTLE_ATTEMPT, &[&attempt, &version, &"succeeded", &code, &day]).await;
    assert_eq!((settle(1).await, settle(3).await), (0, 0), "another version");
    assert_eq!((settle(2).await, settle(3).await), (1, 0), "once");
    stage.rows("update payments.attempt set state = 'started', version = 1");
    assert_eq!((doubt(2).await, doubt(1).await), (0, 1), "another version");

    // The intent is under way and has version 2.
    let gateway: Option<&str> = None;
    let settle = async |version: i64, state: &str| {
        let values: [&(dyn ToSql + Sync); 8] =
            [&doubted, &version, &state, &"captured", &1000_i64, &0_i64, &attempt, &gateway];
        changed(SETTLE_INTENT, &values).await
    };
    assert_eq!((settle(1, "authorizing").await, settle(3, "authorizing").await), (0, 0), "another version");
    assert_eq!(settle(2, "refunding").await, 0, "another state");
    assert_eq!((settle(2, "authorizing").await, settle(3, "authorizing").await), (1, 0), "once");
}
