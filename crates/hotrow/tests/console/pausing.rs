//! PAUSE, RESUME and RECONNECT, under load and before and after a real restart of the server.

use std::process::Stdio;

use hotrow_testkit::raw::{Raw, query, tags};
use hotrow_testkit::{PATIENCE, config, connect, needed_tool, sqlstate, until, value};
use tokio_postgres::{Client, NoTls};

use crate::Stage;

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

/// The number of server processes that work for this gateway's clients.
async fn backends(stage: &Stage) -> String {
    let sql = "select count(*) from pg_stat_activity where application_name like 'hotrow%' or application_name = 'mine'";
    value(&stage.direct, sql).await
}

/// What the clients do.
async fn states(console: &Client) -> Vec<String> {
    let clients = hotrow_testkit::rows(console, "show clients").await.unwrap();
    clients.into_iter().filter_map(|mut client| client[7].take()).collect()
}

async fn mine(stage: &Stage) -> Client {
    connect(stage.gateway.config().application_name("mine")).await
}

#[tokio::test]
async fn pause_waits_for_transactions_and_closes_every_connection() {
    let (stage, _server) = Stage::alone("").await;
    let (console, busy, client) = (stage.console().await, mine(&stage).await, mine(&stage).await);
    assert_eq!(value(&client, UPDATE).await, "1");
    assert_eq!(value(&client, "select n from t where id = 1").await, "1");
    busy.batch_execute("begin; update t set n = 10 where id = 2").await.unwrap();
    let pause = tokio::spawn(async move {
        console.simple_query("pause").await.unwrap();
        console
    });
    let observer = stage.console().await;
    until("the pool is paused", || async {
        value(&observer, "show pool_settings").await; // answered during the pause too
        hotrow_testkit::rows(&observer, "show pool_settings").await.unwrap()[0][6].as_deref() == Some("yes")
    })
    .await;
    let waits = tokio::spawn(async move { (value(&client, UPDATE).await, client) });
    let lanes = "select count(*) from pg_stat_activity where application_name like 'hotrow lane%'";
    until("the lanes are closed", async || value(&stage.direct, lanes).await == "0").await;
    until("the update waits", async || states(&observer).await.contains(&"in a lane".to_owned())).await;
    assert!(!pause.is_finished(), "a transaction is open");
    assert_eq!(value(&busy, "select n from t where id = 2").await, "10", "the transaction continues");
    busy.batch_execute("commit").await.unwrap();
    let console = pause.await.unwrap();
    until("no backend is left", || async { backends(&stage).await == "0" }).await;
    assert!(!waits.is_finished(), "new statements wait");
    console.simple_query("resume").await.unwrap();
    let (n, client) = waits.await.unwrap();
    assert_eq!(n, "2");
    assert_eq!(value(&client, "select n from t where id = 2").await, "10");
}

#[tokio::test]
async fn a_statement_that_waits_too_long_gets_an_error() {
    let (stage, _server) = Stage::alone("server_wait_ms = 300\n").await;
    let (console, client) = (stage.console().await, mine(&stage).await);
    assert_eq!(value(&client, UPDATE).await, "1");
    console.simple_query("pause postgres").await.unwrap();
    for sql in [UPDATE, "begin; select 1", "select count(*) from t"] {
        let answer = tokio::time::timeout(PATIENCE, client.simple_query(sql))
            .await
            .expect("the client gets an answer");
        let error = answer.unwrap_err();
        assert_eq!(sqlstate(&error), "57P03", "{sql}");
        assert!(error.as_db_error().unwrap().message().contains("paused by an operator"), "{error:?}");
        if sql.starts_with("begin") {
            client.simple_query("rollback").await.unwrap(); // of the failed transaction
        }
    }
    // The first statement of a transaction that was sent together has the error, and its COMMIT rolls back.
    let mut raw = Raw::login(stage.gateway.port(), &[]).await;
    raw.send(&[query("begin"), query(UPDATE), query("commit")].concat()).await;
    let replies = raw.until_ready(3).await;
    assert_eq!(tags(&replies), "CZEZCZ");
    assert!(replies[2].field(b'M').unwrap().contains("paused by an operator"), "{replies:?}");
    assert_eq!(backends(&stage).await, "0");
    console.simple_query("resume postgres").await.unwrap();
    assert_eq!(value(&client, UPDATE).await, "2");
}

#[tokio::test]
async fn a_pause_ends_when_it_is_cancelled_or_its_client_disconnects() {
    let (stage, _server) = Stage::alone("").await;
    let (busy, client) = (mine(&stage).await, mine(&stage).await);
    busy.batch_execute("begin; update t set n = 10 where id = 2").await.unwrap();
    for leaves in [false, true] {
        let console = stage.console().await;
        let cancel = console.cancel_token();
        let mut raw = Raw::login(stage.gateway.port(), &[("database", "hotrow")]).await;
        let pause =
            tokio::spawn(async move { console.simple_query(if leaves { "" } else { "pause" }).await });
        if leaves {
            raw.send(&query("pause")).await;
        }
        let observer = stage.console().await;
        let paused = || async {
            hotrow_testkit::rows(&observer, "show pool_settings").await.unwrap()[0][6].clone().unwrap()
        };
        until("the pool is paused", || async { paused().await == "yes" }).await;
        if leaves {
            drop(raw);
            pause.await.unwrap().unwrap();
        } else {
            cancel.cancel_query(NoTls).await.unwrap();
            assert_eq!(sqlstate(&pause.await.unwrap().unwrap_err()), "57014");
        }
        until("the pool continues", || async { paused().await == "no" }).await;
        assert!(value(&client, UPDATE).await.parse::<i32>().unwrap() > 0);
    }
    busy.batch_execute("rollback").await.unwrap();
}

#[tokio::test]
async fn reconnect_replaces_lanes_and_idle_connections() {
    let (stage, _server) = Stage::alone("").await;
    let (console, client) = (stage.console().await, mine(&stage).await);
    let lanes =
        "select string_agg(pid::text, ',') from pg_stat_activity where application_name like 'hotrow lane%'";
    assert_eq!(value(&client, UPDATE).await, "1");
    let kept = value(&client, "select pg_backend_pid()").await;
    assert_eq!(value(&client, "select pg_backend_pid()").await, kept);
    let lane = value(&stage.direct, lanes).await;
    let busy = mine(&stage).await;
    busy.batch_execute("begin; select 1").await.unwrap();
    let held = value(&busy, "select pg_backend_pid()").await;
    console.simple_query("reconnect postgres").await.unwrap();
    assert_eq!(value(&busy, "select pg_backend_pid()").await, held, "a transaction continues");
    busy.batch_execute("commit").await.unwrap();
    let still_open = format!("select count(*) from pg_stat_activity where pid = {held}");
    until("its connection is closed", async || value(&stage.direct, &still_open).await == "0").await;
    assert_ne!(value(&busy, "select pg_backend_pid()").await, held, "the connection was not kept");
    assert_ne!(value(&client, "select pg_backend_pid()").await, kept);
    assert_eq!(value(&client, UPDATE).await, "2");
    until("only the new lane exists", || async {
        let now = value(&stage.direct, lanes).await;
        !now.is_empty() && now != lane && !now.contains(',')
    })
    .await;
}

/// The steps of an operator before a restart of the server: clients only notice a delay.
#[tokio::test]
async fn a_restart_under_load_between_pause_and_resume_costs_no_client_an_error() {
    let (stage, server) = Stage::alone("server_wait_ms = 60000\nqueue_wait_ms = 60000\n").await;
    let console = stage.console().await;
    let script = stage.folder.path().join("update.pgbench");
    std::fs::write(&script, "\\set id random(1, 2)\nupdate t set n = n + 1 where id = :id;\n").unwrap();
    let load = tokio::process::Command::new(needed_tool("pgbench"))
        .args(["-h", "127.0.0.1", "-U", "postgres", "-n", "-M", "prepared", "-c", "16", "-T", "5", "-p"])
        .arg(stage.gateway.port().to_string())
        .arg("-f")
        .arg(&script)
        .arg("postgres")
        .env("LC_ALL", "C")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the load flows", || async { stage.gateway.metric("packed_units_total") > 50 }).await;
    console.simple_query("pause").await.unwrap();
    let before = stage.gateway.metric("packed_units_total");
    let server = tokio::task::spawn_blocking(move || {
        server.restart().unwrap();
        server
    });
    let server = server.await.unwrap();
    assert_eq!(stage.gateway.metric("packed_units_total"), before, "no unit ran during the pause");
    console.simple_query("resume").await.unwrap();
    let output = tokio::time::timeout(PATIENCE, load.wait_with_output()).await.unwrap().unwrap();
    let report =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !report.contains("ERROR") && !report.contains("aborted"), "{report}");
    let done = report
        .lines()
        .find_map(|line| line.strip_prefix("number of transactions actually processed: "))
        .unwrap();
    let direct = connect(&config(server.port())).await;
    assert_eq!(value(&direct, "select sum(n) from t").await, done, "{report}");
    assert!(stage.gateway.metric("packed_units_total") > before, "units run again");
    assert_eq!(stage.gateway.metric("unknown_units_total"), 0);
}

#[tokio::test]
async fn a_client_that_connects_during_a_pause_waits_for_its_end() {
    let (stage, _server) = Stage::alone("server_wait_ms = 60000").await; // the other clients can be slow
    let console = stage.console().await;
    let config = stage.gateway.config();
    // The database has to be in use. The client that comes shares no pool with this one.
    let _in_use = connect(config.clone().options("-c work_mem=5MB")).await;
    console.simple_query("pause postgres").await.unwrap();
    let comes = tokio::spawn(async move { value(&connect(&config).await, UPDATE).await });
    // Clients that come later, to a database that is not paused, are answered.
    let mut other = stage.gateway.config();
    let table = "create table t (id int primary key, n int); insert into t values (1, 0)";
    connect(other.dbname("template1")).await.batch_execute(table).await.unwrap();
    for n in 1..=3 {
        let client = connect(other.options(format!("-c work_mem={n}MB"))).await;
        assert_eq!(value(&client, UPDATE).await, n.to_string());
    }
    assert!(!comes.is_finished());
    console.simple_query("resume").await.unwrap();
    assert_eq!(comes.await.unwrap(), "1");
}

/// A client that has used lanes and a connection of its own in a new database with this name.
async fn client_of_a_new_database(stage: &Stage, name: &str) -> Client {
    stage.direct.simple_query(&format!("create database {name}")).await.unwrap();
    let mut config = stage.gateway.config();
    config.dbname(name);
    let client = connect(&config).await;
    client
        .batch_execute("create table t (id int primary key, n int); insert into t values (1, 1)")
        .await
        .unwrap();
    for _ in 0..3 {
        client.simple_query("update t set n = n + 1 where id = 1").await.unwrap();
    }
    client
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_database_without_clients_can_be_dropped_through_the_gateway() {
    let stage = Stage::new("", &[]).await;
    let (first, second) = (format!("{}_first", stage.schema), format!("{}_second", stage.schema));
    let client = client_of_a_new_database(&stage, &first).await;
    let other = connect(&stage.gateway.config()).await;
    let drop_it = format!("drop database {second}");
    let error = other.simple_query(&format!("alter database {first} rename to {second}")).await.unwrap_err();
    assert_eq!(sqlstate(&error), "55006", "it has a client");
    client.batch_execute("listen news").await.unwrap();
    drop(client);
    other.simple_query(&format!("alter database {first} rename to {second}")).await.unwrap();
    other.execute(&drop_it, &[]).await.unwrap();
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_database_without_clients_can_be_dropped_after_pause() {
    let stage = Stage::new("", &[]).await;
    let name = format!("{}_gone", stage.schema);
    drop(client_of_a_new_database(&stage, &name).await);
    let drop_it = format!("drop database {name}");
    let error = stage.direct.simple_query(&drop_it).await.unwrap_err();
    assert_eq!(sqlstate(&error), "55006");
    let console = stage.console().await;
    console.simple_query(&format!("pause {name}")).await.unwrap();
    stage.direct.simple_query(&drop_it).await.unwrap();
    console.simple_query(&format!("resume {name}")).await.unwrap();
}
