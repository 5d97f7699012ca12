//! A server that has no free connection: sessions wait for the gateway's own connections, also with statements for lanes, and the
//! log and the metrics say that the server is full.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, config, connect, describe, sqlstate, try_connect, until, value};
use tokio_postgres::Client;

const FULL: &str = "sorry, too many clients already";

fn small(label: &str) -> PrivateServer {
    let server = PrivateServer::builder().label(label).setting("max_connections", "10").start().unwrap();
    server.query("create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)").unwrap();
    server
}

/// Takes all connections that the server has left.
async fn fill(server: &PrivateServer) -> Vec<Client> {
    let mut others = Vec::new();
    loop {
        match try_connect(&config(server.port())).await {
            Ok(other) => others.push(other),
            Err(refused) => {
                assert_eq!(sqlstate(&refused), "53300", "{}", describe(&refused));
                return others;
            }
        }
    }
}

/// Waits for the line about refusals with this reason and this cause.
async fn logged(gateway: &Gateway, reason: &str, cause: &str) {
    let is_it = |line: &str| {
        line.contains("clients or statements were refused") && line.contains(reason) && line.contains(cause)
    };
    until("the log has the cause", async || gateway.log().lines().any(is_it)).await;
}

#[tokio::test]
async fn sessions_wait_for_the_connections_that_the_gateway_has() {
    let server = small("full");
    let gateway =
        Gateway::in_front_of(&server.url(), &["--server-wait-ms", "500", "--held-wait-ms", "60000"]);
    let (holder, waiter) = (connect(&gateway.config()).await, connect(&gateway.config()).await);
    holder.batch_execute("begin; select 1").await.unwrap();
    let _others = fill(&server).await;
    let refused = || server.log().matches(FULL).count();
    let before = refused();
    let waits = tokio::spawn(async move {
        let count = value(&waiter, "select count(*) from t").await;
        // No lane has a connection, and none gets one.
        (count, value(&waiter, "update t set n = n + 1 where id = 1 returning n").await)
    });
    until("the gateway has asked for one more connection", async || refused() > before).await;
    holder.batch_execute("commit").await.unwrap();
    assert_eq!(waits.await.unwrap(), ("2".to_owned(), "1".to_owned()));
    assert_eq!(value(&holder, "select n from t where id = 1").await, "1");
}

#[tokio::test]
async fn a_full_server_is_not_an_unreachable_one() {
    let server = small("full-log");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let _others = fill(&server).await;
    // No connection of the gateway can become free.
    let refused = try_connect(&gateway.config()).await.err().unwrap();
    assert!(describe(&refused).contains(FULL), "{}", describe(&refused));
    let counted = "hotrow_refused_by_reason_total{reason=\"server_full\"} 1";
    assert!(gateway.metrics().contains(counted), "{}", gateway.metrics());
    logged(&gateway, "reason=\"server_full\"", FULL).await;
}

#[tokio::test]
async fn the_log_names_the_user_whose_password_the_gateway_lacks() {
    let server = PrivateServer::builder().label("no-password").start().unwrap();
    server.query("create role ann login password 'secret'").unwrap();
    let access = server.data_dir().join("pg_hba.conf");
    let rules = std::fs::read_to_string(&access).unwrap();
    std::fs::write(&access, format!("host all ann all scram-sha-256\n{rules}")).unwrap();
    server.query("select pg_reload_conf()").unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let ann = gateway.config().user("ann").clone();
    until("the server wants ann's password", async || try_connect(&ann).await.is_err()).await;
    logged(&gateway, "reason=\"no_credentials\"", r#"the password of user \"ann\""#).await;
    assert!(gateway.metrics().contains("hotrow_refused_by_reason_total{reason=\"no_credentials\"} "));
}
