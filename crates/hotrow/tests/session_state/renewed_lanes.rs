//! Reasons for a lane to log in again: a changed definition, because no state of a statement may stay on the lane's
//! connection; and not idleness.

use std::time::Duration;

use hotrow_testkit::{PATIENCE, config, connect, migrate, rows, server, until, value};

use crate::Stage;

const CREATE_TRIGGER: &str =
    "create trigger checked before update on t for each row execute function checked()";

/// The lanes that hold a lock that a trigger takes.
const LANES_WITH_LOCK: &str = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
    where locktype = 'advisory' and objid = 80 and granted and a.datname = current_database()
      and starts_with(a.application_name, 'hotrow lane')";

/// A stage whose table has a trigger with this function.
async fn with_trigger(body: &str) -> Stage {
    let stage = Stage::alone(&[]).await;
    stage.direct.batch_execute(&checked(body)).await.unwrap();
    stage.direct.batch_execute(CREATE_TRIGGER).await.unwrap();
    stage
}

fn checked(body: &str) -> String {
    format!(
        "create or replace function checked() returns trigger language plpgsql as $$
         begin {body} return new; end $$"
    )
}

#[tokio::test]
async fn a_lock_that_a_changed_trigger_takes_does_not_stay_on_the_lane() {
    let stage = with_trigger("").await;
    let client = stage.client().await;
    assert!(stage.packs(&client).await && stage.packs(&client).await);
    stage.direct.batch_execute(&checked("perform pg_advisory_lock(80);")).await.unwrap();
    // The batch takes the lock and is rolled back. Then the unit runs on its session's connection and the lock stays
    // there.
    let updated = tokio::time::timeout(PATIENCE, value(&client, crate::UPDATE)).await;
    assert_eq!(updated.expect("the lane's connection has released the lock"), "3");
    assert_eq!(value(&stage.direct, LANES_WITH_LOCK).await, "0");
}

#[tokio::test]
async fn a_setting_of_a_view_that_replaced_a_table_does_not_stay_on_the_lane() {
    let stage = Stage::alone(&["--catalog-age-ms", "200"]).await;
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
    // A client to which the setting is left is in another pool from then on.
    let dates = async || {
        value(&stage.client().await, look).await;
        day().await
    };
    // When the statement is decided again, all lanes are replaced, also those that had not run it.
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    until("the statement is passed through", async || {
        dates().await;
        let statements = rows(&console, "show statements").await.unwrap();
        let is_passed = |row: &Vec<Option<String>>| {
            let [text, reason] = [1, 3].map(|column| row[column].as_deref().unwrap_or_default());
            text.contains("from looked") && reason.contains("german")
        };
        statements.iter().any(is_passed)
    })
    .await;
    for _ in 0..20 {
        assert_eq!(dates().await, "2020-12-31");
    }
}

#[tokio::test]
async fn a_statement_that_was_not_run_for_long_is_decided_again() {
    let stage = Stage::alone(&["--catalog-age-ms", "200"]).await;
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
    tokio::time::sleep(Duration::from_millis(500)).await; // longer than the catalog's age
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
        tokio::time::sleep(Duration::from_millis(300)).await; // longer than the timeout
    }
    assert!(stage.gateway.metric("packed_units_total") >= 4);
    assert_eq!(stage.gateway.metric("lane_connections_lost_total"), 0);
}

#[tokio::test]
async fn a_lock_that_a_failing_trigger_takes_does_not_stay_on_the_lane() {
    let stage = with_trigger("").await;
    let client = stage.client().await;
    assert!(stage.packs(&client).await && stage.packs(&client).await);
    let fails = checked("perform pg_advisory_lock(80); raise 'no';");
    stage.direct.batch_execute(&fails).await.unwrap();
    let updated = tokio::time::timeout(PATIENCE, client.simple_query(crate::UPDATE)).await;
    let error = updated.expect("the lane has released the lock").unwrap_err();
    assert_eq!(error.as_db_error().unwrap().message(), "no");
    until("no lane has the lock", async || value(&stage.direct, LANES_WITH_LOCK).await == "0").await;
    assert_eq!(stage.gateway.metric("lane_connections_lost_total"), 0);
}

/// A trigger that runs this comes before a batch. It is dropped between the batch and its second run, so the second check finds
/// the table as it was.
async fn after_a_short_trigger(body: &str) -> (Stage, tokio_postgres::Client) {
    let waits = format!(
        "perform pg_advisory_lock(80); {body}
         while not exists (select from signals) loop perform pg_sleep(0.001); end loop;"
    );
    let stage = with_trigger(&waits).await;
    let without = "create table signals (); drop trigger checked on t";
    stage.direct.batch_execute(without).await.unwrap();
    let client = stage.client().await;
    assert!(stage.packs(&client).await && stage.packs(&client).await);
    stage.direct.batch_execute(CREATE_TRIGGER).await.unwrap();
    let update = tokio::spawn(async move { (value(&client, crate::UPDATE).await, client) });
    until("a lane has the lock", async || value(&stage.direct, LANES_WITH_LOCK).await == "1").await;
    let mut config = config(server().port());
    config.dbname(&stage.database).options(format!("-c search_path={}", stage.schema));
    let other = connect(&config).await;
    let dropped = tokio::spawn(async move { other.batch_execute("drop trigger checked on t").await });
    let waiting = "select count(*) from pg_locks where not granted and relation = 't'::regclass";
    until("the drop waits", async || value(&stage.direct, waiting).await == "1").await;
    stage.direct.batch_execute("insert into signals default values").await.unwrap();
    dropped.await.unwrap().unwrap();
    let (updated, client) = update.await.unwrap();
    assert_eq!(updated, "3");
    (stage, client)
}

#[tokio::test]
async fn a_lock_of_a_trigger_that_comes_and_goes_does_not_stay_on_the_lane() {
    let (stage, _) = after_a_short_trigger("").await;
    until("no lane has the lock", async || value(&stage.direct, LANES_WITH_LOCK).await == "0").await;
    assert_eq!(stage.gateway.metric("packed_units_total"), 3, "the batch has run again");
}

#[tokio::test]
async fn a_statement_that_a_trigger_has_deallocated_is_packed_again() {
    let (stage, client) = after_a_short_trigger("execute 'deallocate all';").await;
    until("it is packed again", async || stage.packs(&client).await).await;
}

#[tokio::test]
async fn a_failed_unit_leaves_the_lane_its_connection_and_the_lock_of_its_mark() {
    let stage = Stage::alone(&[]).await;
    migrate(&format!("postgres://postgres@127.0.0.1:{}/{}", server().port(), stage.database));
    stage.direct.batch_execute("alter table t add check (n < 4)").await.unwrap();
    let client = stage.client().await;
    assert!(stage.packs(&client).await && stage.packs(&client).await);
    let lane = "select string_agg(format('%s %s', pid, objid), ',') from pg_locks l join pg_stat_activity a using (pid)
        where locktype = 'advisory' and a.datname = current_database()
          and starts_with(a.application_name, 'hotrow lane')";
    let before = value(&stage.direct, lane).await;
    assert!(before.contains(' '), "the lane has a mark");
    let fails = "update t set n = n + 9 where id = 1 returning n";
    for _ in 0..3 {
        client.simple_query(fails).await.unwrap_err();
        assert_eq!(value(&client, "select n from t where id = 1").await, "2");
        assert_eq!(value(&client, "update t set n = 3 where id = 1 returning n").await, "3");
        assert_eq!(value(&client, "update t set n = 2 where id = 1 returning n").await, "2");
    }
    assert_eq!(value(&stage.direct, lane).await, before);
}
