//! Reasons for a lane to log in again: a changed definition, because no state of a statement may stay on the lane's
//! connection; and not idleness.

use std::time::Duration;

use hotrow_testkit::{PATIENCE, connect, rows, until, value};

use crate::Stage;

#[tokio::test]
async fn a_lock_that_a_changed_trigger_takes_does_not_stay_on_the_lane() {
    let stage = Stage::alone(&[]).await;
    let trigger = |body: &str| {
        format!(
            "create or replace function checked() returns trigger language plpgsql as $$
             begin {body} return new; end $$"
        )
    };
    stage.direct.batch_execute(&trigger("")).await.unwrap();
    let create = "create trigger checked before update on t for each row execute function checked()";
    stage.direct.batch_execute(create).await.unwrap();
    let client = stage.client().await;
    assert!(stage.packs(&client).await && stage.packs(&client).await);
    stage.direct.batch_execute(&trigger("perform pg_advisory_lock(80);")).await.unwrap();
    // The batch takes the lock and is rolled back. Then the unit runs on its session's connection and the lock stays
    // there.
    let updated = tokio::time::timeout(PATIENCE, value(&client, crate::UPDATE)).await;
    assert_eq!(updated.expect("the lane's connection has released the lock"), "3");
    let holders = "select a.application_name from pg_locks l join pg_stat_activity a using (pid)
        where locktype = 'advisory' and objid = 80 and granted";
    let held = rows(&stage.direct, holders).await.unwrap();
    assert!(held.iter().all(|row| !row[0].as_deref().unwrap().starts_with("hotrow lane")), "{held:?}");
}

#[tokio::test]
async fn a_setting_of_a_view_that_replaced_a_table_does_not_stay_on_the_lane() {
    let stage = Stage::alone(&["--catalogue-age-ms", "200"]).await;
    let sql = "create table looked (id int primary key, v int); insert into looked values (1, 1);
        create table days (id int primary key, day date); insert into days values (1, '2020-12-31');
        create function german(int) returns int language plpgsql as
            $$ begin perform set_config('datestyle', 'german', false); return $1; end $$";
    stage.direct.batch_execute(sql).await.unwrap();
    let (client, other) = (stage.client().await, stage.client().await);
    let look = "select v from looked where id = 1";
    let day = async || value(&other, "select day from days where id = 1").await;
    for _ in 0..5 {
        assert_eq!((value(&client, look).await.as_str(), day().await.as_str()), ("1", "2020-12-31"));
    }
    assert!(stage.gateway.metric("packed_reads_total") > 0);
    let replace = "begin; alter table looked rename to kept;
        create view looked as select id, german(v) as v from kept; commit";
    stage.direct.batch_execute(replace).await.unwrap();
    let dates = async || {
        value(&client, look).await;
        day().await
    };
    until("the dates are as before", async || dates().await == "2020-12-31").await;
    // The lanes that had not run the statement are replaced too, and by now the gateway has decided each statement
    // again.
    tokio::time::sleep(Duration::from_millis(500)).await;
    dates().await;
    for _ in 0..20 {
        assert_eq!(dates().await, "2020-12-31");
    }
}

#[tokio::test]
async fn a_statement_that_was_not_run_for_long_is_decided_again() {
    let stage = Stage::alone(&["--catalogue-age-ms", "200"]).await;
    stage
        .direct
        .batch_execute("create function noted(int) returns int language sql as 'select $1'")
        .await
        .unwrap();
    let client = stage.client().await;
    let look = "select n from t where id = 2";
    for _ in 0..5 {
        assert_eq!(value(&client, look).await, "0");
    }
    let packed = stage.gateway.metric("packed_reads_total");
    assert!(packed > 0);
    let replace =
        "begin; alter table t rename to kept; create view t as select id, noted(n) as n from kept; commit";
    stage.direct.batch_execute(replace).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(value(&client, look).await, "0");
    assert_eq!(stage.gateway.metric("packed_reads_total"), packed);
}

#[tokio::test]
async fn an_idle_lane_is_not_closed_by_idle_session_timeout() {
    let stage = Stage::alone(&[]).await;
    let mut config = stage.config();
    config.options(format!("-c search_path={} -c idle_session_timeout=100", stage.schema));
    let client = connect(&config).await;
    for n in 1..6 {
        assert_eq!(value(&client, crate::UPDATE).await, n.to_string());
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(stage.gateway.metric("packed_units_total") >= 4);
    assert_eq!(stage.gateway.metric("lane_connections_lost_total"), 0);
}
