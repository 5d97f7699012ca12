//! currval and lastval: the session's own values, or an error that gives the reason; never another session's values.

use hotrow_testkit::{rows, value};
use tokio_postgres::Client;

use crate::Stage;

async fn stage() -> Stage {
    let stage = Stage::alone(&[]).await;
    stage.direct.batch_execute("create table s (id bigserial primary key, n int)").await.unwrap();
    stage
}

/// A client that gets the connection with this backend, which may be on its way back to the pool. The other clients
/// occupy the other connections.
async fn client_on(stage: &Stage, backend: &str) -> (Client, Vec<Client>) {
    let mut others = Vec::new();
    while others.len() < 20 {
        let client = stage.client().await;
        client.batch_execute("begin").await.unwrap();
        if value(&client, "select pg_backend_pid()").await == backend {
            client.batch_execute("commit").await.unwrap();
            return (client, others);
        }
        others.push(client);
    }
    panic!("no client gets the connection of backend {backend}");
}

/// SQLSTATE and hint of the error.
async fn rejected(client: &Client, sql: &str) -> (String, String) {
    let error = rows(client, sql).await.expect_err("no correct answer exists");
    let report = error.as_db_error().unwrap();
    (report.code().code().to_owned(), report.hint().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn lastval_is_rejected_with_a_hint_after_a_packed_insert() {
    let stage = stage().await;
    let client = stage.client().await;
    assert_eq!(value(&client, "insert into s (n) values (5) returning id").await, "1");
    assert_eq!(stage.gateway.metric("packed_units_total"), 1);
    for sql in [
        "select lastval()",
        "select currval('s_id_seq')",
        "select currval(pg_get_serial_sequence('s', 'id'))",
    ] {
        let (code, hint) = rejected(&client, sql).await;
        assert!(code == "55000" && hint.contains("RETURNING"), "{sql}: {code} {hint}");
    }
    let extended = client.query_typed("select lastval()", &[]).await.unwrap_err();
    assert!(extended.as_db_error().unwrap().hint().unwrap().contains("RETURNING"));
    assert_eq!(value(&client, "insert into s (n) values (6) returning id").await, "2");
    client.batch_execute("begin").await.unwrap();
    assert_eq!(rejected(&client, "select lastval()").await.0, "55000");
    assert_eq!(
        rejected(&client, "select 1").await.0,
        "25P02",
        "the error failed the transaction, as any error does"
    );
    client.batch_execute("rollback").await.unwrap();
}

#[tokio::test]
async fn a_sequence_of_a_table_created_through_the_gateway_begins_at_one() {
    let stage = stage().await;
    let client = stage.client().await;
    for round in 0..3 {
        let table = "drop table if exists s; create table s (id bigserial primary key, n int)";
        client.batch_execute(table).await.unwrap();
        for id in 1..=2 {
            let inserted = value(&client, "insert into s (n) values (1) returning id").await;
            assert_eq!(inserted, id.to_string(), "round {round}: no batch was rolled back");
            assert_eq!(value(&client, super::UPDATE).await, (2 * round + id).to_string());
        }
    }
    assert!(
        stage.gateway.metric("packed_units_total") >= 9,
        "at most one statement of a round is passed through"
    );
}

#[tokio::test]
async fn lastval_is_correct_in_a_transaction() {
    let stage = stage().await;
    let (client, other) = (stage.client().await, stage.client().await);
    client.batch_execute("begin; insert into s (n) values (1)").await.unwrap();
    other.batch_execute("insert into s (n) values (2)").await.unwrap();
    assert_eq!(value(&client, "select lastval()").await, "1");
    assert_eq!(value(&client, "select currval('s_id_seq')").await, "1");
    client.batch_execute("commit").await.unwrap();
}

#[tokio::test]
async fn a_session_that_does_not_pack_has_its_own_lastval() {
    let stage = stage().await;
    let (client, other) = (stage.client().await, stage.client().await);
    client.batch_execute("set hotrow.pack = off").await.unwrap();
    client.batch_execute("insert into s (n) values (1)").await.unwrap();
    other.batch_execute("insert into s (n) values (2)").await.unwrap();
    assert_eq!(value(&client, "select lastval()").await, "1");
}

#[tokio::test]
async fn no_session_sees_the_values_of_another() {
    let stage = stage().await;
    // Leaves a connection whose backend has a current value of the sequence.
    let first = stage.client().await;
    assert_eq!(value(&first, "select nextval('s_id_seq')").await, "1");
    let backend = value(&first, "select pg_backend_pid()").await;
    let (fresh, _others) = client_on(&stage, &backend).await;
    for sql in ["select lastval()", "select currval('s_id_seq')", "select lastval() + 0"] {
        let error = rows(&fresh, sql).await.expect_err("the session has advanced no sequence");
        let report = error.as_db_error().unwrap();
        assert_eq!(report.code().code(), "55000");
        assert!(report.message().ends_with("is not yet defined in this session"), "{sql}: {report:?}");
    }
    let mine = value(&fresh, "select nextval('s_id_seq')").await;
    assert_eq!(mine, "2");
    // The first session does not get the second session's value.
    match rows(&first, "select lastval()").await {
        Ok(rows) => assert_eq!(rows[0][0].as_deref(), Some("1")),
        Err(error) => assert_eq!(error.code().unwrap().code(), "55000"),
    }
}

#[tokio::test]
async fn a_default_reads_the_values_of_its_own_session_or_none() {
    let stage = Stage::new(&[]).await;
    let tables = "create table parent (id serial primary key, who text);
        create table child (id serial primary key, parent_id int default currval('parent_id_seq'), who text)";
    stage.direct.batch_execute(tables).await.unwrap();
    let (ann, bob, carl) = (stage.client().await, stage.client().await, stage.client().await);
    for (client, who) in [(&ann, "ann"), (&bob, "bob")] {
        for sql in ["begin", &format!("insert into parent (who) values ('{who}')"), "commit"] {
            rows(client, sql).await.unwrap();
        }
    }
    for (client, who) in [(&ann, "ann"), (&carl, "carl")] {
        let insert = format!("insert into child (who) values ('{who}')");
        let error = rows(client, &insert)
            .await
            .expect_err("the session's value is on another connection, or does not exist");
        assert_eq!(error.code().unwrap().code(), "55000");
    }
    bob.batch_execute(
        "begin; insert into parent (who) values ('bob'); insert into child (who) values ('bob'); commit",
    )
    .await
    .unwrap();
    let parents = "select string_agg(p.who || c.who, ',') from child c join parent p on p.id = c.parent_id";
    assert_eq!(value(&stage.direct, parents).await, "bobbob");
}

#[tokio::test]
async fn values_from_the_statement_or_its_trigger_can_be_read() {
    let stage = stage().await;
    let hidden = "create function moves() returns trigger language plpgsql as $$
            begin insert into s (n) values (new.n); return new; end $$;
        create trigger moves after update on t for each row execute function moves()";
    stage.direct.batch_execute(hidden).await.unwrap();
    // Leaves a connection on which another session has advanced the sequence.
    let other = stage.client().await;
    other.batch_execute("begin; insert into s (n) values (0); commit").await.unwrap();
    let client = stage.client().await;
    for sql in ["begin", "update t set n = n + 1 where id = 1"] {
        rows(&client, sql).await.unwrap();
    }
    let last = value(&client, "select lastval()").await;
    assert_eq!(last, value(&client, "select max(id) from s").await, "its own trigger advanced the sequence");
    rows(&client, "rollback").await.unwrap();
    for _ in 0..2 {
        let insert = "insert into s (n) values (2) returning currval('s_id_seq') = id";
        assert_eq!(value(&client, insert).await, "t");
        assert_eq!(value(&client, "select nextval('s_id_seq') = currval('s_id_seq')").await, "t");
    }
}

#[tokio::test]
async fn a_sequence_with_a_cache_ascends_in_a_session() {
    let stage = Stage::new(&[]).await;
    let cached = "create sequence c cache 20;
        create table by_default (id bigint primary key default nextval('c'));
        create table by_identity (id bigint generated always as identity (cache 20) primary key)";
    stage.direct.batch_execute(cached).await.unwrap();
    for next in [
        "select nextval('c')",
        "insert into by_default default values returning id",
        "insert into by_identity default values returning id",
    ] {
        let client = stage.client().await;
        let mut last = 0;
        for _ in 0..3 {
            for (before, after) in [("select 1", "select 1"), ("begin", "commit")] {
                rows(&client, before).await.unwrap();
                let value: i64 = value(&client, next).await.parse().unwrap();
                rows(&client, after).await.unwrap();
                assert!(value > last, "{next}: {value} after {last}");
                last = value;
            }
        }
    }
}

/// Whether a session other than the one that runs this statement ever sees a value of the sequence. The statement runs
/// several times, alone and in transactions. In between the gateway finds out which state it leaves.
async fn is_seen_by_another(stage: &Stage, sql: &str, sequence: &str) -> bool {
    let (ann, bob) = (stage.client().await, stage.client().await);
    for round in 0..8 {
        let script = if round % 2 == 0 { vec![sql] } else { vec!["begin", sql, "commit"] };
        for sql in script {
            rows(&ann, sql).await.unwrap();
        }
        stage.all_is_given_back().await;
        for read in [format!("select currval('{sequence}')"), "select lastval()".to_owned()] {
            match rows(&bob, &read).await {
                Ok(_) => return true,
                Err(error) => assert_eq!(error.code().unwrap().code(), "55000", "{read}"),
            }
        }
    }
    false
}

#[tokio::test]
async fn a_value_that_a_trigger_takes_is_invisible_to_other_sessions() {
    let stage = Stage::alone(&[]).await;
    let tables = "create sequence numbers; create table numbered (id int primary key, n int);
        create function number() returns trigger language plpgsql as
            $$ begin new.id := nextval('numbers'); return new; end $$;
        create trigger number before insert on numbered for each row execute function number()";
    stage.direct.batch_execute(tables).await.unwrap();
    for sql in ["insert into numbered (n) values (1)", "insert into numbered (n) select n from t"] {
        assert!(!is_seen_by_another(&stage, sql, "numbers").await, "{sql}");
    }
}

#[tokio::test]
async fn a_value_of_a_default_with_a_quoted_function_is_invisible_to_other_sessions() {
    let stage = stage().await;
    let setting = "do $$ begin execute format('alter database %I set quote_all_identifiers = on', current_database()); end $$";
    stage.direct.batch_execute(setting).await.unwrap();
    for sql in ["insert into s (n) values (1)", "insert into s (n) select n from t"] {
        assert!(!is_seen_by_another(&stage, sql, "s_id_seq").await, "{sql}");
    }
}
