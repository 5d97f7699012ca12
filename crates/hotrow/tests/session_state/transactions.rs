//! Transactions of a client, of every kind, and the session's state while they last.

use crate::{Stage, UPDATE};
use hotrow_testkit::raw::{Raw, bind, describe, execute, parse, sync, tags};
use hotrow_testkit::{connect, rows, sqlstate, value};

#[tokio::test]
async fn a_local_setting_ends_with_its_transaction() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let by_default = value(&client, "show work_mem").await;
    for end in ["commit", "rollback"] {
        client.batch_execute("begin; set local work_mem = '5MB'").await.unwrap();
        assert_eq!(value(&client, "show work_mem").await, "5MB");
        assert!(!stage.packs_in_transaction(&client).await);
        client.batch_execute(end).await.unwrap();
        assert_eq!(value(&client, "show work_mem").await, by_default);
        assert!(stage.packs(&client).await);
    }
}

#[tokio::test]
async fn a_setting_in_a_transaction_that_is_rolled_back_has_no_effect() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let by_default = value(&client, "show work_mem").await;
    client.batch_execute("begin; set work_mem = '5MB'; rollback").await.unwrap();
    assert_eq!(value(&client, "show work_mem").await, by_default);
    client.batch_execute("begin; create temp table mine (n int) on commit drop; commit").await.unwrap();
    assert!(rows(&client, "select * from mine").await.is_err());
    client.batch_execute("discard all").await.unwrap();
    assert!(stage.packs(&client).await);
}

#[tokio::test]
async fn every_isolation_level_behaves_as_on_the_server() {
    let stage = Stage::new(&[]).await;
    for level in ["read committed", "repeatable read", "serializable"] {
        let (client, other) = (stage.client().await, stage.client().await);
        client.batch_execute(&format!("begin isolation level {level}")).await.unwrap();
        assert_eq!(value(&client, "show transaction_isolation").await, level);
        let seen = value(&client, "select n from t where id = 1").await;
        assert!(stage.packs(&other).await);
        let again = value(&client, "select n from t where id = 1").await;
        assert_eq!(again == seen, level != "read committed", "{level}");
        let update = client.simple_query(UPDATE).await;
        match level {
            "read committed" => assert!(update.is_ok()),
            _ => assert_eq!(sqlstate(&update.unwrap_err()), "40001", "{level}"),
        }
        client.batch_execute("rollback").await.unwrap();
        assert!(stage.packs(&client).await, "after {level}");
    }
}

#[tokio::test]
async fn read_only_transactions_are_read_only() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    client.batch_execute("begin read only").await.unwrap();
    assert_eq!(value(&client, "select n from t where id = 1").await, "0");
    assert_eq!(sqlstate(&client.simple_query(UPDATE).await.unwrap_err()), "25006");
    client.batch_execute("rollback; begin; set transaction read only").await.unwrap();
    assert_eq!(sqlstate(&client.simple_query(UPDATE).await.unwrap_err()), "25006");
    client.batch_execute("rollback; set default_transaction_read_only = on").await.unwrap();
    assert_eq!(sqlstate(&client.simple_query(UPDATE).await.unwrap_err()), "25006");
    client.batch_execute("reset all").await.unwrap();
    assert!(stage.packs(&client).await);
}

#[tokio::test]
async fn the_server_shows_the_clients_name_while_it_runs_its_statements() {
    let stage = Stage::new(&[]).await;
    let names = "select string_agg(application_name, ' ' order by application_name) from pg_stat_activity
        where application_name in ('ann', 'bob') and state = 'idle in transaction'";
    let (ann, bob) = (stage.named("ann").await, stage.named("bob").await);
    for round in 0..3 {
        // The connection changes hands between the clients, and its name changes with them.
        for (name, client) in [("ann", &ann), ("bob", &bob)] {
            assert_eq!(value(client, "show application_name").await, name, "{round}");
            let own = "select application_name from pg_stat_activity where pid = pg_backend_pid()";
            assert_eq!(value(client, own).await, name, "{round}");
        }
    }
    ann.batch_execute("begin; select 1").await.unwrap();
    assert_eq!(value(&stage.direct, names).await, "ann");
    bob.batch_execute("begin; select 1").await.unwrap();
    assert_eq!(value(&stage.direct, names).await, "ann bob");
    for client in [&ann, &bob] {
        client.batch_execute("rollback").await.unwrap();
    }
    let nameless = connect(&stage.gateway.config_in(&stage.schema)).await;
    assert_eq!(value(&nameless, "show application_name").await, "");
}

#[tokio::test]
async fn a_client_that_sets_its_name_later_keeps_it_and_is_packed() {
    let stage = Stage::new(&[]).await;
    let (client, other) = (stage.named("first").await, stage.named("other").await);
    for naming in ["set application_name = 'it''s me'", "set session application_name to \"it's me\""] {
        client.batch_execute(naming).await.unwrap();
        assert!(stage.packs(&client).await, "{naming}: drivers do this after every login");
        for _ in 0..3 {
            assert_eq!(value(&other, "show application_name").await, "other");
            assert_eq!(value(&client, "show application_name").await, "it's me");
        }
        client.batch_execute("discard all").await.unwrap();
        assert_eq!(value(&other, "show application_name").await, "other");
        assert_eq!(value(&client, "show application_name").await, "first");
    }
    client.batch_execute("begin; set application_name = 'undone'; rollback").await.unwrap();
    assert_eq!(value(&client, "show application_name").await, "first");
    client.batch_execute("begin; set application_name = 'kept'; commit").await.unwrap();
    assert_eq!(value(&other, "show application_name").await, "other");
    assert_eq!(value(&client, "show application_name").await, "kept");
    assert!(stage.packs(&client).await);
}

impl Stage {
    /// The same as [`Stage::packs`], for results that no other client sees yet.
    async fn packs_in_transaction(&self, client: &tokio_postgres::Client) -> bool {
        let before = self.gateway.metric("packed_units_total");
        client.simple_query("update t set n = n where id = 2").await.unwrap();
        self.gateway.metric("packed_units_total") > before
    }
}

/// The gateway prepares the statement on the transaction's connection. In a failed transaction the server runs nothing.
#[tokio::test]
async fn a_failed_transaction_describes_no_statement_that_was_prepared_elsewhere() {
    let stage = Stage::new(&[]).await;
    let mut seen = Vec::new();
    for port in [hotrow_testkit::server().port(), stage.gateway.port()] {
        let options = format!("-c search_path={}", stage.schema);
        let mut client = Raw::login(port, &[("options", &options)]).await;
        let text = "update t set n = n + 1 where id = $1";
        client.send(&[parse("s", text), bind("", "s", &[Some("1")]), execute("", 0), sync()].concat()).await;
        assert_eq!(tags(&client.until_ready(1).await), "12CZ");
        for failing in ["begin", "select 1 / 0"] {
            client.query(failing).await;
        }
        client.send(&[describe(b'S', "s"), sync()].concat()).await;
        let described = client.until_ready(1).await;
        seen.push((tags(&described), described[0].field(b'C')));
        client.query("rollback").await;
        client.send(&[describe(b'S', "s"), sync()].concat()).await;
        assert_eq!(tags(&client.until_ready(1).await), "tnZ");
    }
    assert_eq!(seen, [("tnZ".to_owned(), None), ("EZ".to_owned(), Some("25P02".to_owned()))]);
}
