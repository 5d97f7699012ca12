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
    let mut raw = Raw::log_in(stage.gateway.port(), &[]).await;
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
