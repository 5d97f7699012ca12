//! Exhausted or missing resources: clients, held connections, the server. The client gets an error at once that says
//! what to do, and everything works again when the resource is available.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::raw::{Raw, bind, execute, flush, frame, parse, query, sync, tags};
use hotrow_testkit::{Gateway, PATIENCE, connect, describe, patient, sqlstate, try_connect, until, value};

use crate::bad_input::Stage;

fn hint(error: &tokio_postgres::Error) -> String {
    let report = error.as_db_error().unwrap_or_else(|| panic!("{}", describe(error)));
    report.hint().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_client_over_the_limit_is_rejected() {
    let stage = Stage::new(&["--clients-max", "3"]).await;
    let config = stage.gateway.config_in(&stage.schema);
    let (second, third) = (connect(&config).await, connect(&config).await);
    let refused = try_connect(&config).await.err().unwrap();
    assert_eq!(sqlstate(&refused), "53300", "{}", describe(&refused));
    assert!(hint(&refused).contains("clients_max"), "{}", describe(&refused));
    assert_eq!(value(&third, "update t set n = n + 1 where id = 1 returning n").await, "1");
    drop(second);
    until("there is room again", async || try_connect(&config).await.is_ok()).await;
    assert!(stage.gateway.metric("refused_total") >= 1);
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_session_without_a_free_connection_gets_an_error() {
    let stage = Stage::new(&["--held-connections-max", "2", "--held-wait-ms", "2000"]).await;
    let config = stage.gateway.config_in(&stage.schema);
    let (one, other, third) = (connect(&config).await, connect(&config).await, connect(&config).await);
    for client in [&one, &other] {
        client.batch_execute("begin; select 1").await.unwrap();
    }
    for attempt in 0..2 {
        let refused = third.simple_query("select count(*) from t").await.unwrap_err();
        assert_eq!(sqlstate(&refused), "53300", "{attempt}: {}", describe(&refused));
        assert!(hint(&refused).contains("held_connections_max"), "{}", describe(&refused));
        let refused = third.query_typed("select count(*) from t", &[]).await.unwrap_err();
        assert_eq!(sqlstate(&refused), "53300", "{attempt}: {}", describe(&refused));
    }
    one.batch_execute("commit").await.unwrap();
    assert_eq!(value(&third, "select count(*) from t").await, "2");
    other.batch_execute("rollback").await.unwrap();
    stage.others_are_unaffected("connections were used up").await;
}

#[tokio::test]
async fn one_connection_serves_clients_in_turn_and_no_client_waits_in_vain() {
    let options = ["--held-connections-max", "2", "--held-wait-ms", "30000"];
    let stage = Stage::new(&options).await;
    let config = &stage.gateway.config_in(&stage.schema);
    let other = connect(config).await;
    other.batch_execute("begin; select 1").await.unwrap();
    let counted = futures_util::future::join_all(
        (0..10).map(|_| async move { value(&connect(config).await, "select count(*) from t").await }),
    );
    assert_eq!(counted.await, ["2"; 10]);
    other.batch_execute("rollback").await.unwrap();
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_unit_in_pieces_that_gets_no_connection_is_rejected_completely() {
    let stage = Stage::new(&["--held-connections-max", "1", "--held-wait-ms", "2000"]).await;
    let holder = connect(&stage.gateway.config_in(&stage.schema)).await;
    let mut raw = Raw::login(stage.gateway.port(), &[]).await;
    let passed = [parse("", "select pg_backend_pid()"), bind("", "", &[]), execute("", 0), sync()].concat();
    raw.send(&passed).await;
    assert_eq!(tags(&raw.until_ready(1).await), "12DCZ");
    until("the holder has the connection", async || holder.batch_execute("begin; select 1").await.is_ok())
        .await;
    let pieces = [parse("", "select 1"), flush(), bind("", "", &[]), execute("", 0), sync()].concat();
    let with_query = [parse("", "select 1"), query("select 2"), sync()].concat();
    for units in [pieces.clone(), with_query, passed] {
        raw.send(&units).await;
        let replies = raw.until_ready(1).await;
        assert_eq!(tags(&replies), "EZ");
        assert_eq!(replies[0].field(b'C').as_deref(), Some("53300"));
    }
    // int4pl(1, 2): an error, and the session continues.
    raw.send(&frame(b'F', &[0, 0, 0, 177, 0, 0, 0, 0, 0, 0])).await;
    assert_eq!(tags(&raw.until_ready(1).await), "EZ");
    holder.batch_execute("commit").await.unwrap();
    raw.send(&pieces).await;
    assert_eq!(tags(&raw.until_ready(1).await), "12DCZ");
}

#[tokio::test]
async fn packed_statements_need_no_held_connection() {
    let options = patient(&["--held-connections-max", "1", "--held-wait-ms", "200"]);
    let stage = Stage::new(&options).await;
    let update = "update t set n = n + 1 where id = 1 returning n";
    assert_eq!(value(&stage.bystander, update).await, "1", "now the gateway has read the catalog");
    let other = connect(&stage.gateway.config_in(&stage.schema)).await;
    other.batch_execute("begin; select 1").await.unwrap();
    for round in 2..5 {
        assert_eq!(value(&stage.bystander, update).await, round.to_string());
    }
}

#[tokio::test]
async fn a_server_that_was_stopped_is_used_when_it_starts() {
    let server = tokio::task::spawn_blocking(|| PrivateServer::builder().label("away").start().unwrap())
        .await
        .unwrap();
    server.query("create table t (id int primary key, n int); insert into t values (1, 0)").unwrap();
    server.stop().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &["--server-wait-ms", "300", "--held-wait-ms", "300"]);
    let refused = try_connect(&gateway.config()).await.err().unwrap();
    assert!(["57P03", "08006"].contains(&sqlstate(&refused)), "{}", describe(&refused));
    assert!(!hint(&refused).is_empty(), "{}", describe(&refused));
    let log = gateway.log();
    assert!(!log.contains("panicked"), "{log}");

    server.restart().unwrap();
    let update = "update t set n = n + 1 where id = 1 returning n";
    let client = connect(&gateway.config()).await;
    assert_eq!(value(&client, "select count(*) from t").await, "1");
    assert_eq!(value(&client, update).await, "1", "now no query about the session's state is under way");

    server.stop().unwrap();
    for sql in [update, "select count(*) from t", "select n from t where id = 1"] {
        let refused = client.simple_query(sql).await.expect_err("the server is stopped");
        assert!(["57P03", "08006"].contains(&sqlstate(&refused)), "{sql}: {}", describe(&refused));
        assert!(!hint(&refused).is_empty(), "{sql}: {}", describe(&refused));
    }
    let refused = try_connect(&gateway.config()).await;
    if let Err(refused) = refused {
        assert!(["57P03", "08006"].contains(&sqlstate(&refused)), "{}", describe(&refused));
    }

    server.restart().unwrap();
    // The same session continues. A lane may take a moment to notice that the server is back.
    until("the lane is back", async || client.simple_query(update).await.is_ok()).await;
    let answered: i32 = value(&client, update).await.parse().unwrap();
    assert_eq!(answered, 3, "rejected statements have no effect");
    tokio::time::timeout(PATIENCE, value(&client, "select count(*) from t")).await.unwrap();
}
