//! `[[pool]]` tables: settings for a database or a user. The first matching table applies.

use hotrow_testkit::{connect, describe, sqlstate, try_connect, value};
use tokio_postgres::Config;

use crate::Stage;

async fn role(stage: &Stage, name: &str) -> (String, Config) {
    let role = format!("{}_{name}", stage.schema);
    let sql = format!(
        "create role {role} login; grant usage on schema {0} to {role}; grant all on all tables in schema {0} to {role}",
        stage.schema,
    );
    stage.direct.batch_execute(&sql).await.unwrap();
    let mut config = stage.gateway.config_in(&stage.schema);
    config.user(&role);
    (role, config)
}

fn message(error: &tokio_postgres::Error) -> String {
    let error = error.as_db_error().unwrap_or_else(|| panic!("{}", describe(error)));
    format!("{}; {}", error.message(), error.hint().unwrap_or_default())
}

#[tokio::test]
async fn a_table_limits_all_clients_that_it_matches_and_no_others() {
    let stage = Stage::new("", &[]).await;
    let (ann, anns) = role(&stage, "ann").await;
    let (_, bobs) = role(&stage, "bob").await;
    stage.reload(&format!("[[pool]]\nuser = \"{ann}\"\nclients_max = 2\n")).await;
    let mut other_settings = anns.clone();
    other_settings.options(format!("-c search_path={},pg_catalog", stage.schema));
    let first = connect(&anns).await;
    let _second = connect(&other_settings).await;
    for config in [&anns, &other_settings] {
        let refused = try_connect(config).await.err().unwrap();
        assert_eq!(sqlstate(&refused), "53300");
        let text = message(&refused);
        assert!(text.contains(&format!("user {ann} may have 2")) && text.contains("[[pool]]"), "{text}");
    }
    connect(&bobs).await;
    drop(first);
    hotrow_testkit::until("a client fits again", || async { try_connect(&anns).await.is_ok() }).await;
    stage.reload(&format!("[[pool]]\nuser = \"{ann}\"\nclients_max = 3\n")).await;
    hotrow_testkit::until("a reload raises the limit", || async {
        let (one, other) = (try_connect(&anns).await, try_connect(&anns).await);
        one.is_ok() && other.is_ok()
    })
    .await;
}

#[tokio::test]
async fn held_connections_are_limited_in_addition_to_the_gateways_limit() {
    let stage = Stage::new("", &[]).await;
    let (ann, anns) = role(&stage, "ann").await;
    let settings = format!("[[pool]]\nuser = \"{ann}\"\nheld_connections_max = 1\nheld_wait_ms = 1000\n");
    stage.reload(&settings).await;
    let (one, two, other) = (connect(&anns).await, connect(&anns).await, stage.client().await);
    one.batch_execute("begin; select 1").await.unwrap();
    let refused = two.batch_execute("begin; select 1").await.unwrap_err();
    assert_eq!(sqlstate(&refused), "53300");
    assert!(
        message(&refused).contains(&format!("none of the 1 upstream connections of user {ann}")),
        "{refused:?}"
    );
    two.batch_execute("rollback").await.unwrap(); // of the failed transaction
    other.batch_execute("begin; commit").await.unwrap();
    assert!(stage.packs(&two).await, "lanes are not counted");
    one.batch_execute("commit").await.unwrap();
    two.batch_execute("begin; commit").await.unwrap();
}

#[tokio::test]
async fn only_the_first_matching_table_applies() {
    let stage = Stage::new("", &[]).await;
    let (ann, anns) = role(&stage, "ann").await;
    let (_, bobs) = role(&stage, "bob").await;
    let settings = format!(
        "pack = false\n\
         [[pool]]\nuser = \"{ann}\"\ndatabase = \"postgres\"\npack = true\n\
         [[pool]]\nuser = \"{ann}\"\nclients_max = 1\n\
         [[pool]]\ndatabase = \"template1\"\npack = true\n"
    );
    stage.reload(&settings).await;
    let (ann_one, ann_two) = (connect(&anns).await, connect(&anns).await);
    assert!(stage.packs(&ann_one).await && stage.packs(&ann_two).await);
    let bob = connect(&bobs).await;
    assert!(!stage.packs(&bob).await);
    stage.reload(&format!("[[pool]]\nuser = \"{ann}\"\npack = false\n")).await;
    assert!(!stage.packs(&ann_one).await && stage.packs(&bob).await, "connected clients follow");
}

#[tokio::test]
async fn the_table_sets_the_number_of_lanes() {
    let stage = Stage::new("", &[]).await;
    let (ann, anns) = role(&stage, "ann").await;
    stage.reload(&format!("[[pool]]\nuser = \"{ann}\"\nlanes = 1\nlane_lock_timeout_ms = 900\n")).await;
    let lanes = "select string_agg(distinct application_name, ', ') from pg_stat_activity where usename = ";
    stage.direct.batch_execute("insert into t select g, 0 from generate_series(3, 200) g").await.unwrap();
    let clients = futures_util::future::join_all((0..100).map(|_| connect(&anns))).await;
    let updates = clients.iter().enumerate().map(|(id, client)| async move {
        for _ in 0..20 {
            client.execute("update t set n = n + 1 where id = $1", &[&(id as i32 + 1)]).await.unwrap();
        }
    });
    futures_util::future::join_all(updates).await;
    let names =
        value(&stage.direct, &format!("{lanes}'{ann}' and application_name like 'hotrow lane%'")).await;
    assert_eq!(names, "hotrow lane 0");
    assert_eq!(value(&stage.direct, "select sum(n) from t").await, "2000");
}

#[tokio::test]
async fn the_tables_settings_apply_unless_the_client_sends_its_own() {
    let stage = Stage::new("", &[]).await;
    let (ann, anns) = role(&stage, "ann").await;
    let settings = format!(
        "[[pool]]\nuser = \"{ann}\"\n\
         settings = {{ statement_timeout = \"7s\", work_mem = 128, \"app.note\" = \"a \\\\ b\" }}\n"
    );
    stage.reload(&settings).await;
    let client = connect(&anns).await;
    assert_eq!(value(&client, "show statement_timeout").await, "7s");
    assert_eq!(value(&client, "show work_mem").await, "128kB");
    assert_eq!(value(&client, "show app.note").await, "a \\ b");
    assert!(stage.packs(&client).await);
    let mut own = anns.clone();
    own.options(format!("-c search_path={} -c statement_timeout=3s", stage.schema));
    let client = connect(&own).await;
    assert_eq!(value(&client, "show statement_timeout").await, "3s");
    assert_eq!(value(&client, "show work_mem").await, "128kB");
    assert_eq!(value(&stage.client().await, "show statement_timeout").await, "0");
}

#[tokio::test]
async fn unknown_keys_and_invalid_values_are_reported_with_their_line() {
    let stage = Stage::new("", &[]).await;
    for (settings, text) in [
        ("[[pool]]\ndatabase = \"a\"\nlane = 1\n", "hotrow.toml:3: unknown field `lane`"),
        ("[[pool]]\n\nlanes = 0\n", "hotrow.toml:3: lanes: 0 must be 1 to 64"),
        ("[[pools]]\nlanes = 1\n", "hotrow.toml:1: unknown field `pools`"),
        ("[[pool]]\nsettings = { a = [1] }\n", "hotrow.toml:2: a setting's value is"),
        ("[[pool]]\nclients_max = \"many\"\n", "hotrow.toml:2: clients_max: invalid type"),
    ] {
        let log = stage.reload(settings).await;
        assert!(log.contains("not reloaded") && log.contains(text), "{settings:?}: {log}");
    }
}
