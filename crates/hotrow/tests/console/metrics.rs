//! Metrics by database, user, way and reason, the data behind a page, and the log's lines about the server and refusals.

use std::time::Duration;

use hotrow_connect::config::UpstreamConfig;
use hotrow_connect::net::Address;
use hotrow_gateway::config::Config;
use hotrow_gateway::view::Values;
use hotrow_gateway::{Gateway, Sockets};
use hotrow_postgres::PrivateServer;
use hotrow_testkit::{config, connect, sqlstate, try_connect, until, value};
use serde_json::Value;

use crate::Stage;

const UPDATE: &str = "update t set n = n + 1 where id = 1";

/// The value of a line of the page, by its name with labels.
fn metric(stage: &Stage, line: &str) -> f64 {
    let page = stage.gateway.metrics();
    let found =
        page.lines().find_map(|other| other.strip_prefix("hotrow_")?.strip_prefix(line)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {line} in {page}")).parse().unwrap()
}

#[tokio::test]
async fn units_are_counted_by_database_user_way_and_reason() {
    let stage = Stage::new("", &[]).await;
    let client = stage.client().await;
    for _ in 0..3 {
        client.simple_query(UPDATE).await.unwrap();
    }
    client.query("select n from t where id = $1", &[&1_i32]).await.unwrap();
    client.batch_execute("begin").await.unwrap();
    client.simple_query(UPDATE).await.unwrap();
    client.batch_execute("commit").await.unwrap();
    client.simple_query("select count(*) from t").await.unwrap();
    let own = |way| format!("client_units_total{{database=\"postgres\",user=\"postgres\",way=\"{way}\"}}");
    let counts = ["packed", "merged", "packed_read"].map(|way| metric(&stage, &own(way)));
    assert_eq!(counts, [3.0, 0.0, 1.0]);
    assert_eq!(metric(&stage, "unit_seconds_count{way=\"packed\"}"), 3.0);
    assert_eq!(metric(&stage, "unit_seconds_count{way=\"packed_read\"}"), 1.0);
    let passed = metric(&stage, &own("passed_through"));
    assert!(passed >= 3.0, "{passed}");
    assert_eq!(metric(&stage, "unit_seconds_count{way=\"passed_through\"}"), passed);
    assert_eq!(metric(&stage, "not_packed_total{reason=\"in_own_transaction\"}"), 1.0);
    assert!(metric(&stage, "not_packed_total{reason=\"not_packable\"}") >= 1.0);
    assert!(metric(&stage, "client_transactions_total{database=\"postgres\",user=\"postgres\"}") >= 2.0);
}

#[tokio::test]
async fn clients_that_keep_a_connection_are_counted_by_reason() {
    let stage = Stage::new("", &[]).await;
    let clients = [stage.client().await, stage.client().await];
    let is = async |reason: &str, count: f64| {
        let line = format!("pinned_clients{{reason=\"{reason}\"}}");
        until(&format!("{count} clients: {reason}"), async || metric(&stage, &line) == count).await;
    };
    is("custom setting", 0.0).await;
    for client in &clients {
        client.batch_execute("set app.tenant = 'x'").await.unwrap();
    }
    clients[0].batch_execute("create temporary table x (a int)").await.unwrap();
    clients[0].batch_execute("set hotrow.pack = off").await.unwrap();
    is("custom setting", 2.0).await;
    is("temporary table", 1.0).await;
    is("hotrow.pack is off", 1.0).await;
    is("SET ROLE", 0.0).await;
    // A client that is at work is still pinned.
    clients[0].batch_execute("begin; select 1").await.unwrap();
    assert_eq!(metric(&stage, "pinned_clients{reason=\"temporary table\"}"), 1.0);
    clients[0].batch_execute("commit; drop table x").await.unwrap();
    clients[0].batch_execute("discard all").await.unwrap();
    is("temporary table", 0.0).await;
    is("hotrow.pack is off", 0.0).await;
    is("custom setting", 1.0).await;
    drop(clients);
    is("custom setting", 0.0).await;
}

#[tokio::test]
async fn waiting_units_are_counted_while_they_wait() {
    let stage = Stage::new("lanes = 1\nlane_lock_timeout_ms = 2000\n", &[]).await;
    let console = stage.console().await;
    let client = stage.client().await;
    client.simple_query(UPDATE).await.unwrap();
    console.simple_query("pause").await.unwrap();
    let waits = tokio::spawn(async move { client.simple_query(UPDATE).await.unwrap() });
    until("the unit waits", || async { metric(&stage, "queued_units") == 1.0 }).await;
    console.simple_query("resume").await.unwrap();
    waits.await.unwrap();
    until("nothing waits", || async { metric(&stage, "queued_units") == 0.0 }).await;

    let clients = [stage.client().await, stage.client().await, stage.client().await];
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let waiting =
        clients.map(|client| tokio::spawn(async move { client.simple_query(UPDATE).await.unwrap() }));
    until("two units are parked", || async { metric(&stage, "parked_units") == 2.0 }).await;
    stage.direct.batch_execute("rollback").await.unwrap();
    for update in waiting {
        update.await.unwrap();
    }
    until("nothing is parked", || async { metric(&stage, "parked_units") == 0.0 }).await;
}

#[tokio::test]
async fn refusals_are_counted_by_reason_and_logged_once_in_an_interval() {
    let stage = Stage::new("held_connections_max = 1\nheld_wait_ms = 300\n", &[]).await;
    let (holds, client) = (stage.client().await, stage.client().await);
    holds.batch_execute("begin; select count(*) from t").await.unwrap();
    for _ in 0..5 {
        let error = client.simple_query("select count(*) from t").await.unwrap_err();
        assert_eq!(sqlstate(&error), "53300");
    }
    assert_eq!(metric(&stage, "refused_by_reason_total{reason=\"no_free_connection\"}"), 5.0);
    assert!(metric(&stage, "server_wait_seconds_count") >= 5.0);
    let log = stage.gateway.log();
    let lines: Vec<_> =
        log.lines().filter(|line| line.contains("clients or statements were refused")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("reason=\"no_free_connection\" count=1"), "{lines:?}");
}

#[tokio::test]
async fn the_log_reports_the_loss_and_the_return_of_the_server_once() {
    let server = PrivateServer::builder().label("lost").start().unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
    let direct = connect(&config(server.port())).await;
    let options = ["--log-format", "json", "--server-wait-ms", "100"];
    let stage = Stage::with(&url, direct, "public".to_owned(), "", &options).await;
    value(&stage.client().await, "select 1").await;
    server.stop().unwrap();
    for _ in 0..3 {
        assert!(try_connect(&stage.gateway.config()).await.is_err());
    }
    server.restart().unwrap();
    until("the server serves again", || async { try_connect(&stage.gateway.config()).await.is_ok() }).await;
    until("the log says so", async || stage.gateway.log().contains("the server is reachable again")).await;
    let log = stage.gateway.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let with = |message: &str| -> Vec<&Value> {
        lines.iter().filter(|line| line["message"].as_str() == Some(message)).collect()
    };
    assert_eq!(with("the server is unreachable").len(), 1, "{log}");
    let back = with("the server is reachable again");
    assert_eq!(back.len(), 1, "{log}");
    assert!(back[0]["attempts"].as_u64().unwrap() >= 3 && back[0]["level"] == "INFO", "{back:?}");
}

#[tokio::test]
async fn the_data_of_a_page_are_serialisable_and_hide_values_unless_they_are_allowed() {
    let (schema, direct) = hotrow_testkit::new_schema().await;
    direct
        .batch_execute("create table t (id int primary key, n int); insert into t values (4711, 0)")
        .await
        .unwrap();
    let upstream: UpstreamConfig = hotrow_testkit::server().url().parse().unwrap();
    let mut config = Config::new(upstream, vec!["127.0.0.1:0".parse().unwrap()]);
    config.verdict_wait = Duration::from_secs(10);
    let gateway = Gateway::start(config, &mut Sockets::inherited().unwrap(), "").await.unwrap();
    let inside = gateway.internal_clients();
    let Address::Tcp(_, port) = gateway.addresses()[0].clone() else { panic!("TCP") };
    let client = connect(&hotrow_testkit::config_in(port, &schema)).await;
    for _ in 0..3 {
        client.simple_query("update t set n = n + 1 where id = 4711").await.unwrap();
    }
    client.simple_query("select count(*) from t where n > 4711").await.unwrap();
    let [shown, hidden] = [inside.view(Values::Shown).await, inside.view(Values::Hidden).await]
        .map(|view| serde_json::to_value(view).unwrap());
    assert_eq!(shown["keys"][0]["values"][0], "4711");
    assert_eq!(
        (&hidden["keys"][0]["values"], &hidden["keys"][0]["columns"][0]),
        (&Value::Null, &"id".into())
    );
    assert!(!hidden.to_string().contains("4711"), "{hidden:#}");
    for part in ["statements", "clients", "lanes", "databases"] {
        assert!(!shown[part].as_array().unwrap().is_empty(), "{part}");
    }
    let of_verdict =
        |verdict| shown["statements"].as_array().unwrap().iter().find(|one| one["verdict"] == verdict);
    let passed = of_verdict("passed").unwrap_or_else(|| panic!("{shown:#}"));
    assert!(passed["remedy"].is_string() && passed["passed_not_packable"] == 1, "{passed:#}");
    assert_eq!(
        (&shown["statement_totals"]["packed"], &shown["statement_totals"]["passed"]),
        (&3.into(), &1.into())
    );
    assert_eq!(shown["totals"]["units_packed"], 3);
    drop(client);
    gateway.stop().await;
}
