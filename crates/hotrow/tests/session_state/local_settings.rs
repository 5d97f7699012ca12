//! Settings that end with their transaction: the session keeps no connection because of them.

use hotrow_testkit::raw::{Raw, bind, execute, parse, sync, tags};
use hotrow_testkit::{connect, rows, until, value};

use crate::Stage;

/// `set_config` with `true` is SET LOCAL: the value ends with the transaction.
#[tokio::test]
async fn settings_of_a_transaction_leave_the_session_as_it_was() {
    let stage = Stage::new(&[]).await;
    let look = "select coalesce(current_setting('app.local', true), '')";
    let begin = [parse("", "begin"), bind("", "", &[]), execute("", 0), sync()].concat();
    for (sets, look, there, otherwise) in [
        ("set local app.local = 'x'", look, "x", ""),
        ("select set_config('app.local', 'x', true)", look, "x", ""),
        ("select set_config('work_mem', '6MB', true)", "show work_mem", "6MB", "4MB"),
        ("select set_config('role', 'pg_monitor', true)", "select current_user", "pg_monitor", "postgres"),
    ] {
        for end in ["commit", "rollback"] {
            let (client, other) = (stage.client().await, stage.client().await);
            for sql in ["begin", sets] {
                client.simple_query(sql).await.unwrap();
            }
            assert_eq!(value(&client, look).await, there, "{sets}");
            assert_eq!(value(&other, look).await, otherwise, "another during {sets}");
            client.simple_query(end).await.unwrap();
            assert!(stage.packs(&client).await, "after {sets}; {end}");
            for client in [&client, &other] {
                assert_eq!(value(client, look).await, otherwise, "after {sets}; {end}");
            }
        }
        // Outside of a transaction it ends with its statement.
        let client = stage.client().await;
        client.simple_query(sets).await.unwrap();
        assert!(stage.packs(&client).await, "after {sets}");
        assert_eq!(value(&client, look).await, otherwise, "after {sets}");
    }
    // The value is a parameter, as drivers and frameworks send it.
    let mut raw = Raw::login(stage.gateway.port(), &[]).await;
    raw.send(&begin).await;
    raw.until_ready(1).await;
    let sets = "select set_config('app.local', $1, true)";
    raw.send(&[parse("", sets), bind("", "", &[Some("y")]), execute("", 0), sync()].concat()).await;
    assert_eq!(tags(&raw.until_ready(1).await), "12DCZ");
    assert_eq!(raw.query(look).await[1].values(), [Some(b"y".to_vec())]);
    raw.query("commit").await;
    let (console, shown) = (connect(stage.gateway.config().dbname("hotrow")).await, "show clients");
    until("no client keeps a connection", async || {
        rows(&console, shown).await.unwrap().iter().all(|row| row[7].as_deref() == Some("idle"))
    })
    .await;
}

/// A verdict about a statement is about the names' meaning in its pool. Under other settings, the same text can name a table
/// whose trigger leaves state.
#[tokio::test]
async fn a_statement_under_settings_of_its_transaction_is_not_taken_for_the_pools_statement() {
    let stage = Stage::new(&[]).await;
    let (home, other) = (&stage.schema, format!("{}_other", stage.schema));
    let tables = format!(
        "create schema {other};
         create table {other}.t (id int primary key, n int); insert into {other}.t values (1, 0);
         create function {other}.leaves() returns trigger language plpgsql as $$
             begin
                 perform pg_advisory_lock(hashtext('{other}'));
                 perform set_config('app.left', 'here', false);
                 return new;
             end $$;
         create trigger leaves before update on {other}.t for each row execute function {other}.leaves();
         create function {home}.goes_there() returns text language sql as $$
             select set_config('search_path', '{other}', true) $$;"
    );
    stage.direct.batch_execute(&tables).await.unwrap();
    assert!(stage.packs(&stage.client().await).await);
    let ways = [
        format!("begin; set local search_path = {other}"),
        format!("begin; select set_config('search_path', '{other}', true)"),
        "begin; select goes_there()".to_owned(),
        format!("begin; set search_path = {other}"),
        format!("begin; savepoint a; set local search_path = {other}; release a"),
    ];
    for way in &ways {
        for run in 1..=3 {
            let client = stage.client().await;
            for sql in way.split("; ").chain(["update t set n = n + 1 where id = 1 returning n"]) {
                client.simple_query(sql).await.unwrap();
            }
            if way.contains("; set search_path") {
                client.simple_query(&format!("set search_path = {home}")).await.unwrap();
            }
            client.simple_query("commit").await.unwrap();
            assert!(
                !stage.packs(&client).await,
                "run {run} of {way}: the session has the lock and a setting"
            );
            assert_eq!(value(&client, "select current_setting('app.left')").await, "here", "{way}");
            client.simple_query("discard all").await.unwrap(); // it releases the lock, too
        }
    }
    let is_free = format!("select pg_try_advisory_lock(hashtext('{other}'))");
    assert_eq!(value(&stage.direct, &is_free).await, "t", "no connection has kept the lock");
}
