//! currval and lastval: the session's own values, or an error that says why not; never another session's.

use tokio_postgres::Client;

use crate::Stage;
use crate::support::{rows, value};

async fn stage() -> Stage {
    let stage = Stage::new(&[]).await;
    stage.direct.batch_execute("create table s (id bigserial primary key, n int)").await.unwrap();
    stage
}

/// SQLSTATE and hint of the refusal.
async fn refused(client: &Client, sql: &str) -> (String, String) {
    let error = rows(client, sql).await.expect_err("there is no right answer");
    let report = error.as_db_error().unwrap();
    (report.code().code().to_owned(), report.hint().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn after_a_packed_insert_it_is_refused_with_a_hint() {
    let stage = stage().await;
    let client = stage.client().await;
    assert_eq!(value(&client, "insert into s (n) values (5) returning id").await, "1");
    assert_eq!(stage.gateway.metric("packed_units_total"), 1);
    for sql in [
        "select lastval()",
        "select currval('s_id_seq')",
        "select currval(pg_get_serial_sequence('s', 'id'))",
    ] {
        let (code, hint) = refused(&client, sql).await;
        assert!(code == "55000" && hint.contains("RETURNING"), "{sql}: {code} {hint}");
    }
    let extended = client.query_typed("select lastval()", &[]).await.unwrap_err();
    assert!(extended.as_db_error().unwrap().hint().unwrap().contains("RETURNING"));
    assert_eq!(value(&client, "insert into s (n) values (6) returning id").await, "2");
    client.batch_execute("begin").await.unwrap();
    assert_eq!(refused(&client, "select lastval()").await.0, "55000");
    assert_eq!(refused(&client, "select 1").await.0, "25P02", "it has failed the transaction, as any error");
    client.batch_execute("rollback").await.unwrap();
}

#[tokio::test]
async fn in_a_transaction_it_is_right() {
    let stage = stage().await;
    let (client, other) = (stage.client().await, stage.client().await);
    client.batch_execute("begin; insert into s (n) values (1)").await.unwrap();
    other.batch_execute("insert into s (n) values (2)").await.unwrap();
    assert_eq!(value(&client, "select lastval()").await, "1");
    assert_eq!(value(&client, "select currval('s_id_seq')").await, "1");
    client.batch_execute("commit").await.unwrap();
}

#[tokio::test]
async fn a_session_that_does_not_pack_has_its_own() {
    let stage = stage().await;
    let (client, other) = (stage.client().await, stage.client().await);
    client.batch_execute("set hotrow.pack = off").await.unwrap();
    client.batch_execute("insert into s (n) values (1)").await.unwrap();
    other.batch_execute("insert into s (n) values (2)").await.unwrap();
    assert_eq!(value(&client, "select lastval()").await, "1");
}

#[tokio::test]
async fn nobody_sees_the_values_of_another() {
    let stage = stage().await;
    // Leaves a connection whose backend remembers a value.
    let first = stage.client().await;
    assert_eq!(value(&first, "select nextval('s_id_seq')").await, "1");
    let backend = value(&first, "select pg_backend_pid()").await;
    let fresh = stage.client().await;
    assert_eq!(value(&fresh, "select pg_backend_pid()").await, backend, "it gets the same connection");
    for sql in ["select lastval()", "select currval('s_id_seq')", "select lastval() + 0"] {
        let error = rows(&fresh, sql).await.expect_err("it has moved no sequence");
        let report = error.as_db_error().unwrap();
        assert_eq!(report.code().code(), "55000");
        assert!(report.message().ends_with("is not yet defined in this session"), "{sql}: {report:?}");
    }
    let mine = value(&fresh, "select nextval('s_id_seq')").await;
    assert_eq!(mine, "2");
    // And the first does not get the second's.
    match rows(&first, "select lastval()").await {
        Ok(rows) => assert_eq!(rows[0][0].as_deref(), Some("1")),
        Err(error) => assert_eq!(error.code().unwrap().code(), "55000"),
    }
}
