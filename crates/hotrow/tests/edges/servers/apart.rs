//! Databases of two servers with the same names and OIDs and other definitions: no verdict, prepared statement, key,
//! notification or cancel request of one reaches the other.

use hotrow_testkit::raw::Raw;
use hotrow_testkit::{Gateway, PATIENCE, connect, sqlstate, until, value};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};

use crate::servers::{Stage, client, config, databases};

/// The same text on both servers.
const UPDATE: &str = "update t set n = n + $1 where id = $2 returning n, current_setting('port')";

fn same_names(stage: &Stage) -> Gateway {
    let tables = [("left", "one", "database = \"app\""), ("right", "two", "database = \"app\"")];
    stage.gateway(&databases(&tables), &[])
}

/// Makes the database and a table with this definition. Returns a direct connection, the OIDs of both, and the table's
/// name in the catalog.
async fn prepare(port: u16, table: &str) -> (Client, String) {
    client(port, "postgres").await.batch_execute("create database app").await.unwrap();
    let direct = client(port, "app").await;
    direct.batch_execute(table).await.unwrap();
    let oids = "select concat((select oid from pg_database where datname = 'app'), ' ', 't'::regclass::oid)";
    let oids = value(&direct, oids).await;
    (direct, oids)
}

async fn packed(gateway: &Gateway, client: &Client, text: &str) -> bool {
    let before = gateway.metric("packed_units_total");
    client.simple_query(text).await.unwrap();
    gateway.metric("packed_units_total") > before
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn statements_on_tables_with_the_same_oid_are_judged_for_each_server() {
    let stage = Stage::new();
    let one = "create table t (id int primary key, n int); insert into t values (1, 10), (2, 20)";
    let two = "create table t (id text, n numeric); insert into t values ('1', 0.5), ('1', 1.5), ('2', 7)";
    let (direct_one, oids_one) = prepare(stage.one.port(), one).await;
    let (direct_two, oids_two) = prepare(stage.two.port(), two).await;
    assert_eq!(oids_one, oids_two, "the test needs the same OIDs");
    let gateway = same_names(&stage);
    let (left, right) = (client(gateway.port(), "left").await, client(gateway.port(), "right").await);

    // Types of parameters and columns, in turns: each client keeps those of its server.
    let on_left = left.prepare(UPDATE).await.unwrap();
    let on_right = right.prepare(UPDATE).await.unwrap();
    assert_eq!(on_left.params(), [Type::INT4, Type::INT4]);
    assert_eq!(on_right.params(), [Type::NUMERIC, Type::TEXT]);
    let ports = [stage.one.port().to_string(), stage.two.port().to_string()];
    for round in 1..=4 {
        let rows = left.query(&on_left, &[&1, &1]).await.unwrap();
        assert_eq!((rows.len(), rows[0].get::<_, i32>(0)), (1, 10 + round));
        assert_eq!(rows[0].get::<_, String>(1), ports[0]);
        let rows = right.query("update t set n = n + 1 where id = '1' returning n::text", &[]).await.unwrap();
        assert_eq!(rows.len(), 2, "the table has no key there");
    }

    // The verdict: a key on one server, none on the other. The text is the same.
    let text = "update t set n = n + 1 where id = '2'";
    for _ in 0..3 {
        assert!(packed(&gateway, &left, text).await, "the table has a primary key");
        assert!(!packed(&gateway, &right, text).await, "the table has no unique index");
    }
    assert_eq!(value(&direct_one, "select string_agg(n::text, ' ' order by id) from t").await, "14 23");
    assert_eq!(
        value(&direct_two, "select string_agg(n::text, ' ' order by id, n) from t").await,
        "4.5 5.5 10"
    );

    // A definition changes on one server only, in the midst of work on both.
    right.batch_execute("delete from t; alter table t add primary key (id)").await.unwrap();
    right.batch_execute("insert into t values ('2', 0)").await.unwrap();
    left.batch_execute("create function twice() returns trigger language plpgsql as 'begin new.n := new.n * 2; return new; end';
        create trigger twice before update on t for each row execute function twice()").await.unwrap();
    for _ in 0..3 {
        left.simple_query(text).await.unwrap();
        right.simple_query(text).await.unwrap();
    }
    assert_eq!(value(&direct_one, "select n from t where id = 2").await, "198", "((23 + 1) * 2 + 1) * 2 …");
    assert_eq!(value(&direct_two, "select n from t where id = '2'").await, "3");
    assert!(packed(&gateway, &right, text).await, "the table has a primary key now");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn databases_with_the_same_name_are_reached_by_their_names_at_the_gateway() {
    let stage = Stage::new();
    let table = "create table t (id int primary key, n int); insert into t values (1, 0)";
    let (direct_one, _) = prepare(stage.one.port(), table).await;
    let (direct_two, _) = prepare(stage.two.port(), table).await;
    let gateway = same_names(&stage);
    let mut work = Vec::new();
    for number in 0..8 {
        let name = if number % 4 == 0 { "left" } else { "right" };
        let client = client(gateway.port(), name).await;
        work.push(tokio::spawn(async move {
            for _ in 0..50 {
                client.simple_query("update t set n = n + 1 where id = 1").await.unwrap();
                client
                    .batch_execute("begin; select 1; update t set n = n where id = 1; commit")
                    .await
                    .unwrap();
            }
        }));
    }
    for client in work {
        client.await.unwrap();
    }
    assert_eq!(value(&direct_one, "select n from t").await, "100");
    assert_eq!(value(&direct_two, "select n from t").await, "300");
    assert!(
        gateway.metrics().contains("database=\"left\"") && gateway.metrics().contains("database=\"right\"")
    );
}

/// A client that listens to the channel `c`.
async fn listener(gateway: &Gateway, database: &str) -> Raw {
    let mut raw = Raw::login(gateway.port(), &[("database", database)]).await;
    let replies = raw.query("listen c").await;
    assert!(replies.iter().any(|message| message.tag == b'C'), "{replies:?}");
    raw
}

async fn next_payload(raw: &mut Raw) -> String {
    loop {
        let message = tokio::time::timeout(PATIENCE, raw.message()).await.unwrap().unwrap();
        if message.tag == b'A' {
            let parts: Vec<&[u8]> = message.body[4..].split(|byte| *byte == 0).collect();
            return String::from_utf8_lossy(parts[1]).into_owned();
        }
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn notifications_and_cancel_requests_stay_at_their_server() {
    let stage = Stage::new();
    let (direct_one, _) = prepare(stage.one.port(), "create table t (id int primary key)").await;
    let (direct_two, _) = prepare(stage.two.port(), "create table t (id int primary key)").await;
    let gateway = same_names(&stage);
    let (mut left, mut right) = (listener(&gateway, "left").await, listener(&gateway, "right").await);
    // Each server has the shared connection of its own clients. Otherwise the sessions would keep connections of their own.
    let shared = "select count(*) from pg_stat_activity
                   where datname = 'app' and application_name = 'hotrow listener'";
    for direct in [&direct_one, &direct_two] {
        assert_eq!(value(direct, shared).await, "1");
    }
    direct_one.batch_execute("notify c, 'from one'").await.unwrap();
    direct_two.batch_execute("notify c, 'from two'").await.unwrap();
    assert_eq!(next_payload(&mut left).await, "from one");
    assert_eq!(next_payload(&mut right).await, "from two");
    client(gateway.port(), "right").await.batch_execute("notify c, 'from a client'").await.unwrap();
    assert_eq!(next_payload(&mut right).await, "from a client");
    direct_one.batch_execute("notify c, 'last'").await.unwrap();
    assert_eq!(next_payload(&mut left).await, "last");

    let sleepers = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    let mut sleeping = Vec::new();
    for name in ["left", "right"] {
        let client = connect(&config(gateway.port(), name)).await;
        let token = client.cancel_token();
        sleeping.push((token, tokio::spawn(async move { client.simple_query("select pg_sleep(60)").await })));
    }
    for direct in [&direct_one, &direct_two] {
        until("the statement sleeps", async || value(direct, sleepers).await == "1").await;
    }
    let (token, outcome) = sleeping.pop().unwrap();
    token.cancel_query(NoTls).await.unwrap();
    assert_eq!(sqlstate(&outcome.await.unwrap().unwrap_err()), "57014");
    assert_eq!(value(&direct_one, sleepers).await, "1", "the other statement goes on");
    let (token, outcome) = sleeping.pop().unwrap();
    token.cancel_query(NoTls).await.unwrap();
    assert_eq!(sqlstate(&outcome.await.unwrap().unwrap_err()), "57014");
}
