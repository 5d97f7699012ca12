//! Tables that change while the gateway runs, by DDL of its clients or of others: answers stay those of the server, and
//! the gateway repeats its decisions that depended on the catalog.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::{SHORT_CATALOG_AGE, Stage, is_noticed_soon, noticed};
use hotrow_testkit::raw::{Raw, bind, execute, parse, sync, tags};
use hotrow_testkit::{config, connect, rows, server, sqlstate, until, value};
use tokio_postgres::Statement;
use tokio_postgres::types::{ToSql, Type};

#[tokio::test]
async fn added_columns_are_visible_at_once() {
    let stage = Stage::new(&[]).await;
    let (client, other) = (stage.client().await, stage.client().await);
    let read = client.prepare("select * from t where id = $1").await.unwrap();
    let insert = client.prepare("insert into t values ($1, $2) returning *").await.unwrap();
    assert_eq!(client.query_one(&read, &[&1]).await.unwrap().len(), 2);
    assert_eq!(client.query_one(&insert, &[&3, &0]).await.unwrap().len(), 2);
    assert_eq!(value(&other, "select * from t where id = 1").await, "1");

    client.batch_execute("alter table t add column label text default 'new'").await.unwrap();
    for (id, statement) in [(1, &read), (4, &insert)] {
        // The server rejects a plan whose columns have changed. A new plan has the new column. Both results are
        // correct.
        let values: [&(dyn ToSql + Sync); 2] = [&id, &0];
        match client.query_one(statement, &values[..statement.params().len()]).await {
            Ok(row) => assert_eq!(row.get::<_, i32>(0), id),
            Err(error) => assert_eq!(sqlstate(&error), "0A000", "{error:?}"),
        }
    }
    let again = client.prepare("select * from t where id = $1").await.unwrap();
    let row = client.query_one(&again, &[&1]).await.unwrap();
    assert_eq!((row.len(), row.get::<_, &str>(2)), (3, "new"));
    let rows = rows(&other, "select * from t where id = 1").await.unwrap();
    assert_eq!(rows[0].len(), 3);
    assert!(stage.packs(&client).await && stage.packs(&other).await);
}

#[tokio::test]
async fn a_table_that_is_dropped_and_created_again_is_another() {
    let stage = Stage::new(&[]).await;
    let (client, other) = (stage.client().await, stage.client().await);
    let update = other.prepare("update t set n = n + 1 where id = 1 returning n").await.unwrap();
    assert_eq!(other.query_one(&update, &[]).await.unwrap().get::<_, i32>(0), 1);
    client.batch_execute("drop table t").await.unwrap();
    assert_eq!(sqlstate(&other.query_one(&update, &[]).await.unwrap_err()), "42P01");
    assert_eq!(sqlstate(&other.simple_query(crate::UPDATE).await.unwrap_err()), "42P01");
    client
        .batch_execute("create table t (id int primary key, n int); insert into t values (1, 10)")
        .await
        .unwrap();
    assert_eq!(other.query_one(&update, &[]).await.unwrap().get::<_, i32>(0), 11);
    until("updates are packed again", async || stage.packs(&client).await).await;
}

#[tokio::test]
async fn a_prepared_statement_is_packed_again_after_its_table_was_made_anew() {
    let stage = Stage::new(SHORT_CATALOG_AGE).await;
    let client = stage.client().await;
    let types = [Type::INT4];
    let updates = [
        client.prepare("update t set n = n + 1 where id = 1").await.unwrap(),
        client.prepare("update t set n = n + 1 where id = $1 returning id, n").await.unwrap(),
        client.prepare_typed("update t set n = n + 1 where id = $1", &types).await.unwrap(),
        client.prepare_typed("update t set n = n + 1 where id = $1 returning n", &types).await.unwrap(),
        client.prepare("update t set n = n + 1 where id = 1 returning id").await.unwrap(),
    ];
    let is_packed = async |update: &Statement| {
        let before = stage.gateway.metric("packed_units_total");
        let values: [&(dyn ToSql + Sync); 1] = [&1];
        assert_eq!(client.execute(update, &values[..update.params().len()]).await.unwrap(), 1);
        stage.gateway.metric("packed_units_total") > before
    };
    for update in &updates {
        until("it is packed", async || is_packed(update).await).await;
    }
    let anew = "drop table t; create table t (id int primary key, n int); insert into t values (1, 0)";
    stage.direct.batch_execute(anew).await.unwrap();
    for update in &updates {
        until("it is packed again", async || is_packed(update).await).await;
    }
}

/// All units of a batch run again if their table has changed. None of them has failed.
#[tokio::test]
async fn a_hot_row_stays_in_lanes_while_its_table_changes() {
    let stage = Arc::new(Stage::new(SHORT_CATALOG_AGE).await);
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = (0..32).map(|_| {
        let (stage, is_over) = (stage.clone(), is_over.clone());
        tokio::spawn(async move {
            let client = stage.client().await;
            let update = client.prepare("update t set n = n + 1 where id = $1").await.unwrap();
            while !is_over.load(SeqCst) {
                assert_eq!(client.execute(&update, &[&1]).await.unwrap(), 1);
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    for column in 0..6 {
        let packed = stage.gateway.metric("packed_units_total");
        until("updates are packed", async || stage.gateway.metric("packed_units_total") > packed + 200).await;
        stage.direct.batch_execute(&format!("alter table t add column c{column} int")).await.unwrap();
    }
    is_over.store(true, SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    assert!(stage.gateway.metric("batches_rolled_back_total") > 0, "a batch has met a change");
    assert_eq!(stage.gateway.metric("failed_units_total"), 0);
    let passed = stage.gateway.metric("not_packed_total{reason=\"fails_too_often\"}");
    assert_eq!(passed, 0, "the statement has kept its credit");
}

#[tokio::test]
async fn a_trigger_added_by_an_outsider_is_noticed() {
    let stage = Stage::new(SHORT_CATALOG_AGE).await;
    let client = stage.client().await;
    assert!(stage.packs(&client).await);
    let function = "create table seen (backend int, name text);
        create function watch() returns trigger language plpgsql as $$
            begin insert into seen values (pg_backend_pid(), current_setting('application_name')); return new; end $$";
    stage.direct.batch_execute(function).await.unwrap();
    is_noticed_soon(async || {
        let before = value(&stage.direct, "select n from t where id = 1").await;
        let trigger = "create trigger watch after update on t for each row execute function watch()";
        stage.direct.batch_execute(trigger).await.unwrap();
        let took = noticed("updates are no longer packed", async || !stage.packs(&client).await).await;
        let seen = format!("select count(*) = (select n - {before} from t where id = 1) from seen");
        let all = value(&stage.direct, &seen).await;
        assert_eq!(all, "t", "the trigger has run for each later update");
        stage.direct.batch_execute("drop trigger watch on t; delete from seen").await.unwrap();
        until("updates are packed again", async || stage.packs(&client).await).await;
        took
    })
    .await;
}

#[tokio::test]
async fn a_unique_index_dropped_by_an_outsider_is_noticed() {
    let stage = Stage::new(SHORT_CATALOG_AGE).await;
    let client = stage.client().await;
    stage
        .direct
        .batch_execute("create table u (code text, n int); insert into u values ('a', 0); create unique index u_code on u (code)")
        .await
        .unwrap();
    let update = "update u set n = n + 1 where code = 'a'";
    let packs = async || {
        let before = stage.gateway.metric("packed_units_total");
        client.simple_query(update).await.unwrap();
        stage.gateway.metric("packed_units_total") > before
    };
    assert!(packs().await);
    is_noticed_soon(async || {
        let drop = "drop index u_code; insert into u values ('a', 1000000)";
        stage.direct.batch_execute(drop).await.unwrap();
        let took = noticed("the update is no longer packed", async || !packs().await).await;
        assert_eq!(client.execute(update, &[]).await.unwrap(), 2, "both rows");
        let create = "delete from u where n >= 1000000; create unique index u_code on u (code)";
        stage.direct.batch_execute(create).await.unwrap();
        until("the update is packed again", async || packs().await).await;
        took
    })
    .await;
}

/// A column's type before and after the change, a value written before it, and a value written after it.
const CHANGED_TYPES: &[(&str, &str, &str, &str)] = &[
    ("int", "text", "7", "007"),
    ("timestamp", "timestamptz", "2020-01-01 00:00", "2020-01-01 00:00:00+05"),
    ("float8", "numeric", "1.5", "12345678901234567890.123"),
    ("date", "timestamp", "2020-01-01", "2020-01-01 12:34:56"),
    ("char(10)", "text", "a", "a   "),
    ("jsonb", "json", "{}", r#"{"b":1, "a":2, "a":3}"#),
];

/// Both protocols, and DDL by a client of the gateway and by an outsider: no value is ever read by the type that its
/// column had before.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_value_is_read_by_the_type_that_its_column_has_now() {
    let stage = Stage::new(&[]).await;
    let other = stage.client().await;
    for (number, (before, after, first, then)) in CHANGED_TYPES.iter().enumerate() {
        for (by, ddl) in [("a client", &other), ("an outsider", &stage.direct)] {
            let table = format!("changed_{number}_{}", by.len());
            let create = format!(
                "create table {table} (id int primary key, v {before}); insert into {table} values (1)"
            );
            stage.direct.batch_execute(&create).await.unwrap();
            let options = format!("-c search_path={}", stage.schema);
            let mut client = Raw::login(stage.gateway.port(), &[("options", &options)]).await;
            for written in [first, first, then] {
                if written == then {
                    let change = format!("alter table {table} alter v type {after} using v::{after}");
                    ddl.batch_execute(&change).await.unwrap();
                }
                let answer = client.query(&format!("update {table} set v = '{written}' where id = 1")).await;
                assert_eq!(tags(&answer), "CZ", "{before} to {after}, {written}");
                let simple = value(&stage.direct, &format!("select v::text from {table}")).await;
                let text = format!("update {table} set v = $1 where id = 1");
                let messages =
                    [parse("", &text), bind("", "", &[Some(written)]), execute("", 0), sync()].concat();
                client.send(&messages).await;
                assert_eq!(tags(&client.until_ready(1).await), "12CZ", "{before} to {after}, {written}");
                let extended = value(&stage.direct, &format!("select v::text from {table}")).await;
                let expected = value(
                    &stage.direct,
                    &format!("select ('{written}'::{})::text", if written == then { after } else { before }),
                )
                .await;
                assert_eq!((&simple, &extended), (&expected, &expected), "{before} to {after} by {by}");
            }
        }
    }
    assert!(stage.gateway.metric("packed_units_total") > 0);
}

#[tokio::test]
async fn no_row_is_found_by_the_former_type_of_a_key() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let create = "create table d (day date primary key); insert into d values ('2020-01-01')";
    stage.direct.batch_execute(create).await.unwrap();
    client.simple_query("delete from d where day = '1999-01-01'").await.unwrap();
    assert!(rows(&client, "select day from d where day = '1999-01-01'").await.unwrap().is_empty());
    stage.direct.batch_execute("alter table d alter day type timestamp").await.unwrap();
    assert!(rows(&client, "select day from d where day = '2020-01-01 12:34:56'").await.unwrap().is_empty());
    client.simple_query("delete from d where day = '2020-01-01 12:34:56'").await.unwrap();
    assert_eq!(value(&stage.direct, "select count(*) from d").await, "1");
}

#[tokio::test]
async fn a_name_means_the_table_that_search_path_finds_now() {
    let stage = Stage::new(&[]).await;
    let first = format!("{}_first", stage.schema);
    let both = format!("{first}, {}", stage.schema);
    let client = connect(
        stage.gateway.config_in(&stage.schema).options(format!("-c search_path={}", both.replace(' ', ""))),
    )
    .await;
    stage.direct.batch_execute(&format!("create schema {first}")).await.unwrap();
    for _ in 0..3 {
        client.simple_query("update t set n = 5 where id = 2").await.unwrap();
        assert_eq!(value(&client, "select n from t where id = '2'").await, "5");
    }
    let shadow =
        format!("create table {first}.t (id int primary key, n int); insert into {first}.t values (2, 50)");
    stage.direct.batch_execute(&shadow).await.unwrap();
    assert_eq!(value(&client, "select n from t where id = '2'").await, "50");
    client.simple_query("update t set n = n + 1 where id = 2").await.unwrap();
    assert_eq!(value(&stage.direct, &format!("select n from {first}.t where id = 2")).await, "51");
    assert_eq!(value(&stage.direct, &format!("select n from {}.t where id = 2", stage.schema)).await, "5");
    stage.direct.batch_execute(&format!("drop schema {first} cascade")).await.unwrap();
}

#[tokio::test]
async fn a_call_means_the_overload_that_fits_best_now() {
    let stage = Stage::new(&[]).await;
    let (client, other) = (stage.client().await, stage.client().await);
    let numeric =
        "create function vat(numeric) returns text immutable language sql as $$ select 'numeric' $$";
    stage.direct.batch_execute(numeric).await.unwrap();
    for _ in 0..2 {
        assert_eq!(value(&client, "select vat(5)").await, "numeric");
    }
    let int = "create function vat(int) returns text immutable language sql as $$ select 'int' $$";
    other.batch_execute(int).await.unwrap();
    assert_eq!(value(&client, "select vat(5)").await, "int");
    // A change in a transaction takes effect when the transaction ends.
    other.batch_execute("begin; drop function vat(int)").await.unwrap();
    other.batch_execute("commit").await.unwrap();
    assert_eq!(value(&client, "select vat(5)").await, "numeric");
}

/// A default that depends on the transaction: from the moment it exists, no two clients share a transaction.
#[tokio::test]
async fn a_default_added_by_an_outsider_applies_to_the_next_row() {
    let stage = Arc::new(Stage::new(&[]).await);
    stage
        .direct
        .batch_execute("create table told (id bigserial primary key, v int, tx bigint default 0)")
        .await
        .unwrap();
    let added = Arc::new(AtomicBool::new(false));
    let clients = (0..8).map(|number| {
        let (stage, added) = (stage.clone(), added.clone());
        tokio::spawn(async move {
            let client = stage.client().await;
            let insert = format!("insert into told (v) values ({number}) returning tx");
            let (mut shared, mut after) = (0, Vec::new());
            while after.len() < 30 {
                let is_after = added.load(SeqCst);
                let tx = value(&client, &insert).await;
                if is_after { after.push(tx) } else { shared += 1 }
            }
            (shared, after)
        })
    });
    let clients: Vec<_> = clients.collect();
    until("the clients share commits", async || stage.gateway.metric("packed_units_total") > 50).await;
    stage.direct.batch_execute("alter table told alter tx set default txid_current()").await.unwrap();
    added.store(true, SeqCst);
    let mut seen = std::collections::HashSet::new();
    for client in clients {
        let (before, after) = client.await.unwrap();
        assert!(before > 0);
        for tx in after {
            assert_ne!(tx, "0");
            assert!(seen.insert(tx.clone()), "transaction {tx} was shared");
        }
    }
}

/// The function of a trigger is replaced, and the table itself does not change.
#[tokio::test]
async fn a_trigger_function_replaced_by_an_outsider_is_noticed_at_once() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let stamp = |value: &str| {
        format!(
            "create or replace function stamp() returns trigger language plpgsql as $$ begin new.n := {value}; return new; end $$"
        )
    };
    stage.direct.batch_execute(&stamp("old.n + 10")).await.unwrap();
    stage
        .direct
        .batch_execute("create trigger stamp before update on t for each row execute function stamp()")
        .await
        .unwrap();
    for n in [10, 20, 30] {
        assert_eq!(value(&client, crate::UPDATE).await, n.to_string());
    }
    let packed = stage.gateway.metric("packed_units_total");
    assert!(packed >= 2);
    stage.direct.batch_execute(&stamp("pg_backend_pid()")).await.unwrap();
    let pid = value(&client, crate::UPDATE).await;
    assert_eq!(stage.gateway.metric("packed_units_total"), packed, "the update was not packed");
    let lanes = value(
        &stage.direct,
        &format!(
            "select count(*) from pg_stat_activity where pid = {pid} and application_name like 'hotrow%lane%'"
        ),
    )
    .await;
    assert_eq!(lanes, "0");
}

/// On a direct connection, too, a prepared statement uses the table that the name means as soon as it is analysed
/// again.
#[tokio::test]
async fn a_prepared_statement_means_the_table_that_search_path_finds_now_once_it_is_analysed_again() {
    let stage = Stage::new(&[]).await;
    let first = format!("{}_first", stage.schema);
    stage.direct.batch_execute(&format!("create schema {first}")).await.unwrap();
    let path = format!("-c search_path={first},{}", stage.schema);
    let shadow =
        format!("create table {first}.t (id int primary key, n int); insert into {first}.t values (1, 50)");
    let mut seen = Vec::new();
    for mut config in [config(server().port()), stage.gateway.config()] {
        stage.direct.batch_execute(&format!("drop table if exists {first}.t")).await.unwrap();
        let client = connect(config.options(&path)).await;
        let prepared = client.prepare_typed("select n from t where id = $1", &[Type::INT4]).await.unwrap();
        let n = async || client.query_one(&prepared, &[&1_i32]).await.unwrap().get::<_, i32>(0);
        assert_eq!(n().await, 0);
        stage.direct.batch_execute(&shadow).await.unwrap();
        let _either = n().await;
        let change = format!("alter table {}.t set (fillfactor = {})", stage.schema, 90 + seen.len());
        stage.direct.batch_execute(&change).await.unwrap();
        seen.push(n().await);
    }
    assert_eq!(seen, [50, 50]);
}

/// A domain several levels below the column's gets a check: no batch commits with the earlier fingerprint.
#[tokio::test]
async fn a_check_of_a_nested_domain_changes_the_fingerprint() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let tables = "create domain d1 as int; create domain d2 as d1; create domain d3 as d2; create domain of_list as int;
        create domain list as of_list[]; create table nested (id int primary key, v d3, w list);
        insert into nested values (1, 1)";
    stage.direct.batch_execute(tables).await.unwrap();
    let update = "update nested set v = 3 where id = 1";
    let packs = async || {
        let before = stage.gateway.metric("packed_units_total");
        client.simple_query(update).await.unwrap();
        stage.gateway.metric("packed_units_total") > before
    };
    for (domain, fillfactor) in [("d1", 90), ("of_list", 91)] {
        assert!(packs().await);
        let check =
            format!("alter domain {domain} add constraint tells check (pg_backend_pid() > 0) not valid");
        stage.direct.batch_execute(&check).await.unwrap();
        // Makes the server analyse statements on the table again. Then the gateway compares its fingerprint.
        let unrelated = format!("alter table nested set (fillfactor = {fillfactor})");
        stage.direct.batch_execute(&unrelated).await.unwrap();
        assert!(!packs().await, "{domain}");
        client.batch_execute(&format!("alter domain {domain} drop constraint tells")).await.unwrap();
    }
    assert!(packs().await);
}

/// PostgreSQL's functions for definitions see a newer catalog than the query that calls them, and return NULL for what was
/// dropped meanwhile.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_constraint_that_is_dropped_while_the_catalog_is_read_refuses_no_statement() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let changes = async {
        for number in 0.. {
            let changed = match number % 2 {
                0 => {
                    stage
                        .direct
                        .batch_execute("alter table t add constraint c check (id > 0) not valid")
                        .await
                }
                _ => stage.direct.batch_execute("alter table t drop constraint c").await,
            };
            changed.unwrap();
        }
    };
    let statements = async {
        let mut of_new_shape = "update t set n = n where id = 1".to_owned();
        for number in 0..80 {
            of_new_shape.push_str(" and id > 0");
            let answer = client.batch_execute(&of_new_shape).await;
            assert!(answer.is_ok(), "statement {number}: {answer:?}");
        }
    };
    tokio::select! {
        () = changes => {}
        () = statements => {}
    }
}
