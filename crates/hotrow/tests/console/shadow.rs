//! Shadow mode: everything is passed through, no lane is opened, and the console, the metrics and the doctor show what would have
//! been packed.

use std::collections::HashMap;

use hotrow_testkit::{connect, rows, sqlstate, until, value};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::Stage;

const UPDATE: &str = "update t set n = n + 1 where id = 1";
const SHADOW: &str = "pack = \"shadow\"\n";

/// The row of SHOW SHADOW about the tests' user; none before the first statement.
async fn shadow(stage: &Stage) -> Option<HashMap<String, String>> {
    let messages = stage.console().await.simple_query("show shadow").await.unwrap();
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let columns = row.columns().iter().enumerate();
            Some(columns.map(|(n, of)| (of.name().to_owned(), row.get(n).unwrap_or("").to_owned())).collect())
        }
        _ => None,
    })
}

async fn number(stage: &Stage, column: &str) -> f64 {
    shadow(stage).await.map_or(0.0, |row| row[column].parse().unwrap())
}

/// Runs a statement until the gateway knows that it would pack it. In shadow mode no client waits for the verdict.
async fn judged(stage: &Stage, client: &Client, statement: &str) {
    let before = number(stage, "would_pack").await;
    until("the statement is judged", async || {
        client.simple_query(statement).await.unwrap();
        number(stage, "would_pack").await > before
    })
    .await;
}

/// Clients that update one row at once: the row is locked until all of them wait.
async fn meet(stage: &Stage, clients: Vec<Client>, name: &str) {
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let count = clients.len().to_string();
    let units: Vec<_> = clients
        .into_iter()
        .map(|client| tokio::spawn(async move { client.simple_query(UPDATE).await.unwrap() }))
        .collect();
    let waiting = format!(
        "select count(*) from pg_stat_activity, pg_stat_clear_snapshot() where wait_event_type = 'Lock' and application_name = '{name}'"
    );
    until("all clients wait", async || value(&stage.direct, &waiting).await == count).await;
    stage.direct.batch_execute("rollback").await.unwrap();
    for unit in units {
        unit.await.unwrap();
    }
}

async fn named(stage: &Stage, name: &str) -> Client {
    connect(stage.gateway.config_in(&stage.schema).application_name(name)).await
}

#[tokio::test]
async fn units_that_meet_are_counted_and_no_lane_is_opened() {
    let stage = Stage::new(SHADOW, &[]).await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(named(&stage, &stage.schema).await);
    }
    assert_eq!(value(&clients[0], "show hotrow.pack").await, "shadow");
    judged(&stage, &clients[0], UPDATE).await;
    let before = shadow(&stage).await.unwrap();
    let n: u64 = value(&stage.direct, "select n from t where id = 1").await.parse().unwrap();
    meet(&stage, clients, &stage.schema).await;

    let after = shadow(&stage).await.unwrap();
    let more = |column: &str| {
        let of = |row: &HashMap<String, String>| row[column].parse::<f64>().unwrap();
        of(&after) - of(&before)
    };
    assert_eq!((more("statements"), more("would_pack"), more("units")), (5.0, 5.0, 5.0), "{after:?}");
    assert_eq!(more("met"), 4.0, "each but the first one: {after:?}");
    // One unit in the first batch, and the other four in the second one. Those before were alone.
    let alone: f64 = before["units"].parse().unwrap();
    let expected = (alone + 5.0) / (alone + 2.0);
    let units_per_commit: f64 = after["units_per_commit"].parse().unwrap();
    assert!((units_per_commit - expected).abs() < 0.06, "{expected}: {after:?}");
    assert_eq!(more("commits_saved"), 3.0, "{after:?}");

    let row = value(&stage.direct, "select n from t where id = 1").await;
    assert_eq!(row, (n + 5).to_string(), "each update ran once");
    for none in ["packed_units_total", "batches_total", "lanes_connected", "queued_units"] {
        assert_eq!(stage.gateway.metric(none), 0, "{none}");
    }
    let labels = "{database=\"postgres\",user=\"postgres\"}";
    assert_eq!(stage.gateway.metric(&format!("shadow_met_units_total{labels}")), 4);
    let units: u64 = after["units"].parse().unwrap();
    assert_eq!(stage.gateway.metric(&format!("shadow_units_total{labels}")), units);
    assert_eq!(stage.gateway.metric(&format!("shadow_batched_units_total{labels}")), units);
    assert_eq!(stage.gateway.metric(&format!("shadow_batches_total{labels}")), units - 3);
    assert_eq!(stage.gateway.metric(&format!("shadow_would_pack_statements_total{labels}")), units);
}

#[tokio::test]
async fn a_unit_of_several_statements_counts_as_it_would_be_packed() {
    let stage = Stage::new(SHADOW, &[]).await;
    let client = stage.client().await;
    client.simple_query(UPDATE).await.unwrap();
    assert_eq!(
        number(&stage, "would_pack").await,
        0.0,
        "the client does not wait for a verdict, as with packing on"
    );
    judged(&stage, &client, UPDATE).await;
    let statement = client.prepare("update t set n = n + $1 where id = $2").await.unwrap();
    until("the statement is judged", async || {
        let before = number(&stage, "units").await;
        client.execute(&statement, &[&1, &2]).await.unwrap();
        number(&stage, "units").await > before
    })
    .await;
    let mut seen = (number(&stage, "units").await, number(&stage, "would_pack").await);
    for (units, statements, text) in [
        (1.0, 1.0, UPDATE),
        (1.0, 2.0, "update t set n = n + 1 where id = 1; update t set n = n + 1 where id = 1"),
        (1.0, 1.0, "begin; update t set n = n + 1 where id = 1; commit"),
        (0.0, 0.0, "update t set n = n + 1 where id = 1; select pg_backend_pid()"),
        (0.0, 0.0, "select pg_backend_pid()"),
    ] {
        client.simple_query(text).await.unwrap();
        let now = (number(&stage, "units").await, number(&stage, "would_pack").await);
        assert_eq!((now.0 - seen.0, now.1 - seen.1), (units, statements), "{text}");
        seen = now;
    }
    // In a transaction whose statements come one by one, nothing would be packed, and the remedy says so.
    client.simple_query("begin").await.unwrap();
    for _ in 0..20 {
        client.simple_query(UPDATE).await.unwrap();
    }
    client.simple_query("commit").await.unwrap();
    let row = shadow(&stage).await.unwrap();
    assert_eq!(row["units"].parse::<f64>().unwrap(), seen.0);
    assert!(row["blocker"].starts_with("update t set n = n + "), "{row:?}");
    assert_eq!(row["blocker_runs"], "20", "{row:?}");
    assert!(row["reason"].contains("one by one") && row["instead"].contains("COMMIT together"), "{row:?}");
}

#[tokio::test]
async fn shadow_mode_begins_and_ends_with_a_reload_or_for_one_session_or_user() {
    let stage = Stage::new("", &[]).await;
    let client = stage.client().await;
    assert!(stage.packs(&client).await);
    assert!(shadow(&stage).await.is_none());
    stage.reload(SHADOW).await;
    assert!(!stage.packs(&client).await);
    assert_eq!(value(&client, "show hotrow.pack").await, "shadow");
    until("it is counted", async || {
        assert!(!stage.packs(&client).await);
        number(&stage, "would_pack").await > 0.0
    })
    .await;
    client.batch_execute("set hotrow.pack = off").await.unwrap();
    let before = number(&stage, "statements").await;
    assert!(!stage.packs(&client).await);
    assert_eq!(number(&stage, "statements").await, before, "a session that has switched packing off");
    client.batch_execute("reset hotrow.pack").await.unwrap();

    stage.reload("[[pool]]\nuser = \"postgres\"\npack = \"shadow\"\n").await;
    assert_eq!(value(&client, "show hotrow.pack").await, "shadow");
    assert!(!stage.packs(&client).await);
    stage.reload("").await;
    assert!(stage.packs(&client).await);
    client.batch_execute("set hotrow.pack = shadow").await.unwrap();
    let before = number(&stage, "would_pack").await;
    assert!(!stage.packs(&client).await);
    assert_eq!(number(&stage, "would_pack").await, before + 1.0);
    let error = client.batch_execute("set hotrow.pack = shade").await.unwrap_err();
    assert_eq!(sqlstate(&error), "22023");
    assert_eq!(error.as_db_error().unwrap().hint(), Some("Available values: on, off, shadow, deferred."));
    stage.reload("pack = false\n").await;
    assert_eq!(value(&client, "show hotrow.pack").await, "off", "the least of both counts");
}

/// The switch for one table shows what would be left.
#[tokio::test]
async fn a_table_that_is_kept_out_is_in_the_way() {
    let stage = Stage::new(SHADOW, &[]).await;
    let client = stage.client().await;
    judged(&stage, &client, UPDATE).await;
    stage.reload(&format!("{SHADOW}unpacked_tables = \"t\"\n")).await;
    until("the statement is judged again", async || {
        client.simple_query(UPDATE).await.unwrap();
        shadow(&stage).await.unwrap()["reason"].contains("unpacked_tables names its table")
    })
    .await;
    let before = number(&stage, "would_pack").await;
    client.simple_query(UPDATE).await.unwrap();
    assert_eq!(number(&stage, "would_pack").await, before);
}

#[tokio::test]
async fn the_doctor_prints_a_verdict_of_five_lines() {
    let stage = Stage::new("", &[]).await;
    let gateway = format!("postgres://postgres@127.0.0.1:{}/postgres", stage.gateway.port());
    let doctor = || {
        let output = hotrow_testkit::hotrow().args(["doctor", "--shadow", &gateway]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(doctor().starts_with("No statement has run in shadow mode"), "{}", doctor());
    stage.reload(SHADOW).await;
    let client = stage.client().await;
    judged(&stage, &client, UPDATE).await;
    client.simple_query("update t set n = n + 1 where n < 0").await.unwrap();
    let text = doctor();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(
        lines[0].contains("database postgres, user postgres") && lines[0].ends_with("would be packed"),
        "{text}"
    );
    assert!(
        lines[3].contains("update t set n = n + ? where n < ?") || lines[3].contains("where n < $"),
        "{text}"
    );
    assert!(lines[4].contains("a verdict needs 1000 statements"), "{text}");
}

/// Units share commits in the estimate, as they do with packing on. How many depends on the other load of the machine, which
/// differs between the two runs.
#[tokio::test]
async fn units_share_commits_in_the_estimate_and_in_a_packed_run() {
    const CLIENTS: usize = 12;
    const UNITS: usize = 60;
    let stage = Stage::new(SHADOW, &[]).await;
    let run = async || {
        let mut tasks = Vec::new();
        for _ in 0..CLIENTS {
            let client = stage.client().await;
            tasks.push(tokio::spawn(async move {
                for _ in 0..UNITS {
                    client.simple_query(UPDATE).await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    };
    judged(&stage, &stage.client().await, UPDATE).await;
    run().await;
    let estimate = number(&stage, "units_per_commit").await;
    stage.reload("").await;
    run().await;
    let packed = stage.gateway.metric("packed_units_total") as f64;
    let real = packed / stage.gateway.metric("batches_total") as f64;
    assert!(packed >= (CLIENTS * UNITS / 2) as f64, "{packed} units were packed");
    println!("estimate {estimate}, real {real:.1}");
    let shares = |units: f64| (1.2..=CLIENTS as f64).contains(&units);
    assert!(shares(estimate) && shares(real), "estimate {estimate}, real {real:.1}");
    let lanes = rows(&stage.console().await, "show lanes").await.unwrap();
    assert!(!lanes.is_empty());
}
