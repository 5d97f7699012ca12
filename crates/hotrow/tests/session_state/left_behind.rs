//! What a statement leaves behind in its session: the session keeps its connection, and packs again when it has cleaned
//! up.

use crate::Stage;
use crate::support::raw::{Raw, query, tags};
use crate::support::{rows, sqlstate, until, value};

/// What is said, what is there then, and what takes it away.
const LEFT_BEHIND: &[(&str, &str, &str, &str)] = &[
    ("set work_mem = '5MB'", "show work_mem", "5MB", "reset all"),
    ("set time zone 'Asia/Tokyo'", "show timezone", "Asia/Tokyo", "discard all"),
    (
        "set session characteristics as transaction isolation level serializable",
        "show transaction_isolation",
        "serializable",
        "reset all",
    ),
    ("select set_config('work_mem', '6MB', false)", "show work_mem", "6MB", "discard all"),
    ("set role pg_monitor", "select current_user", "pg_monitor", "discard all"),
    ("set session authorization pg_monitor", "select session_user", "pg_monitor", "discard all"),
    ("create temporary table left_behind as select 4 as n", "select n from left_behind", "4", "discard temp"),
    ("create table pg_temp.left_behind as select 4 as n", "select n from left_behind", "4", "discard all"),
    ("select 4 as n into temporary left_behind", "select n from left_behind", "4", "discard all"),
    (
        "select pg_advisory_lock(11)",
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
        "1",
        "discard all",
    ),
    ("select pg_try_advisory_lock(11)", "select pg_advisory_unlock(11)", "t", "discard all"),
    ("prepare left_behind as select 8", "execute left_behind", "8", "discard all"),
    (
        "begin; declare left_behind cursor with hold for select generate_series(1, 100); commit",
        "fetch absolute 9 left_behind",
        "9",
        "close all",
    ),
    ("prepare left_behind as select 8", "select count(*) from pg_prepared_statements", "1", "deallocate all"),
    ("listen left_behind", "select * from pg_listening_channels()", "left_behind", "unlisten *"),
    ("select sneaky()", "show work_mem", "7MB", "discard all"),
    ("do $$ begin perform sneaky(); end $$", "show work_mem", "7MB", "discard all"),
];

#[tokio::test]
async fn it_stays_until_it_is_cleared() {
    let stage = Stage::new(&[]).await;
    let sneaky = "create function sneaky() returns text language sql as $$ select set_config('work_mem', '7MB', false) $$";
    stage.direct.batch_execute(sneaky).await.unwrap();
    let rights =
        format!("grant usage on schema {0} to pg_monitor; grant all on {0}.t to pg_monitor", stage.schema);
    stage.direct.batch_execute(&rights).await.unwrap();
    for (leaves, look, there, clears) in LEFT_BEHIND {
        let (client, other) = (stage.client().await, stage.client().await);
        let by_default = rows(&other, look).await.unwrap_or_default();
        assert!(stage.packs(&client).await, "before {leaves}");
        client.simple_query(leaves).await.unwrap_or_else(|error| panic!("{leaves}: {error:?}"));
        assert!(!stage.packs(&client).await, "after {leaves}");
        // Others take and give back connections in the meantime, and don't see it.
        assert_eq!(rows(&other, look).await.unwrap_or_default(), by_default, "another after {leaves}");
        assert_eq!(value(&client, look).await, *there, "{leaves}");
        assert_eq!(rows(&other, look).await.unwrap_or_default(), by_default, "another after {leaves}");
        assert!(stage.packs(&stage.client().await).await, "another after {leaves}");

        client.simple_query(clears).await.unwrap_or_else(|error| panic!("{clears}: {error:?}"));
        assert!(stage.packs(&client).await, "after {clears} behind {leaves}");
        for client in [&client, &other] {
            assert_eq!(
                rows(client, look).await.unwrap_or_default(),
                by_default,
                "after {clears} behind {leaves}"
            );
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_takes_it_along() {
    let stage = Stage::new(&[]).await;
    let count = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4712";
    let client = stage.client().await;
    client.batch_execute("set work_mem = '5MB'; select pg_advisory_lock(4712)").await.unwrap();
    assert_eq!(value(&stage.direct, count).await, "1");
    drop(client);
    until("the lock is gone", async || value(&stage.direct, count).await == "0").await;
    for _ in 0..3 {
        assert_ne!(value(&stage.client().await, "show work_mem").await, "5MB");
    }
}

#[tokio::test]
async fn discard_all_gives_the_connection_back() {
    let stage = Stage::new(&[]).await;
    let held = "select count(*) from pg_stat_activity where application_name = 'keeper'";
    let (client, other) = (stage.named("keeper").await, stage.named("other").await);
    client.batch_execute("set work_mem = '5MB'").await.unwrap();
    let backend = value(&client, "select pg_backend_pid()").await;
    assert_eq!(value(&client, "select pg_backend_pid()").await, backend);
    assert_ne!(value(&other, "select pg_backend_pid()").await, backend);
    assert_eq!(value(&stage.direct, held).await, "1");
    client.batch_execute("discard all").await.unwrap();
    let late = stage.named("late").await;
    assert_eq!(value(&late, "select pg_backend_pid()").await, backend, "it serves another");
    assert_ne!(value(&late, "show work_mem").await, "5MB");
    assert_eq!(value(&late, "show application_name").await, "late");
    assert_eq!(value(&stage.direct, held).await, "0", "the connection has the other's name now");
}

#[tokio::test]
async fn statements_prepared_by_the_driver_survive_deallocate_of_others() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let update = client.prepare("update t set n = n + $1 where id = 1 returning n").await.unwrap();
    client.batch_execute("prepare mine as select 1; deallocate mine").await.unwrap();
    assert_eq!(client.query_one(&update, &[&1]).await.unwrap().get::<_, i32>(0), 1);
    client.batch_execute("deallocate all").await.unwrap();
    let refused = client.query_one(&update, &[&1]).await.unwrap_err();
    assert_eq!(sqlstate(&refused), "26000", "DEALLOCATE ALL means the driver's too, as on the server");
}

#[tokio::test]
async fn packing_can_be_switched_off_and_on() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    assert_eq!(value(&client, "show hotrow.pack").await, "on");
    assert!(stage.packs(&client).await);
    for (off, on) in [
        ("set hotrow.pack = off", "set hotrow.pack = on"),
        ("set hotrow.pack to 'false'", "reset hotrow.pack"),
        ("SET SESSION hotrow.pack = 0;", "set hotrow.pack to default"),
    ] {
        client.simple_query(off).await.unwrap();
        assert_eq!(value(&client, "show hotrow.pack").await, "off", "{off}");
        assert!(!stage.packs(&client).await, "{off}");
        assert!(!stage.packs(&client).await, "{off}");
        let backend = value(&client, "select pg_backend_pid()").await;
        assert_eq!(value(&client, "select pg_backend_pid()").await, backend, "it has its own connection");
        client.simple_query(on).await.unwrap();
        assert_eq!(value(&client, "show hotrow.pack").await, "on", "{on}");
        assert!(stage.packs(&client).await, "{on}");
    }
    // By a driver that prepares everything.
    client.execute("set hotrow.pack = off", &[]).await.unwrap();
    assert!(!stage.packs(&client).await);
    assert!(stage.packs(&stage.client().await).await, "another's switch is its own");
}

#[tokio::test]
async fn what_is_cleared_in_a_pipeline_counts_when_it_has_happened() {
    let stage = Stage::new(&[]).await;
    let options = format!("-c search_path={}", stage.schema);
    let mut raw = Raw::log_in(stage.gateway.port(), &[("options", &options)]).await;
    let fails = "select 1 / 0";
    for (texts, answers, packs) in [
        // An error in front, whose ReadyForQuery is still on its way when the clearing command comes.
        (&["set work_mem = '5MB'", fails, "reset all"][..], "CZEZCZ", true),
        // One that fails clears nothing.
        (&["set work_mem = '5MB'", "begin", fails, "discard all", "rollback"], "CZCZEZEZCZ", false),
        // What comes behind it stays.
        (&["discard all", "set work_mem = '6MB'"], "CZCZ", false),
        (&["discard all"], "CZ", true),
    ] {
        let all: Vec<u8> = texts.iter().flat_map(|text| query(text)).collect();
        raw.send(&all).await;
        let said = raw.until_ready(texts.len()).await;
        assert_eq!(tags(&said).replace('S', ""), answers, "{texts:?}");
        let before = stage.gateway.metric("packed_units_total");
        assert_eq!(tags(&raw.query(crate::UPDATE).await), "TDCZ");
        assert_eq!(stage.gateway.metric("packed_units_total") > before, packs, "{texts:?}");
    }
}
