//! The words and columns that programs for PgBouncer read: the queries of the Prometheus exporter, and what it needs of
//! their answers.

use std::collections::{HashMap, HashSet};

use tokio_postgres::{Client, SimpleQueryMessage};

use crate::Stage;

/// The exporter's queries, and the columns that it reads, numbers and names.
const READ: [(&str, &[&str], &[&str]); 3] = [
    (
        "SHOW databases;",
        &["name", "host", "port", "database", "force_user", "pool_mode"],
        &["pool_size", "reserve_pool", "max_connections", "current_connections", "paused", "disabled"],
    ),
    (
        "SHOW stats_totals;",
        &["database"],
        &[
            "query_count",
            "query_time",
            "bytes_received",
            "bytes_sent",
            "wait_time",
            "xact_count",
            "xact_time",
        ],
    ),
    (
        "SHOW pools;",
        &["database", "user"],
        &[
            "cl_active",
            "cl_active_cancel_req",
            "cl_waiting",
            "cl_waiting_cancel_req",
            "sv_active",
            "sv_active_cancel",
            "sv_being_canceled",
            "sv_idle",
            "sv_used",
            "sv_tested",
            "sv_login",
            "maxwait",
        ],
    ),
];

type Row = HashMap<String, Option<String>>;

/// The columns and the rows of an answer, by the simple protocol as the exporter uses it.
async fn answer(console: &Client, query: &str) -> (Vec<String>, Vec<Row>) {
    let (mut columns, mut rows) = (Vec::new(), Vec::new());
    for message in console.simple_query(query).await.unwrap() {
        match message {
            SimpleQueryMessage::RowDescription(described) => {
                columns = described.iter().map(|column| column.name().to_owned()).collect();
            }
            SimpleQueryMessage::Row(row) => {
                let value = |index| row.get(index).map(str::to_owned);
                let named = columns
                    .iter()
                    .enumerate()
                    .map(|(index, name): (_, &String)| (name.clone(), value(index)));
                rows.push(named.collect());
            }
            _ => {}
        }
    }
    (columns, rows)
}

fn number(row: &Row, column: &str) -> f64 {
    let value = row.get(column).unwrap_or_else(|| panic!("no {column} in {row:?}"));
    value.as_ref().and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{column} is {value:?}"))
}

#[tokio::test]
async fn the_prometheus_exporter_reads_every_column_that_it_knows() {
    let stage = Stage::new("", &[]).await;
    let (console, client) = (stage.console().await, stage.client().await);
    client.simple_query("update t set n = n + 1 where id = 1").await.unwrap();
    client.batch_execute("begin; select count(*) from t; commit").await.unwrap();
    for (query, texts, numbers) in READ {
        let (columns, rows) = answer(&console, query).await;
        assert!(!rows.is_empty(), "{query}");
        for column in texts {
            assert!(columns.iter().any(|name| name == column), "{query}: no {column} in {columns:?}");
        }
        for row in &rows {
            numbers.iter().for_each(|column| assert!(number(row, column) >= 0.0));
        }
        // Two rows with the same labels are an error of the whole page.
        let labels: HashSet<Vec<_>> =
            rows.iter().map(|row| texts.iter().map(|column| row[*column].clone()).collect()).collect();
        assert_eq!(labels.len(), rows.len(), "{query}");
    }
    let (columns, rows) = answer(&console, "SHOW LISTS;").await;
    assert_eq!(columns, ["list", "items"]);
    let lists: HashMap<_, _> =
        rows.iter().map(|row| (row["list"].clone().unwrap(), number(row, "items"))).collect();
    for list in [
        "databases",
        "users",
        "pools",
        "free_clients",
        "login_clients",
        "dns_names",
        "dns_zones",
        "dns_queries",
    ] {
        assert!(lists.contains_key(list), "{list} is not in {lists:?}");
    }
    let counts = ["used_clients", "login_clients", "databases"].map(|list| lists[list]);
    assert_eq!(counts, [2.0, 0.0, 1.0], "the client and the console: {lists:?}");
    assert!(lists["free_servers"] + lists["used_servers"] >= 1.0, "{lists:?}");
    let (columns, rows) = answer(&console, "SHOW CONFIG;").await;
    assert_eq!(columns, ["key", "value", "default", "changeable"], "it accepts three or four columns");
    let clients_max = rows.iter().find(|row| row["key"].as_deref() == Some("max_client_conn")).unwrap();
    assert!(number(clients_max, "value") > 0.0);
    assert_eq!(answer(&console, "SHOW VERSION;").await.0, ["version"]);
}

#[tokio::test]
async fn the_exporter_counts_clients_by_database_user_and_state() {
    let stage = Stage::new("", &[]).await;
    let (console, clients) = (stage.console().await, [stage.client().await, stage.client().await]);
    let pinned = stage.client().await;
    pinned.batch_execute("create temporary table draft (id int)").await.unwrap();
    // The answer can overtake the note that a session is idle.
    hotrow_testkit::until("the clients have been counted", async || {
        let (_, rows) = answer(&console, "SHOW clients;").await;
        let mut counts: HashMap<[&str; 3], usize> = HashMap::new();
        for row in &rows {
            let labels = ["database", "user", "state"].map(|column| row[column].as_deref().unwrap());
            *counts.entry(labels).or_default() += 1;
        }
        let idle = counts.get(&["postgres", "postgres", "idle"]) == Some(&clients.len());
        idle && counts.get(&["postgres", "postgres", "pinned: temporary table"]) == Some(&1)
    })
    .await;
}

#[tokio::test]
async fn totals_count_units_transactions_and_bytes_also_of_clients_that_have_left() {
    let stage = Stage::new("", &[]).await;
    let console = stage.console().await;
    let totals = || async { answer(&console, "show stats_totals").await.1.swap_remove(0) };
    for round in 1..3 {
        let client = stage.client().await;
        for _ in 0..5 {
            client.simple_query("update t set n = n + 1 where id = 1").await.unwrap();
        }
        client.batch_execute("begin").await.unwrap();
        client.simple_query("select count(*) from t").await.unwrap();
        client.batch_execute("commit").await.unwrap();
        drop(client);
        hotrow_testkit::until("the client has left", || async {
            answer(&console, "show clients").await.1.is_empty()
        })
        .await;
        let now = totals().await;
        // BEGIN is answered here, and goes to the server with the first statement.
        assert_eq!(number(&now, "xact_count"), f64::from(round) * 6.0, "{now:?}");
        assert_eq!(number(&now, "query_count"), f64::from(round) * 7.0, "{now:?}");
        assert!(number(&now, "bytes_received") > f64::from(round) * 200.0, "{now:?}");
        assert!(number(&now, "bytes_sent") > f64::from(round) * 200.0, "{now:?}");
        assert!(number(&now, "query_time") > 0.0, "{now:?}");
    }
    let (columns, rows) = answer(&console, "show stats").await;
    assert_eq!(columns[..3], ["database", "total_xact_count", "total_query_count"]);
    assert_eq!(number(&rows[0], "total_xact_count"), 12.0);
    assert!(number(&rows[0], "avg_query_time") > 0.0);
    assert_eq!(answer(&console, "show stats_averages").await.1.len(), 1);
}

#[tokio::test]
async fn numbers_have_a_numeric_type_in_both_formats() {
    let stage = Stage::new("", &[]).await;
    let (console, client) = (stage.console().await, stage.client().await);
    client.batch_execute("begin; select count(*) from t").await.unwrap();
    let rows = console.query("show pools", &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, i64>("cl_active"), 1);
    assert_eq!(rows[0].get::<_, i64>("sv_active"), 1);
    assert_eq!(rows[0].get::<_, &str>("pool_mode"), "transaction");
    let servers = console.query("show servers", &[]).await.unwrap();
    let held = servers.iter().find(|row| row.get::<_, &str>("used_by") == "session").unwrap();
    let backend = hotrow_testkit::value(&client, "select pg_backend_pid()").await;
    assert_eq!((held.get::<_, &str>("remote_pid"), held.get::<_, &str>("state")), (&*backend, "active"));
    let clients = console.query("show clients", &[]).await.unwrap();
    assert_eq!(held.get::<_, &str>("link"), clients[0].get::<_, &str>("process_id"));
}
