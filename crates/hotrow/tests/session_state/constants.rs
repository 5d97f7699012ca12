//! Constants whose meaning the server fixes when it analyses a statement: names of sequences, text search
//! configurations, dictionaries and collations, intervals with fields, and relative times.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, config, connect, patient, rows, server, until, value};

use crate::{SHORT_CATALOG_AGE, Stage, is_noticed_soon, noticed};
use tokio_postgres::Client;

/// The server reads a constant by the fields of its column, and a parameter without them.
#[tokio::test]
async fn an_interval_is_read_by_the_fields_of_its_column() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let tables = "create domain minutes as interval minute; create domain nested as minutes;
        create table spans (id int primary key, a interval minute, b interval minute to second, c interval year,
            d nested, e interval minute[], f interval(2), g interval day to second(1));
        insert into spans (id) values (1)";
    stage.direct.batch_execute(tables).await.unwrap();
    let all = "returning a, b, c, d, e, f, g";
    let writes = [
        format!("update spans set a = '5', b = '1:30', c = '2' where id = 1 {all}"),
        format!("update spans set d = '5', e = '{{5,7:30}}', f = '1.23456', g = '3' where id = 1 {all}"),
        format!("insert into spans values (1, '6') on conflict (id) do update set a = '7', d = '8' {all}"),
        format!(
            "insert into spans values (2, '6', '2:30', '3', '4', '{{5}}', '0.555', '1 2:03') \
             on conflict (id) do update set b = '9' {all}"
        ),
        format!("update spans set a = '5'::interval minute, f = '1.23456'::interval(1) where id = 1 {all}"),
        format!("delete from spans where id = 1 and a = '5' {all}"),
    ];
    for write in &writes {
        // Each run begins with the same rows. From its second run on, the gateway decides the statement from the
        // catalog.
        let expected = value_in_rollback(&stage.direct, write).await;
        for _ in 0..3 {
            assert_eq!(value_in_rollback(&client, write).await, expected, "{write}");
        }
    }
    for write in &writes {
        let expected = value_in_rollback(&stage.direct, write).await;
        assert_eq!(rows(&client, write).await.unwrap(), expected, "{write}");
    }
}

async fn value_in_rollback(client: &Client, sql: &str) -> Vec<Vec<Option<String>>> {
    client.batch_execute("begin").await.unwrap();
    let found = rows(client, sql).await.unwrap();
    client.batch_execute("rollback").await.unwrap();
    found
}

/// Statements whose constants name an object, with the answer before and after [`SWAPS`].
const NAMED: &[(&str, &str, &str)] = &[
    ("select nextval('places') > 500", "f", "t"),
    ("insert into texts values (nextval('places'), '') returning id > 500", "f", "t"),
    (
        "update texts set found = to_tsvector('stems', body) where id = 1 returning found",
        "'dog':2 'run':1",
        "'a':3 'dogs':2 'running':1",
    ),
    (
        "select to_tsvector('stems', body) from texts where id = 1",
        "'dog':2 'run':1",
        "'a':3 'dogs':2 'running':1",
    ),
    ("select to_tsquery('stems', 'dogs')", "'dog'", "'dogs'"),
    ("select plainto_tsquery((('stems')), 'dogs')", "'dog'", "'dogs'"),
    ("select in_function('dogs')", "'dog'", "'dogs'"),
    ("select body < 'Z' collate sorts from texts where id = 1", "f", "t"),
    ("update texts set is_less = body < ('Z' collate sorts) where id = 1 returning is_less", "f", "t"),
];

const OBJECTS: &str = r#"
    create sequence places;
    create table texts (id int primary key, body text, found tsvector, is_less bool);
    insert into texts values (-1, ''), (0, '');
    create text search configuration stems (copy = pg_catalog.english);
    create text search configuration plain (copy = pg_catalog.simple);
    create collation sorts from "C";
    create collation other (provider = icu, locale = 'en-US')"#;

/// Another sequence gets an earlier place in `search_path`. A configuration and a collation get the name of another.
const SWAPS: &[&str] = &[
    "create sequence $first.places start 1000",
    "alter text search configuration stems rename to stems_before",
    "alter text search configuration plain rename to stems",
    "alter collation sorts rename to sorts_before",
    "alter collation other rename to sorts",
];

struct Names {
    stage: Stage,
    first: String,
    client: Client,
}

impl Names {
    async fn new(options: &[&str]) -> Self {
        let stage = Stage::new(options).await;
        let first = format!("{}_first", stage.schema);
        stage.direct.batch_execute(&format!("create schema {first}")).await.unwrap();
        stage.direct.batch_execute(OBJECTS).await.unwrap();
        let function = "create function in_function(text) returns tsquery immutable language sql as $$ \
                        select to_tsquery('stems', $1) $$; insert into texts values (1, 'running dogs a')";
        stage.direct.batch_execute(function).await.unwrap();
        let path = format!("-c search_path={first},{}", stage.schema);
        let client = connect(stage.gateway.config().options(&path)).await;
        stage.direct.batch_execute("alter sequence places restart 100").await.unwrap();
        Names { stage, first, client }
    }

    /// Runs each statement that names an object.
    async fn answers(&self) -> Vec<String> {
        let mut answers = Vec::new();
        for (sql, ..) in NAMED {
            answers.push(value(&self.client, sql).await);
        }
        answers
    }

    async fn swap(&self, by: &Client) {
        for swap in SWAPS {
            by.batch_execute(&swap.replace("$first", &self.first)).await.unwrap();
        }
    }
}

fn before() -> Vec<&'static str> {
    NAMED.iter().map(|(_, before, _)| *before).collect()
}

fn after() -> Vec<&'static str> {
    NAMED.iter().map(|(.., after)| *after).collect()
}

#[tokio::test]
async fn a_constant_means_the_object_that_has_its_name_now() {
    let names = Names::new(&[]).await;
    let other = names.stage.client().await;
    for _ in 0..3 {
        assert_eq!(names.answers().await, before());
    }
    let packed = names.stage.gateway.metric("packed_units_total");
    assert!(packed > 0, "statements with such constants are packed");
    names.swap(&other).await;
    for _ in 0..2 {
        assert_eq!(names.answers().await, after(), "at once, since the change came through the gateway");
    }
    assert!(names.stage.gateway.metric("packed_units_total") > packed, "the statements are packed again");
}

#[tokio::test]
async fn the_meaning_of_a_constant_is_looked_up_again() {
    is_noticed_soon(async || {
        let names = Names::new(SHORT_CATALOG_AGE).await;
        for _ in 0..3 {
            assert_eq!(names.answers().await, before());
        }
        names.swap(&names.stage.direct).await;
        noticed("constants mean the new objects", async || names.answers().await == after()).await
    })
    .await;
}

/// On a direct connection, each simple query is analysed by the current names. From PostgreSQL 18 on, a session keeps the plans of
/// functions in SQL.
#[tokio::test]
async fn the_answers_are_those_of_a_direct_connection() {
    let names = Names::new(&[]).await;
    let path = format!("-c search_path={},{}", names.first, names.stage.schema);
    let mut direct = Names {
        client: connect(config(server().port()).options(&path)).await,
        first: names.first.clone(),
        stage: names.stage,
    };
    assert_eq!(direct.answers().await, before());
    direct.swap(&direct.stage.direct).await;
    direct.client = connect(config(server().port()).options(&path)).await;
    assert_eq!(direct.answers().await, after());
}

/// A reload reaches open connections. A constant in the text of a statement is read by the current settings.
#[tokio::test]
async fn a_constant_is_read_by_the_current_settings() {
    let server = PrivateServer::builder().label("reload").start().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &patient(SHORT_CATALOG_AGE));
    let (direct, client) = (connect(&config(server.port())).await, connect(&gateway.config()).await);
    let table =
        "create table times (id int primary key, at timestamptz, day date); insert into times values (1)";
    direct.batch_execute(table).await.unwrap();
    let update = "update times set at = timestamptz '2020-01-01 00:00', day = date '02.01.2020' where id = 1
        returning extract(epoch from at)::int, day - date '2020-01-01'";
    let read = async |client: &Client| rows(client, update).await.unwrap();
    for _ in 0..3 {
        assert_eq!(read(&client).await, read(&direct).await);
    }
    assert!(gateway.metric("packed_units_total") > 0);
    direct.batch_execute("alter system set datestyle = 'ISO, DMY'").await.unwrap();
    let mut zones = ["Asia/Tokyo", "Asia/Kolkata", "Asia/Dubai"].into_iter();
    is_noticed_soon(async || {
        let zone = zones.next().unwrap();
        direct.batch_execute(&format!("alter system set timezone = '{zone}'")).await.unwrap();
        let before = read(&direct).await;
        direct.batch_execute("select pg_reload_conf()").await.unwrap();
        until("the server has read its settings", async || read(&direct).await != before).await;
        let now = read(&direct).await;
        noticed("the constants are read by the new settings", async || read(&client).await == now).await
    })
    .await;
}
