//! Clients that go away while a statement runs or waits. With `client_connection_check_interval` at the server the statement is
//! ended, and without it the statement is run to its end, both as without the gateway.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::raw::{Raw, query};
use hotrow_testkit::{Gateway, config, connect, until, value};

fn server(label: &str, interval: &str) -> PrivateServer {
    let server = PrivateServer::builder()
        .label(label)
        .setting("client_connection_check_interval", interval)
        .start()
        .unwrap();
    server.query("create table t (id int primary key, n int); insert into t values (1, 0)").unwrap();
    server
}

/// Sends a statement and goes away as soon as the condition holds at the server.
async fn goes_away_when(gateway: &Gateway, statement: &str, server: &PrivateServer, condition: &str) {
    let direct = connect(&config(server.port())).await;
    let mut raw = Raw::login(gateway.port(), &[]).await;
    raw.send(&query(statement)).await;
    until(condition, async || value(&direct, &format!("select exists ({condition})")).await == "t").await;
}

#[tokio::test]
async fn a_statement_that_runs_is_ended() {
    let server = server("gone", "100ms");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let runs = "select from pg_stat_activity where state = 'active' and query = 'select pg_sleep(3600)'";
    goes_away_when(&gateway, "select pg_sleep(3600)", &server, runs).await;
    let direct = connect(&config(server.port())).await;
    until("it has ended", async || value(&direct, &format!("select exists ({runs})")).await == "f").await;
}

#[tokio::test]
async fn a_statement_that_waits_for_a_lock_is_ended() {
    let server = server("gone-locked", "100ms");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let holder = connect(&config(server.port())).await;
    holder.batch_execute("begin; update t set n = n + 1 where id = 1").await.unwrap();
    let direct = connect(&config(server.port())).await;
    let waits = "select from pg_locks where not granted";
    // The first one begins in a lane, where it gives way after a while, and the second one has a connection of its session.
    for statement in ["update t set n = n + 10 where id = 1", "update t set n = n + 10"] {
        goes_away_when(&gateway, statement, &server, waits).await;
        until("the client has left", async || gateway.metric("clients") == 0).await;
        until("it has ended", async || value(&direct, &format!("select exists ({waits})")).await == "f")
            .await;
    }
    holder.batch_execute("commit").await.unwrap();
    assert_eq!(value(&direct, "select n from t").await, "1");
}

#[tokio::test]
async fn a_statement_that_waits_for_a_connection_leaves() {
    let server = server("gone-waits", "100ms");
    let options = ["--held-connections-max", "1", "--held-wait-ms", "3600000"];
    let gateway = Gateway::in_front_of(&server.url(), &options);
    let mut waiter = Raw::login(gateway.port(), &[]).await;
    let holder = connect(&gateway.config()).await;
    holder.batch_execute("begin; select 1").await.unwrap();
    waiter.send(&query("select count(*) from t")).await;
    let mut console = gateway.config();
    console.dbname("hotrow");
    let console = connect(&console).await;
    let states = async || format!("{:?}", console.simple_query("show clients").await.unwrap());
    until("it waits", async || states().await.contains("waits for a connection")).await;
    drop(waiter);
    until("it has left", async || !states().await.contains("waits for a connection")).await;
    until("only the holder is there", async || gateway.metric("clients") == 1).await;
    holder.batch_execute("commit").await.unwrap();
}

#[tokio::test]
async fn without_the_setting_a_statement_runs_to_its_end() {
    let server = server("gone-runs-on", "0");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let insert = "insert into t select 2, 2 from pg_sleep(1)";
    let runs = format!("select from pg_stat_activity where state = 'active' and query = '{insert}'");
    let runs = format!("{runs} union all select from t where id = 2"); // it may be over already
    goes_away_when(&gateway, insert, &server, &runs).await;
    let direct = connect(&config(server.port())).await;
    until("it is committed", async || value(&direct, "select count(*) from t").await == "2").await;
}
