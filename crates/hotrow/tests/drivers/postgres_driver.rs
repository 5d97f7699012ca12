//! tokio-postgres, which uses the extended protocol with binary values, and names and closes its statements.

use std::time::{Duration, Instant, SystemTime};

use futures_util::{SinkExt, TryStreamExt, pin_mut};
use hotrow_core::limits;
use hotrow_testkit::{Gateway, PATIENT_LANES, connect, new_schema, sqlstate, until, value};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls};

async fn through(options: &[&str]) -> (Gateway, String, Client, Client) {
    let (schema, direct) = new_schema().await;
    let gateway = Gateway::start(options);
    let client = connect(&gateway.config_in(&schema)).await;
    (gateway, schema, direct, client)
}

#[tokio::test]
async fn prepared_statements_take_and_give_binary_values() {
    let (gateway, _, direct, client) = through(&PATIENT_LANES).await;
    let table = "create table t (id bigint primary key, small smallint, float8 float8, label text, raw bytea,
        flag bool, at timestamptz, list int[])";
    direct.batch_execute(table).await.unwrap();
    let at = SystemTime::UNIX_EPOCH;
    let insert = client.prepare("insert into t values ($1, $2, $3, $4, $5, $6, $7, $8)").await.unwrap();
    let on_direct = direct.prepare("insert into t values ($1, $2, $3, $4, $5, $6, $7, $8)").await.unwrap();
    assert_eq!(insert.params(), on_direct.params());
    for id in 1..=20_i64 {
        let label = (id % 2 == 0).then(|| format!("ünï {id}"));
        let values: [&(dyn ToSql + Sync); 8] =
            [&id, &7_i16, &0.1_f64, &label, &&b"\0\xff"[..], &true, &at, &vec![1_i32, 2]];
        assert_eq!(client.execute(&insert, &values).await.unwrap(), 1);
    }
    let read = client.prepare("select * from t where id = $1").await.unwrap();
    let columns = |columns: &[tokio_postgres::Column]| {
        columns.iter().map(|c| (c.name().to_owned(), c.type_().clone(), c.table_oid())).collect::<Vec<_>>()
    };
    let direct_read = direct.prepare("select * from t where id = $1").await.unwrap();
    assert_eq!(columns(read.columns()), columns(direct_read.columns()));
    for id in [4_i64, 5] {
        let row = client.query_one(&read, &[&id]).await.unwrap();
        assert_eq!(row.get::<_, Option<String>>(3), (id == 4).then(|| "ünï 4".to_owned()));
        assert_eq!(
            (row.get::<_, i64>(0), row.get::<_, f64>(2), row.get::<_, &[u8]>(4)),
            (id, 0.1, &b"\0\xff"[..])
        );
        assert_eq!((row.get::<_, SystemTime>(6), row.get::<_, Vec<i32>>(7)), (at, vec![1, 2]));
    }
    let null: Option<i64> = None;
    assert!(client.query(&read, &[&null]).await.unwrap().is_empty(), "no row has the key NULL");
    assert_eq!((gateway.metric("packed_units_total"), gateway.metric("packed_reads_total")), (20, 3));
}

#[tokio::test]
async fn clients_can_use_the_same_statement_name() {
    let (gateway, schema, direct, one) = through(&[]).await;
    direct
        .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0)")
        .await
        .unwrap();
    // The driver's own names are unique in a process, so the test chooses the names.
    let other = connect(&gateway.config_in(&schema)).await;
    one.batch_execute("prepare same (int) as select $1 + 1").await.unwrap();
    other.batch_execute("prepare same (int) as select $1 + 2").await.unwrap();
    assert_eq!(value(&one, "execute same (1)").await, "2");
    assert_eq!(value(&other, "execute same (1)").await, "3");
    let update = one.prepare("update t set n = n + $1 where id = 1 returning n").await.unwrap();
    for round in 1..=3 {
        assert_eq!(one.query_one(&update, &[&1]).await.unwrap().get::<_, i32>(0), round);
    }
    drop(update); // the driver closes it
    let again = other.prepare("update t set n = n + $1 where id = 1 returning n").await.unwrap();
    assert_eq!(other.query_one(&again, &[&1]).await.unwrap().get::<_, i32>(0), 4);
}

#[tokio::test]
async fn typed_queries_need_no_preparation() {
    let (gateway, _, direct, client) = through(&PATIENT_LANES).await;
    direct
        .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0)")
        .await
        .unwrap();
    let update = "update t set n = n + $2 where id = $1 returning n";
    for n in 1..=5_i32 {
        let rows = client.query_typed(update, &[(&1_i32, Type::INT4), (&2_i32, Type::INT4)]).await.unwrap();
        assert_eq!(rows[0].get::<_, i32>(0), n * 2);
    }
    // A declared type that differs from the column's makes this another statement with the same text.
    let rows = client.query_typed(update, &[(&1_i64, Type::INT8), (&1_i32, Type::INT4)]).await.unwrap();
    assert_eq!(rows[0].get::<_, i32>(0), 11);
    let refused = client.query_typed(update, &[(&1_i32, Type::INT4), (&"x", Type::TEXT)]).await.unwrap_err();
    assert_eq!(sqlstate(&refused), "42883");
    assert!(gateway.metric("packed_units_total") >= 5);
}

#[tokio::test]
async fn transactions_isolate_their_client() {
    let (_gateway, schema, direct, mut client) = through(&[]).await;
    direct
        .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0)")
        .await
        .unwrap();
    let other = connect(&_gateway.config_in(&schema)).await;
    let transaction = client.transaction().await.unwrap();
    assert_eq!(transaction.execute("update t set n = 5 where id = 1", &[]).await.unwrap(), 1);
    assert_eq!(value(&other, "select n from t where id = 1").await, "0", "no other client sees it");
    transaction.rollback().await.unwrap();
    assert_eq!(value(&other, "select n from t where id = 1").await, "0");
    let mut transaction = client.transaction().await.unwrap();
    transaction.execute("update t set n = n + 1 where id = $1", &[&1]).await.unwrap();
    let inner = transaction.savepoint("middle").await.unwrap();
    let refused = inner.execute("insert into t values (1, 1)", &[]).await.unwrap_err();
    assert_eq!(sqlstate(&refused), "23505");
    inner.rollback().await.unwrap();
    transaction.execute("update t set n = n + 1 where id = $1", &[&1]).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(value(&other, "select n from t where id = 1").await, "2");
}

#[tokio::test]
async fn portals_return_rows_in_pieces() {
    let (_gateway, _, _direct, mut client) = through(&[]).await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind("select * from generate_series(1, $1)", &[&10]).await.unwrap();
    let mut sizes = Vec::new();
    loop {
        let rows = transaction.query_portal(&portal, 4).await.unwrap();
        sizes.push(rows.len());
        if rows.len() < 4 {
            break;
        }
    }
    assert_eq!(sizes, [4, 4, 2]);
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn copy_streams_in_both_directions() {
    let (_gateway, _, direct, client) = through(&[]).await;
    direct.batch_execute("create table t (id int primary key, n int)").await.unwrap();
    let sink = client.copy_in("copy t from stdin").await.unwrap();
    pin_mut!(sink);
    for id in 0..5_000 {
        sink.send(bytes::Bytes::from(format!("{id}\t{id}\n"))).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), 5_000);
    let stream = client.copy_out("copy (select * from t order by id) to stdout").await.unwrap();
    let chunks: Vec<_> = stream.try_collect().await.unwrap();
    assert_eq!(chunks.len(), 5_000);
    assert_eq!(chunks[4_999], "4999\t4999\n");
    // An abandoned COPY leaves no rows, and the session stays usable.
    let abandoned = client.copy_in::<_, bytes::Bytes>("copy t from stdin").await.unwrap();
    drop(abandoned);
    assert_eq!(value(&client, "select count(*) from t").await, "5000");
    let twice = client.copy_in("copy t from stdin").await.unwrap();
    pin_mut!(twice);
    twice.send(bytes::Bytes::from("1\t1\n")).await.unwrap();
    assert_eq!(sqlstate(&twice.finish().await.unwrap_err()), "23505");
    assert_eq!(client.execute("update t set n = 0 where id = 1", &[]).await.unwrap(), 1);
}

#[tokio::test]
async fn a_cancel_token_stops_the_running_statement() {
    let (_gateway, _, _direct, client) = through(&[]).await;
    let token = client.cancel_token();
    let sleeping = tokio::spawn(async move {
        let refused = client.query("select pg_sleep(60), 'cancelled'", &[]).await.unwrap_err();
        (client, refused)
    });
    let look = connect(&_gateway.config()).await;
    let asleep = "select 1 from pg_stat_activity where query like 'select pg_sleep(60), ''cancelled%' and state = 'active'";
    until("the statement sleeps", async || !hotrow_testkit::rows(&look, asleep).await.unwrap().is_empty())
        .await;
    token.cancel_query(NoTls).await.unwrap();
    let (client, refused) = sleeping.await.unwrap();
    assert_eq!(sqlstate(&refused), "57014");
    assert_eq!(value(&client, "select 1").await, "1");
}

/// More clients than can have a turn on the cores at once.
fn more_than_turns() -> usize {
    let cores = std::thread::available_parallelism().unwrap().get();
    (limits::HELD_TURNS_PER_CORE * cores).min(limits::HELD_TURNS_MAX) + 4
}

#[tokio::test]
async fn open_transactions_give_up_their_turns() {
    let (gateway, schema, _, short) = through(&[]).await;
    let mut open = Vec::new();
    for _ in 0..more_than_turns() {
        let client = connect(&gateway.config_in(&schema)).await;
        client.batch_execute("begin; select 1").await.unwrap();
        open.push(client);
    }
    assert!(gateway.metric("held_connections") >= open.len() as u64);
    // A client that waits for a turn waits this long each time, if no other client gives its turn up.
    let moment = Duration::from_millis(limits::HELD_TURN_WAIT_MS);
    until("a statement does not wait", async || {
        let since = Instant::now();
        value(&short, "select count(*) from pg_sleep(0)").await;
        since.elapsed() < moment
    })
    .await;
}

/// Neither slow nor short statements wait for others to end.
#[tokio::test]
async fn slow_statements_do_not_hold_up_others() {
    let (gateway, schema, direct, short) = through(&[]).await;
    let mut sleepers = Vec::new();
    for _ in 0..more_than_turns() {
        sleepers.push(connect(&gateway.config_in(&schema)).await);
    }
    let tokens: Vec<_> = sleepers.iter().map(Client::cancel_token).collect();
    let asleep = format!(
        "select count(*) = {} from pg_stat_activity where wait_event = 'PgSleep' and query like '%''{schema}''%'",
        sleepers.len()
    );
    let sleep = format!("select pg_sleep(60), '{schema}'");
    let sleeping: Vec<_> = sleepers
        .into_iter()
        .map(|client| (client, sleep.clone()))
        .map(|(client, sleep)| tokio::spawn(async move { client.batch_execute(&sleep).await }))
        .collect();
    // A statement that waits for its turn is not at the server yet, so a cancel request for it has no effect.
    until("all sleep", async || value(&direct, &asleep).await == "t").await;
    assert_eq!(value(&short, "select count(*) from pg_sleep(0)").await, "1");
    assert!(sleeping.iter().all(|sleeper| !sleeper.is_finished()));
    for token in tokens {
        token.cancel_query(NoTls).await.unwrap();
    }
    for sleeper in sleeping {
        assert_eq!(sqlstate(&sleeper.await.unwrap().unwrap_err()), "57014");
    }
}

#[tokio::test]
async fn large_values_are_returned_unchanged() {
    let (gateway, _, direct, client) = through(&PATIENT_LANES).await;
    direct.batch_execute("create table t (id int primary key, label text)").await.unwrap();
    let large: String = (0..600_000).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    for (id, size) in [(1, 10), (2, 60_000), (3, 70_000), (4, 600_000)] {
        client.execute("insert into t values ($1, $2)", &[&id, &&large[..size]]).await.unwrap();
        for _ in 0..2 {
            let row = client.query_one("select label from t where id = $1", &[&id]).await.unwrap();
            assert!(row.get::<_, &str>(0) == &large[..size], "{size} bytes");
        }
    }
    assert!(gateway.metric("packed_units_total") >= 2 && gateway.metric("passed_through_units_total") >= 2);
}

#[tokio::test]
async fn batches_of_text_run_as_the_server_runs_them() {
    let (_gateway, _, direct, client) = through(&[]).await;
    client
        .batch_execute(
            "create table t (id int primary key); insert into t values (1); insert into t values (2)",
        )
        .await
        .unwrap();
    let refused =
        client.batch_execute("insert into t values (3); insert into t values (1); insert into t values (4)");
    assert_eq!(sqlstate(&refused.await.unwrap_err()), "23505");
    assert_eq!(value(&direct, "select count(*) from t").await, "2");
    client.batch_execute("begin; insert into t values (3)").await.unwrap();
    assert_eq!(value(&direct, "select count(*) from t").await, "2");
    client.batch_execute("commit").await.unwrap();
    assert_eq!(value(&direct, "select count(*) from t").await, "3");
    client.batch_execute("").await.unwrap();
}
