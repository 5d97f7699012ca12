//! SHOW KEYS names the hottest rows and who holds a blocked one. Values are shown to administrators only.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use hotrow_core::limits;
use hotrow_testkit::{Gateway, config, connect, new_database, server, until, value};
use tokio_postgres::Client;

use crate::Stage;

const UPDATE: &str = "update t set n = n + 1 where id = 1";

async fn keys(console: &Client) -> Vec<HashMap<String, String>> {
    let rows = console.query("show keys", &[]).await.unwrap();
    let named = |row: &tokio_postgres::Row| {
        let columns = row.columns().iter().enumerate();
        let text = |index| row.get::<_, Option<String>>(index).unwrap_or_default();
        columns.map(|(index, column)| (column.name().to_owned(), text(index))).collect()
    };
    rows.iter().map(named).collect()
}

/// A reader of the console.
async fn reader(stage: &Stage) -> Client {
    connect(stage.gateway.config().user("ann").dbname("hotrow")).await
}

#[tokio::test]
async fn readers_see_no_values_of_settings_and_no_constants_in_reasons() {
    let stage = Stage::new("", &[]).await;
    let (console, reader) = (stage.console().await, reader(&stage).await);
    let client = connect(stage.gateway.config().options("-c my.tenant=secret")).await;
    client.batch_execute("set search_path to secret, public").await.unwrap();
    client.batch_execute("select 1").await.unwrap();
    client.batch_execute("select n from t where id = 1 'secret'").await.unwrap_err();
    let all = async |console: &Client, topic: &str| -> String {
        let rows = hotrow_testkit::rows(console, &format!("show {topic}")).await.unwrap();
        format!("{rows:?}")
    };
    assert!(all(&console, "pool_settings").await.contains("my.tenant=secret search_path=secret, public"));
    assert!(all(&reader, "pool_settings").await.contains("options=? search_path=?"));
    for topic in ["pool_settings", "statements", "clients", "pools", "units", "lanes", "stats", "servers"] {
        let shown = all(&reader, topic).await;
        assert!(!shown.contains("secret"), "{topic}: {shown}");
    }
}

#[tokio::test]
async fn the_hottest_key_comes_first_with_its_rates_and_times() {
    let stage = Stage::new("lanes = 1\n", &[]).await;
    let (console, client) = (stage.console().await, stage.client().await);
    client.simple_query("update t set n = n + 1 where id = 2").await.unwrap();
    assert!(keys(&console).await.is_empty(), "one unit makes no hot key");
    // A Parse is passed through, and statements that follow it at once are passed through on its connection.
    let update = client.prepare(UPDATE).await.unwrap();
    let rows = futures_util::future::join_all((0..20).map(|_| client.execute(&update, &[]))).await;
    assert!(rows.into_iter().all(|row| row.unwrap() == 1));
    for _ in 0..2 {
        client.simple_query("update t set n = n + 1 where id = 2").await.unwrap();
        client.query("select n from t where id = $1", &[&1_i32]).await.unwrap();
    }
    let seen = keys(&console).await;
    assert_eq!(seen.len(), 3, "{seen:#?}");
    let (hot, other) = (&seen[0], seen.iter().find(|key| key["key"] == "id = 2").unwrap());
    let expected =
        [("database", "postgres"), ("kind", "write"), ("key", "id = 1"), ("units", "20"), ("parked", "0")];
    for (column, value) in expected {
        assert_eq!(hot[column], value, "{column}: {hot:?}");
    }
    assert!(hot["table"].ends_with(".t"), "{hot:?}");
    let number = |key: &HashMap<String, String>, column: &str| key[column].parse::<f64>().unwrap();
    assert_eq!(number(hot, "commits") + number(hot, "commits_saved"), 20.0);
    assert!(number(hot, "units_per_second") > number(other, "units_per_second"), "{seen:#?}");
    assert!(number(hot, "p50_milliseconds") <= number(hot, "p99_milliseconds"), "{hot:?}");
    assert_eq!(other["units"], "3");
    let read = seen.iter().find(|key| key["kind"] == "read").unwrap();
    assert_eq!((read["key"].as_str(), read["commits_saved"].as_str()), ("id = 1", "0"), "{read:?}");

    let reader = reader(&stage).await;
    let hidden = keys(&reader).await;
    assert_eq!(hidden[0]["key"], "id = ?", "readers see no values");
    let labels = |keys: &[HashMap<String, String>]| -> Vec<(String, String)> {
        keys.iter().map(|key| (key["kind"].clone(), key["label"].clone())).collect()
    };
    assert_eq!(labels(&hidden), labels(&seen), "they see the labels that administrators see");
    assert!(hot["label"].len() == 6 && hot["label"] != other["label"], "{seen:#?}");
    assert_eq!(hot["label"], read["label"], "one row has one label");
}

#[tokio::test]
async fn a_blocked_key_comes_first_with_the_backend_that_holds_its_row() {
    // The unit that waits for the lock has the only connection that sessions may hold.
    let stage = Stage::new("lanes = 1\nheld_connections_max = 1\nlane_lock_timeout_ms = 2000\n", &[]).await;
    let (console, reader) = (stage.console().await, reader(&stage).await);
    let clients = [stage.client().await, stage.client().await, stage.client().await];
    for _ in 0..3 {
        clients[0].simple_query(UPDATE).await.unwrap();
    }
    let blocker = value(&stage.direct, "select pg_backend_pid()").await;
    stage.direct.batch_execute("begin; update t set n = 4711 where id = 2").await.unwrap();
    let waiting = clients.map(|client| {
        tokio::spawn(async move { client.simple_query("update t set n = n + 1 where id = 2").await.unwrap() })
    });
    // If the server does not answer in time, no blockers are shown.
    let blocked = async |console: &Client| {
        let seen = RefCell::new(None);
        until("two units are parked, and the server says who holds the row", async || {
            let key = keys(console).await.swap_remove(0);
            let is_shown = key["blockers"].starts_with(&format!("pid {blocker}, idle in transaction, "));
            let is_so = key["parked"] == "2" && is_shown;
            seen.replace(Some(key));
            is_so
        })
        .await;
        seen.into_inner().unwrap()
    };
    let (shown, hidden) = (blocked(&console).await, blocked(&reader).await);
    assert_eq!((shown["key"].as_str(), hidden["key"].as_str()), ("id = 2", "id = ?"));
    assert!(shown["blockers"].ends_with(": begin; update t set n = 4711 where id = 2"), "{shown:?}");
    assert!(hidden["blockers"].ends_with(": begin; update t set n = ? where id = ?"), "{hidden:?}");
    stage.direct.batch_execute("rollback").await.unwrap();
    for update in waiting {
        update.await.unwrap();
    }
    assert!(keys(&console).await.iter().all(|key| key["blockers"].is_empty() && key["parked"] == "0"));
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_server_that_does_not_answer_holds_up_the_view_once_and_not_for_each_pool() {
    let (stage, server) = Stage::alone("lanes = 1\nlane_lock_timeout_ms = 100\n").await;
    let console = stage.console().await;
    let mut clients = Vec::new();
    for pool in 0..5 {
        let client = connect(stage.gateway.config().options(format!("-c my.pool={pool}"))).await;
        for _ in 0..3 {
            client.simple_query(UPDATE).await.unwrap();
        }
        clients.push(client);
    }
    stage.direct.batch_execute("begin; update t set n = 1 where id = 1").await.unwrap();
    let waiting: Vec<_> = clients
        .into_iter()
        .map(|client| tokio::spawn(async move { client.simple_query(UPDATE).await.unwrap() }))
        .collect();
    // A lane gives way after 100 ms, so what waits for longer are the units that have left their lanes.
    let waiting_units = "select count(*) from pg_locks where not granted and \
        waitstart < clock_timestamp() - interval '300 ms'";
    until("a unit of each pool waits for the row", async || value(&stage.direct, waiting_units).await == "5")
        .await;
    until("the view shows the holder", async || {
        keys(&console).await[0]["blockers"].contains("idle in transaction")
    })
    .await;
    server.freeze().unwrap();
    tokio::time::sleep(Duration::from_millis(limits::SHOWN_BLOCKERS_AGE_MS)).await; // the last answer is too old to be shown
    let asked = Instant::now();
    let shown = keys(&console).await;
    assert_eq!((shown[0]["key"].as_str(), shown[0]["blockers"].as_str()), ("id = 1", ""));
    assert!(
        asked.elapsed() < Duration::from_millis(2 * limits::SHOWN_BLOCKERS_WAIT_MS),
        "{:?}",
        asked.elapsed()
    );
    server.thaw().unwrap();
    stage.direct.batch_execute("rollback").await.unwrap();
    for update in waiting {
        update.await.unwrap();
    }
}

#[tokio::test]
async fn readers_of_blocked_keys_share_one_connection_to_the_server() {
    let (database, direct) = new_database().await;
    direct
        .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0)")
        .await
        .unwrap();
    let gateway = Gateway::in_front_of(&server().url(), &["--lanes", "1", "--lane-lock-timeout-ms", "2000"]);
    let console = connect(gateway.config().dbname("hotrow")).await;
    let clients = [0, 1, 2].map(async |_| connect(gateway.config().dbname(&database)).await);
    let clients = futures_util::future::join_all(clients).await;
    for _ in 0..3 {
        clients[0].simple_query(UPDATE).await.unwrap();
    }
    direct.batch_execute("begin; update t set n = 4711 where id = 1").await.unwrap();
    let waiting: Vec<_> = clients
        .into_iter()
        .map(|client| tokio::spawn(async move { client.simple_query(UPDATE).await.unwrap() }))
        .collect();
    until("the server says who holds the row", || async {
        keys(&console).await.first().is_some_and(|key| !key["blockers"].is_empty())
    })
    .await;
    let observer = connect(config(server().port()).dbname(&database)).await;
    // The statistics of a database count its sessions, also those that have ended.
    let sessions = async || -> u64 {
        until("no question is under way", || async {
            let asking = "select count(*) from pg_stat_activity
                where datname = current_database() and application_name = 'hotrow console'";
            value(&observer, asking).await == "0"
        })
        .await;
        let sessions = "select sessions from pg_stat_database where datname = current_database()";
        value(&observer, sessions).await.parse().unwrap()
    };
    let (before, begun) = (sessions().await, Instant::now());
    let readers = (0..20).map(async |_| connect(gateway.config().user("ann").dbname("hotrow")).await);
    let readers = futures_util::future::join_all(readers).await;
    let looks = readers.iter().map(async |reader| {
        let mut answered = 0;
        for _ in 0..20 {
            let key = keys(reader).await.swap_remove(0);
            let blockers = &key["blockers"];
            // If the server does not answer in time, no blockers are shown.
            assert!(blockers.is_empty() || blockers.contains("idle in transaction"), "{key:?}");
            answered += usize::from(!blockers.is_empty());
        }
        answered
    });
    let answered = futures_util::future::join_all(looks).await;
    assert!(answered.iter().all(|answered| *answered > 0), "{answered:?} of 20 answers to each reader");
    let opened = sessions().await - before;
    assert!(opened <= begun.elapsed().as_secs() + 5, "{opened} connections for 400 looks");
    direct.batch_execute("rollback").await.unwrap();
    for update in waiting {
        update.await.unwrap();
    }
}

#[tokio::test]
async fn transactions_that_begin_with_one_row_are_counted_and_those_that_wait_for_it_shown() {
    let stage = Stage::new("", &[]).await;
    let console = stage.console().await;
    // A transaction waits in the gateway for as long as the server lets the others wait before it looks for a deadlock.
    let options = format!("-c search_path={} -c deadlock_timeout=1min", stage.schema);
    let client = async || connect(stage.gateway.config().options(&options)).await;
    let clients = [client().await, client().await, client().await];
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let transactions = clients.map(|client| {
        tokio::spawn(async move {
            client.batch_execute("begin").await.unwrap();
            client.simple_query("update t set n = n + 1 where id = 1").await.unwrap();
            client.batch_execute("commit").await.unwrap();
        })
    });
    until("two are at the server, and the third waits in the gateway", || async {
        keys(&console).await.iter().any(|key| {
            (key["kind"].as_str(), key["key"].as_str(), key["waiting"].as_str())
                == ("transaction", "id = 1", "1")
        })
    })
    .await;
    stage.direct.batch_execute("rollback").await.unwrap();
    for transaction in transactions {
        transaction.await.unwrap();
    }
    let seen = keys(&console).await;
    let counts = [seen[0]["units"].as_str(), &seen[0]["commits_saved"], &seen[0]["waiting"]];
    assert_eq!(counts, ["3", "0", "0"], "{seen:#?}");
}
