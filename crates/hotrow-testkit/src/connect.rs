//! Connections by tokio-postgres, the rows of simple queries as text, and waiting for a condition.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::server;

/// Time limit of a test's waits. Only a fault makes them take so long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The configuration to log in as the server's superuser on a port of this machine.
pub fn config(port: u16) -> Config {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user("postgres").dbname("postgres");
    config
}

/// The same with `schema` as the search path.
pub fn config_in(port: u16, schema: &str) -> Config {
    let mut config = config(port);
    config.options(format!("-c search_path={schema}"));
    config
}

/// Connects. A background task drives the connection.
pub async fn connect(config: &Config) -> Client {
    try_connect(config).await.unwrap_or_else(|error| panic!("cannot connect: {}", describe(&error)))
}

/// The same for tests that expect an error.
pub async fn try_connect(config: &Config) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio::time::timeout(PATIENCE, config.connect(NoTls))
        .await
        .expect("a connection within the time limit")?;
    tokio::spawn(connection);
    Ok(client)
}

/// Creates a schema on the shared server for one test, and a direct connection with this search path.
pub async fn new_schema() -> (String, Client) {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let schema = format!("test_{}", NUMBER.fetch_add(1, Relaxed));
    let client = connect(&config_in(server().port(), &schema)).await;
    client.batch_execute(&format!("create schema {schema}")).await.expect("a schema");
    (schema, client)
}

/// Creates a database on the shared server for one test, and a direct connection to it.
pub async fn new_database() -> (String, Client) {
    let (name, administrator) = new_schema().await;
    administrator.batch_execute(&format!("create database {name}")).await.expect("a database");
    let client = connect(config(server().port()).dbname(&name)).await;
    (name, client)
}

/// The rows of a simple query as text.
pub async fn rows(client: &Client, sql: &str) -> Result<Vec<Vec<Option<String>>>, tokio_postgres::Error> {
    let messages = client.simple_query(sql).await?;
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|index| row.get(index).map(str::to_owned)).collect())
        }
        _ => None,
    };
    Ok(messages.into_iter().filter_map(row).collect())
}

/// The first value of a simple query as text, empty for a null.
pub async fn value(client: &Client, sql: &str) -> String {
    let rows = rows(client, sql).await.unwrap_or_else(|error| panic!("{sql}: {}", describe(&error)));
    rows.first()
        .and_then(|row| row.first().cloned())
        .unwrap_or_else(|| panic!("{sql}: no row"))
        .unwrap_or_default()
}

/// The SQLSTATE of an error that the server or the gateway has sent.
pub fn sqlstate(error: &tokio_postgres::Error) -> &str {
    error.code().map_or("", |code| code.code())
}

/// The full text of an error, for messages.
pub fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{error:?}"),
        None => format!("{error:?}"),
    }
}

/// Waits until another session waits for a lock of this client's transaction. Other tests use the same server, so it is not
/// enough that some session waits for a lock.
pub async fn until_it_blocks(holder: &Client) {
    let waits = "select exists (select from pg_locks
        where not granted and pg_backend_pid() = any (pg_blocking_pids(pid)))";
    until("another session waits for this client's lock", async || value(holder, waits).await == "t").await;
}

/// Repeats `look` until it is true: for conditions without a signal, such as a row of pg_stat_activity.
pub async fn until<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    let deadline = Instant::now() + PATIENCE;
    while !look().await {
        assert!(Instant::now() < deadline, "timed out while waiting until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await; // the condition has no signal
    }
}
