//! SHOW CLIENTS, LANES, UNITS, POOL_SETTINGS and STATEMENTS report the current state.

use std::collections::HashMap;

use hotrow_core::limits;
use hotrow_testkit::{connect, rows, until, value};
use tokio_postgres::Client;

use crate::Stage;

const UPDATE: &str = "update t set n = n + 1 where id = 1";

async fn table(console: &Client, what: &str) -> Vec<HashMap<String, String>> {
    let rows = console.query(&format!("show {what}"), &[]).await.unwrap();
    let named = |row: &tokio_postgres::Row| {
        let names = row.columns().iter().map(|column| column.name().to_owned());
        names
            .enumerate()
            .map(|(index, name)| (name, row.get::<_, Option<String>>(index).unwrap_or_default()))
            .collect()
    };
    rows.iter().map(named).collect()
}

/// The row of the client with this name in SHOW CLIENTS.
async fn client(console: &Client, name: &str) -> HashMap<String, String> {
    let clients = table(console, "clients").await;
    clients.into_iter().find(|client| client["application_name"] == name).expect("the client is connected")
}

async fn statement(console: &Client, like: &str) -> HashMap<String, String> {
    let statements = table(console, "statements").await;
    let found = statements.iter().find(|statement| statement["statement"].contains(like));
    found.unwrap_or_else(|| panic!("{like} is not among {statements:#?}")).clone()
}

async fn named(stage: &Stage, name: &str) -> Client {
    connect(stage.gateway.config_in(&stage.schema).application_name(name)).await
}

#[tokio::test]
async fn show_clients_reports_the_state_of_each_client() {
    let stage = Stage::new("", &[]).await;
    let (ann, console) = (named(&stage, "ann").await, stage.console().await);
    let seen = client(&console, "ann").await;
    assert_eq!((seen["state"].as_str(), seen["backend_pid"].as_str()), ("idle", ""));
    assert_eq!(
        (seen["user"].as_str(), seen["database"].as_str(), seen["tls"].as_str()),
        ("postgres", "postgres", "off")
    );
    assert!(seen["address"].starts_with("127.0.0.1:"), "{seen:?}");
    ann.simple_query(UPDATE).await.unwrap();
    ann.simple_query("select count(*) from t").await.unwrap();
    let seen = client(&console, "ann").await;
    assert_eq!((seen["units_packed"].as_str(), seen["units_passed"].as_str()), ("1", "1"));
    ann.simple_query("begin").await.unwrap();
    let seen = client(&console, "ann").await;
    assert_eq!((seen["state"].as_str(), seen["backend_pid"].as_str()), ("idle in transaction", ""));
    let backend = value(&ann, "select pg_backend_pid()").await;
    let seen = client(&console, "ann").await;
    assert_eq!((&seen["state"][..], &seen["backend_pid"]), ("idle in transaction", &backend));
    ann.simple_query("select 1 / 0").await.unwrap_err();
    // The driver gets the error before the server is ready again.
    until("the statement has ended", || async { client(&console, "ann").await["state"] != "active" }).await;
    assert_eq!(client(&console, "ann").await["state"], "idle in transaction (aborted)");
    ann.simple_query("rollback").await.unwrap();
    for (sql, state) in [
        ("create temporary table x (a int)", "pinned: temporary table"),
        ("set work_mem = '1MB'", "pinned: SET, temporary table"),
        ("discard all", "idle"),
        ("listen news", "idle, listens"),
        ("unlisten *", "idle"),
        ("select pg_advisory_lock(1)", "pinned: advisory lock"),
        ("discard all", "idle"),
        ("prepare p as select 1", "pinned: PREPARE"),
        ("deallocate all", "idle"),
        ("set app.tenant = 'x'", "pinned: custom setting"),
        ("reset app.tenant", "pinned: custom setting"),
        ("reset all", "idle"),
        ("begin; set local app.tenant = 'x'; commit", "idle"),
        ("select set_config('app.tenant', 'x', true)", "idle"),
        ("select set_config('app.tenant', 'x', false)", "pinned: custom setting"),
        ("discard all", "idle"),
        ("set role pg_monitor", "pinned: SET ROLE"),
        ("reset role", "idle"),
        ("discard all", "idle"),
        ("set application_name = 'bob'", "idle"),
        ("set local seed = 0.5", "pinned: seed"),
    ] {
        ann.simple_query(sql).await.unwrap();
        let name = if sql.contains("'bob'") || sql.contains("seed") { "bob" } else { "ann" };
        let seen = || async { client(&console, name).await["state"] == state };
        until(&format!("{state} after {sql}"), seen).await;
    }
    ann.simple_query("set hotrow.pack = off").await.unwrap();
    ann.simple_query(UPDATE).await.unwrap();
    assert_eq!(client(&console, "bob").await["state"], "pinned: seed, hotrow.pack is off");
    drop(ann);
    until("the client is gone", || async { table(&console, "clients").await.is_empty() }).await;
}

/// A client keeps its connection if its settings would need one pool too many.
#[tokio::test]
async fn show_clients_and_the_metrics_report_the_clients_for_whose_settings_there_is_no_pool() {
    let stage = Stage::new("", &[]).await;
    let console = stage.console().await;
    let mut clients = Vec::new();
    for number in 0..=limits::POOLS_WITH_SETTINGS_PER_ROLE_MAX {
        let client = named(&stage, &format!("client {number}")).await;
        client.simple_query(&format!("set work_mem = '{}MB'", 5 + number)).await.unwrap();
        clients.push(client);
    }
    let in_state = |all: &[HashMap<String, String>], state: &str| -> Vec<String> {
        all.iter()
            .filter(|client| client["state"] == state)
            .map(|client| client["application_name"].clone())
            .collect()
    };
    // Pools whose clients run no statement for long give their room to others: all clients run one.
    until("one client keeps its connection, and the others are idle", || async {
        let runs = clients.iter().map(|client| client.simple_query("select 1"));
        futures_util::future::join_all(runs).await.into_iter().for_each(|ran| drop(ran.unwrap()));
        let all = table(&console, "clients").await;
        (in_state(&all, "pinned: SET").len(), in_state(&all, "idle").len())
            == (1, limits::POOLS_WITH_SETTINGS_PER_ROLE_MAX)
    })
    .await;
    let pinned = "pinned_clients{reason=\"SET\"}";
    assert_eq!(stage.gateway.metric(pinned), 1);
    let last = in_state(&table(&console, "clients").await, "pinned: SET").remove(0);
    let number: usize = last.trim_start_matches("client ").parse().unwrap();
    clients[number].simple_query("reset work_mem").await.unwrap();
    until("the connection is given back", || async { client(&console, &last).await["state"] == "idle" })
        .await;
    assert_eq!(stage.gateway.metric(pinned), 0);
}

#[tokio::test]
async fn show_lanes_and_units_report_parked_units() {
    let stage = Stage::new("lanes = 1\nlane_lock_timeout_ms = 2000\n", &[]).await;
    let console = stage.console().await;
    let clients = futures_util::future::join_all(["a", "b", "c"].map(|name| named(&stage, name))).await;
    clients[0].simple_query(UPDATE).await.unwrap();
    let lane =
        |looks: Vec<HashMap<String, String>>| looks.into_iter().find(|lane| lane["kind"] == "write").unwrap();
    let seen = lane(table(&console, "lanes").await);
    assert_eq!((seen["connection"].as_str(), seen["units_done"].as_str()), ("open", "1"));
    assert_eq!((seen["batches_done"].as_str(), seen["units_per_batch"].as_str()), ("1", "1.0"));
    let backend =
        format!("select application_name from pg_stat_activity where pid = {}", seen["backend_pid"]);
    assert_eq!(value(&stage.direct, &backend).await, "hotrow lane 0");
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let waiting: Vec<_> = clients
        .into_iter()
        .map(|client| {
            tokio::spawn(
                async move { client.simple_query("update t set n = 1234 where id = 1").await.unwrap() },
            )
        })
        .collect();
    until("one unit has left its lane and two are parked", || async {
        lane(table(&console, "lanes").await)["parked_units"] == "2"
    })
    .await;
    let units = table(&console, "units").await;
    assert_eq!(units.len(), 2, "{units:#?}");
    for unit in &units {
        let hottest = &table(&console, "keys").await[0];
        assert_eq!(unit["state"], format!("parked behind key {}", hottest["label"]), "{hottest:?}");
        assert!(unit["table"].ends_with(".t"), "{unit:?}");
        assert_eq!(unit["statement"], "update t set n = $1 where id = $2", "no values");
    }
    until("the unit that left its lane runs on its session's connection", || async {
        let clients = table(&console, "clients").await;
        let count = |state: &str| clients.iter().filter(|client| client["state"] == state).count();
        (count("parked behind a locked row"), count("active")) == (2, 1)
    })
    .await;
    stage.direct.batch_execute("rollback").await.unwrap();
    for update in waiting {
        update.await.unwrap();
    }
    assert!(table(&console, "units").await.is_empty());
}

#[tokio::test]
async fn show_statements_reports_why_statements_were_not_packed() {
    let stage = Stage::new("lane_lock_timeout_ms = 2000\n", &[]).await;
    stage.direct.batch_execute("alter table t add check (n < 1000)").await.unwrap();
    let (console, client) = (stage.console().await, stage.client().await);
    for _ in 0..3 {
        client.simple_query(UPDATE).await.unwrap();
    }
    let seen = statement(&console, "update t set n = n + ").await;
    assert_eq!(
        (seen["verdict"].as_str(), seen["packed"].as_str(), seen["passed"].as_str()),
        ("packed", "3", "0")
    );
    assert!(seen["reason"].contains("bound by equality"), "{seen:?}");
    client.simple_query("begin").await.unwrap();
    client.simple_query(UPDATE).await.unwrap();
    client.simple_query("commit").await.unwrap();
    client.simple_query("create temporary table x (a int)").await.unwrap();
    client.simple_query(UPDATE).await.unwrap();
    client.simple_query("discard all").await.unwrap();
    client.batch_execute("set hotrow.pack = off").await.unwrap();
    client.simple_query(UPDATE).await.unwrap();
    client.batch_execute("set hotrow.pack = on").await.unwrap();
    let seen = statement(&console, "update t set n = n + ").await;
    for column in ["passed_in_own_transaction", "passed_session_pinned", "passed_switched_off"] {
        assert_eq!(seen[column], "1", "{column}: {seen:#?}");
    }
    assert_eq!(seen["passed"], "3");
    client.simple_query("select count(*) from t where n::text > 'geheim'").await.unwrap();
    let seen = statement(&console, "select count(*) from t where n::text >").await;
    assert_eq!((seen["verdict"].as_str(), seen["passed_not_packable"].as_str()), ("passed", "1"));
    assert!(!seen["statement"].contains("geheim"), "{seen:?}");
    assert!(seen["instead"].starts_with("nothing: a statement of this kind"), "{seen:?}");
    let explain = hotrow_testkit::hotrow()
        .args([
            "explain",
            "--upstream",
            &hotrow_testkit::server().url(),
            "select count(*) from pg_class where relpages > 0",
        ])
        .output()
        .unwrap();
    let explained = String::from_utf8_lossy(&explain.stdout).into_owned();
    assert!(explained.contains("reason"), "{explained}");
    stage.direct.batch_execute("begin; update t set n = n where id = 2").await.unwrap();
    let blocked =
        tokio::spawn(
            async move { client.simple_query("update t set n = n - 1 where id = 2").await.unwrap() },
        );
    until("the unit has left its lane", || async { stage.gateway.metric("blocked_units_total") == 1 }).await;
    stage.direct.batch_execute("rollback").await.unwrap();
    blocked.await.unwrap();
    let seen = statement(&console, "update t set n = n - ").await;
    assert_eq!(
        (seen["left_lane_for_lock"].as_str(), seen["given_back_by_lane"].as_str()),
        ("1", "1"),
        "{seen:#?}"
    );
    let client = stage.client().await;
    client.simple_query("update t set n = n + 5000 where id = 2").await.unwrap_err();
    let failed: Vec<_> =
        table(&console, "statements").await.into_iter().filter(|one| one["failed_in_lane"] == "1").collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    let passed: Vec<u64> =
        table(&console, "statements").await.iter().map(|one| one["passed"].parse().unwrap()).collect();
    assert!(passed.is_sorted_by(|one, other| one >= other), "{passed:?}");
}

#[tokio::test]
async fn prepared_texts_that_differ_in_constants_are_one_row_and_lose_their_credit_together() {
    let stage = Stage::new("", &[]).await;
    stage.direct.batch_execute("alter table t add check (n < 1000)").await.unwrap();
    let (console, client) = (stage.console().await, stage.client().await);
    client.execute("update t set n = 1 where id = 2", &[]).await.unwrap();
    for n in 5_000..5_020 {
        client.execute(&format!("update t set n = {n} where id = 2 -- {n}"), &[]).await.unwrap_err();
    }
    let rows = table(&console, "statements").await;
    let mut rows = rows.iter().filter(|row| row["statement"] == "update t set n = ? where id = ?");
    let row = rows.next().unwrap();
    assert!(rows.next().is_none(), "{row:?}");
    assert_eq!((row["runs"].as_str(), row["verdict"].as_str()), ("21", "passed"));
    assert!(row["reason"].starts_with("it fails too often in lanes"), "{row:?}");
    assert_ne!(row["passed_fails_too_often"], "0", "{row:?}");
}

#[tokio::test]
async fn show_statements_reports_statements_sent_with_others_and_of_a_pool_that_does_not_pack() {
    let stage = Stage::new("", &[]).await;
    let (console, client) = (stage.console().await, stage.client().await);
    let (one, other) =
        tokio::join!(client.execute("select count(*) from t", &[]), client.execute(UPDATE, &[]));
    one.unwrap();
    other.unwrap();
    client.batch_execute("set default_transaction_isolation = serializable").await.unwrap();
    client.execute(UPDATE, &[]).await.unwrap();
    client.batch_execute("discard all").await.unwrap();
    stage.reload("pack = false\n").await;
    client.batch_execute(UPDATE).await.unwrap();
    let seen = statement(&console, "update t set n = n + ").await;
    assert_eq!(seen["verdict"], "passed");
    assert!(seen["reason"].contains("switched off by the configuration"), "{seen:?}");
    let pools = table(&console, "pool_settings").await;
    assert_eq!(pools[0]["packs"], "no: packing is switched off by the configuration");
    assert_eq!(
        (pools[0]["clients"].as_str(), pools[0]["paused"].as_str(), pools[0]["lanes"].as_str()),
        ("1", "no", "4")
    );
    // The session was in a pool with its setting for a while.
    assert!(pools[1]["settings"].ends_with(" default_transaction_isolation=serializable"), "{pools:?}");
    assert_eq!(rows(&console, "show lanes").await.unwrap().len(), 2 * 8);
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn statements_that_ran_once_do_not_hide_those_that_run_often_and_the_totals_cover_all() {
    let stage = Stage::new("", &[]).await;
    let (client, console) = (stage.client().await, stage.console().await);
    for _ in 0..3 {
        client.simple_query(UPDATE).await.unwrap();
    }
    let others = limits::SHOWN_STATEMENTS_MAX + 5;
    for number in 0..others {
        client.simple_query(&format!("select count(*) as c{number} from t")).await.unwrap();
    }
    let shown = table(&console, "statements").await;
    assert_eq!(shown.len(), limits::SHOWN_STATEMENTS_MAX);
    assert!(shown[0]["statement"].starts_with("update t set n = n + "), "{:?}", shown[0]);
    assert_eq!((shown[0]["runs"].as_str(), shown[0]["packed"].as_str()), ("3", "3"));
    let [totals] = table(&console, "statement_totals").await.try_into().unwrap();
    let number = |column: &str| totals[column].parse::<usize>().unwrap();
    assert_eq!((number("shapes"), number("listed")), (others + 1, limits::SHOWN_STATEMENTS_MAX));
    assert_eq!((number("runs"), number("packed")), (others + 3, 3));
    assert_eq!((number("passed"), number("passed_not_packable")), (others, others));
}
