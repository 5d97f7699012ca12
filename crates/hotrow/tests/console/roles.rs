//! ALTER ROLE ... SET and ALTER DATABASE ... SET apply in lanes, which log in as the client's user.

use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, PATIENT_LANES, config, connect, sqlstate, until, value};
use tokio_postgres::Client;

use crate::Stage;

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

/// A client through the gateway whose role finds the table by its own search path.
async fn role(stage: &Stage, name: &str, more: &str) -> (String, Client) {
    let role = format!("{}_{name}", stage.schema);
    let sql = format!(
        "create role {role} login; alter role {role} set search_path = {0};
         grant usage on schema {0} to {role}; grant all on all tables in schema {0} to {role}; {1}",
        stage.schema,
        more.replace("$role", &role)
    );
    stage.direct.batch_execute(&sql).await.unwrap();
    let client = connect(stage.gateway.config().user(&role)).await;
    (role, client)
}

#[tokio::test]
async fn search_path_and_timezone_apply_in_lanes() {
    let stage = Stage::new("", &[]).await;
    stage.direct.batch_execute("create table at (id int primary key, t timestamptz)").await.unwrap();
    let (_, client) = role(&stage, "far", "alter role $role set timezone = 'Asia/Tokyo'").await;
    assert!(stage.packs(&client).await);
    let before = stage.gateway.metric("packed_units_total");
    let insert = "insert into at values (1, '2020-01-01 09:00:00') returning t";
    assert_eq!(value(&client, insert).await, "2020-01-01 09:00:00+09");
    assert_eq!(stage.gateway.metric("packed_units_total"), before + 1);
    assert_eq!(value(&stage.direct, "select t at time zone 'UTC' from at").await, "2020-01-01 00:00:00");
}

#[tokio::test]
async fn a_read_only_role_gets_the_error_of_a_direct_connection() {
    let stage = Stage::new("", &[]).await;
    let (name, client) =
        role(&stage, "reader", "alter role $role set default_transaction_read_only = on").await;
    let direct = connect(config(hotrow_testkit::server().port()).user(&name)).await;
    let expected = direct.simple_query(UPDATE).await.unwrap_err();
    let error = client.simple_query(UPDATE).await.unwrap_err();
    assert_eq!(sqlstate(&error), "25006");
    assert_eq!(error.as_db_error().unwrap().message(), expected.as_db_error().unwrap().message());
    assert_eq!(value(&client, "select n from t where id = 1").await, "0");
    assert_eq!(stage.gateway.metric("packed_reads_total"), 1, "reads are packed nevertheless");
}

#[tokio::test]
async fn a_role_with_another_default_isolation_level_is_not_packed() {
    let stage = Stage::new("", &[]).await;
    for level in ["repeatable read", "serializable"] {
        let name = level.replace(' ', "_");
        let more = format!("alter role $role set default_transaction_isolation = '{level}'");
        let (_, client) = role(&stage, &name, &more).await;
        assert!(!stage.packs(&client).await);
        assert_eq!(value(&client, "show transaction_isolation").await, level);
    }
}

#[tokio::test]
async fn statement_timeout_applies_in_a_lane() {
    let stage = Stage::new("lane_lock_timeout_ms = 20000\n", &[]).await;
    let (_, client) = role(&stage, "hasty", "alter role $role set statement_timeout = '150ms'").await;
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let error = client.simple_query(UPDATE).await.unwrap_err();
    assert_eq!(sqlstate(&error), "57014");
    assert!(error.as_db_error().unwrap().message().contains("statement timeout"), "{error:?}");
    assert_eq!(stage.gateway.metric("slow_units_total"), 1, "the statement ran in a lane first");
    stage.direct.batch_execute("rollback").await.unwrap();
    assert_eq!(value(&client, UPDATE).await, "1");
}

#[tokio::test]
async fn a_lock_timeout_shorter_than_the_lanes_applies_in_the_lane() {
    let stage = Stage::new("lane_lock_timeout_ms = 25000\n", &[]).await;
    let (_, client) = role(&stage, "hasty", "alter role $role set lock_timeout = '50ms'").await;
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let since = Instant::now();
    let error = client.simple_query(UPDATE).await.unwrap_err();
    assert_eq!(sqlstate(&error), "55P03");
    assert!(since.elapsed() < Duration::from_secs(20), "not the lane's own 25 s");
    assert_eq!(stage.gateway.metric("blocked_units_total"), 1);
    stage.direct.batch_execute("rollback").await.unwrap();
    assert_eq!(value(&client, UPDATE).await, "1");
}

#[tokio::test]
async fn a_longer_lock_timeout_applies_only_outside_the_lane() {
    let stage = Stage::new("lane_lock_timeout_ms = 2000\n", &[]).await;
    let (_, client) = role(&stage, "patient", "alter role $role set lock_timeout = '20s'").await;
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let waits = tokio::spawn(async move { value(&client, UPDATE).await });
    until("the unit has left its lane", || async { stage.gateway.metric("blocked_units_total") == 1 }).await;
    stage.direct.batch_execute("rollback").await.unwrap();
    assert_eq!(waits.await.unwrap(), "1");
}

/// A standby that never connects: clients that commit synchronously wait for it.
#[tokio::test]
async fn synchronous_commit_applies_in_a_lane() {
    let server = PrivateServer::builder()
        .label("syncrep")
        .setting("synchronous_standby_names", "nobody")
        .start()
        .unwrap();
    let direct = connect(config(server.port()).options("-c synchronous_commit=local")).await;
    let sql = "create table t (id int primary key, n int); insert into t values (1, 0), (2, 0);
               create role quick login; alter role quick set synchronous_commit = local; create role safe login;
               grant all on t to quick, safe";
    direct.batch_execute(sql).await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
    let gateway = Gateway::in_front_of(&url, &PATIENT_LANES);
    let quick = connect(gateway.config().user("quick")).await;
    assert_eq!(value(&quick, UPDATE).await, "1");
    assert_eq!(gateway.metric("packed_units_total"), 1);
    let safe = connect(gateway.config().user("safe")).await;
    let waits =
        tokio::spawn(async move { value(&safe, "update t set n = 5 where id = 2 returning n").await });
    let look = "select count(*) from pg_stat_activity where usename = 'safe' and wait_event = 'SyncRep'
                and application_name = 'hotrow lane 0'";
    until("the other role's lane waits", || async { value(&direct, look).await == "1" }).await;
    assert!(!waits.is_finished());
    direct.batch_execute("alter system set synchronous_standby_names = ''").await.unwrap();
    direct.batch_execute("select pg_reload_conf()").await.unwrap();
    assert_eq!(waits.await.unwrap(), "5");
}

#[tokio::test]
async fn a_later_setting_of_a_role_applies_after_a_reload() {
    let stage = Stage::new("", &[]).await;
    let (name, client) = role(&stage, "mover", "").await;
    assert!(stage.packs(&client).await);
    client.batch_execute("begin; select * from t; commit").await.unwrap(); // this leaves an idle connection
    let sql = format!(
        "create schema {0}_new; create table {0}_new.t (id int primary key, n int);
         insert into {0}_new.t values (1, 100), (2, 100); alter role {name} set search_path = {0}_new;
         grant usage on schema {0}_new to {name}; grant all on {0}_new.t to {name}",
        stage.schema
    );
    stage.direct.batch_execute(&sql).await.unwrap();
    assert_eq!(value(&client, UPDATE).await, "2", "a connection keeps the settings of its login");
    stage.reload("").await;
    until("the lane has logged in again", || async {
        value(&client, "update t set n = n + 1 where id = 2 returning n").await.parse::<i32>().unwrap() > 100
    })
    .await;
    assert_eq!(
        value(&client, "begin; select n from t where id = 1; commit").await,
        "100",
        "sessions have logged in again too"
    );
    stage
        .direct
        .batch_execute(&format!("alter role {name} set default_transaction_isolation = serializable"))
        .await
        .unwrap();
    stage.reload("").await;
    until("none of its statements are packed", || async {
        value(&client, "show hotrow.pack").await == "off"
    })
    .await;
}

#[tokio::test]
async fn settings_of_a_database_apply_and_those_of_a_role_override_them() {
    let server = PrivateServer::builder().label("dbset").start().unwrap();
    let direct = connect(&config(server.port())).await;
    let sql = "create table at (id int primary key, t timestamptz); create role ann login; create role bob login;
               alter database postgres set timezone = 'Asia/Tokyo'; alter role bob set timezone = 'Asia/Kolkata';
               alter role bob in database postgres set timezone = 'Asia/Kathmandu'; grant all on at to ann, bob";
    direct.batch_execute(sql).await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
    let gateway = Gateway::in_front_of(&url, &PATIENT_LANES);
    for (user, id, offset) in [("ann", 1, "+09"), ("bob", 2, "+05:45")] {
        let client = connect(gateway.config().user(user)).await;
        let insert = format!("insert into at values ({id}, '2020-01-01 09:00:00') returning t");
        assert_eq!(value(&client, &insert).await, format!("2020-01-01 09:00:00{offset}"));
    }
    assert_eq!(gateway.metric("packed_units_total"), 2);
}
