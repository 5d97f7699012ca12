//! What pools of connections send before they give a connection to their application: an empty statement, commands that clear
//! the session's state, or ROLLBACK without a transaction. The replies are those of the server, byte for byte. A session without state needs no connection for them.

use hotrow_testkit::raw::{Raw, bind, close, describe, execute, parse, query, sync, tags};

use crate::stage::{RESET, Stage, UPDATE, once, step};

/// What asyncpg sends.
const ASYNCPG: &str = "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;";

/// Texts that have no effect in a session without state.
const TEXTS: [&str; 16] = [
    "",
    ";",
    "-- ping",
    "/* ping */ ;",
    ASYNCPG,
    "DISCARD ALL",
    "RESET ALL",
    "UNLISTEN *",
    "CLOSE ALL",
    "DEALLOCATE ALL",
    "DISCARD TEMP",
    "DISCARD PLANS",
    "close all; deallocate all; discard sequences",
    "rollback",
    "COMMIT;",
    "Abort Work And No Chain -- from a pool",
];

/// Forms in which drivers send them by the extended protocol.
fn extended(text: &str) -> Vec<Vec<u8>> {
    vec![
        once(text, &[]),
        step![parse("", text), describe(b'S', ""), bind("", "", &[]), execute("", 0), sync()],
        step![parse("ping", text), describe(b'S', "ping"), sync()],
        step![bind("", "ping", &[]), execute("", 0), sync()],
        step![bind("", "ping", &[]), describe(b'P', ""), execute("", 1), sync()],
        step![close(b'S', "ping"), sync()],
    ]
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn commands_that_clear_state_have_the_replies_of_the_server() {
    let stage = Stage::new().await;
    for text in TEXTS {
        let simple = vec![query(text); 3];
        for _ in 0..2 {
            stage.same(text, &simple).await; // the second client gets what the gateway has learned from the first one
        }
        if !text.trim_end_matches(';').contains(';') {
            let steps = extended(text);
            for _ in 0..2 {
                stage.same(text, &steps).await;
            }
        }
    }
    for text in [
        "select 1; rollback",
        "rollback; discard temp",
        "rollback and chain",
        "commit and chain",
        "discard all; select 1",
        "close all; close nothing",
    ] {
        stage.same(text, &[query(text), query(text), once("rollback", &[])]).await;
    }
}

#[tokio::test]
async fn the_reply_to_an_earlier_message_is_not_taken_for_that_of_a_reset() {
    let stage = Stage::new().await;
    for text in ["DISCARD ALL", ASYNCPG] {
        for first in [step![sync()], step![parse("a", "select 1"), describe(b'S', "a"), sync()]] {
            let fresh = Stage::new().await;
            fresh.same(text, &[[first, query(text)].concat()]).await;
            fresh.same(text, &[query(text)]).await;
        }
        stage.same(text, &[step![parse("a", "select 1"), describe(b'S', "a"), query(text)]]).await;
        stage.same(text, &[query(text)]).await;
    }
}

#[tokio::test]
async fn a_session_without_state_clears_it_without_a_connection() {
    for name in ["", "reports"] {
        clears_without_a_connection(name).await;
    }
}

async fn clears_without_a_connection(name: &str) {
    let stage = Stage::with(&["--held-connections-max", "1", "--held-wait-ms", "200"]).await;
    let mut direct = stage.named(hotrow_testkit::server().port(), name).await;
    let mut raw = stage.named(stage.gateway.port(), name).await;
    for text in TEXTS {
        assert_eq!(raw.query(text).await, direct.query(text).await, "{text}");
        if !text.contains(';') {
            raw.send(&once(text, &[])).await;
            raw.until_ready(1).await;
        }
    }
    let mut holder = stage.raw(stage.gateway.port()).await;
    holder.query("begin; select 1").await;
    for text in TEXTS {
        assert_eq!(raw.query(text).await, direct.query(text).await, "{text}");
        if !text.contains(';') {
            let (mut through, mut directly) = (Vec::new(), Vec::new());
            for (raw, replies) in [(&mut raw, &mut through), (&mut direct, &mut directly)] {
                raw.send(&once(text, &[])).await;
                replies.extend(raw.until_ready(1).await);
            }
            assert_eq!(through, directly, "{text}");
        }
    }
    // In a transaction that has no connection yet.
    raw.send(&step![query("begin"), query(""), query("commit")]).await;
    assert_eq!(tags(&raw.until_ready(3).await), "CZIZCZ");
    // Only the server can run this one.
    assert_eq!(tags(&raw.query("rollback to a").await), "EZ");
}

/// Two statements with names, and what becomes of them.
fn names(clearing: Vec<u8>) -> Vec<Vec<u8>> {
    let bound = |name| step![bind("", name, &[]), execute("", 0), sync()];
    vec![
        step![parse("a", "select 1"), sync()],
        once("select 2", &[]),
        clearing,
        bound("a"),
        bound(""),
        step![parse("a", "select 3"), bind("", "a", &[]), execute("", 0), sync()],
    ]
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn what_the_session_has_is_cleared_as_by_the_server() {
    let stage = Stage::new().await;
    for text in TEXTS {
        stage.same(text, &[query(text)]).await; // now the gateway knows the reply
        stage.same(text, &names(query(text))).await;
        let pipelined = names(query(text)).concat();
        stage.same(text, &[pipelined]).await;
        if !text.contains(';') {
            stage.same(text, &names(once(text, &[]))).await;
        }
        for (has, shows) in [
            ("set work_mem = '5MB'", "show work_mem"),
            ("set application_name = 'other'", "show application_name"),
            ("set datestyle = 'German'", "select '1.2.2003'::date"),
            ("listen here", "select pg_listening_channels()"),
            ("create temporary table kept (a int)", "select count(*) from kept"),
            (
                "select pg_advisory_lock(1)",
                "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
            ),
            ("begin; declare c cursor with hold for select 1; commit", "select name from pg_cursors"),
            ("prepare p as select 1", "execute p"),
            ("begin", "rollback"),
            ("set app.tenant = 'x'", "show app.tenant"),
        ] {
            let what = format!("{has}; {text}");
            stage.same(&what, &[query(has), query(text), query(shows)]).await;
        }
    }
}

#[tokio::test]
async fn a_rollback_without_a_transaction_warns_as_the_sessions_settings_say() {
    let stage = Stage::new().await;
    let bound = || step![bind("", "r", &[]), execute("", 0), sync()];
    for text in ["rollback", "commit"] {
        let set = query("set client_min_messages = error");
        for _ in 0..2 {
            stage.same(text, &[query(text), once(text, &[])]).await;
            let both = [query(text), bound()];
            let steps = [
                vec![step![parse("r", text), sync()]],
                both.to_vec(),
                vec![set.clone()],
                [&both[..], &both[..]].concat(),
                vec![query("reset client_min_messages")],
                both.to_vec(),
            ];
            stage.same(text, &steps.concat()).await;
            stage.same(text, &[steps.concat().concat()]).await;
            // Debug messages are more than the success.
            let debug = query("set client_min_messages = debug5");
            let level = |set: &[u8]| step![set, query("reset client_min_messages"), query(text), bound()];
            stage.same(text, &[step![parse("r", text), sync()], level(&debug), level(&debug)]).await;
        }
    }
}

#[tokio::test]
async fn a_rollback_without_a_transaction_is_answered_in_its_turn_and_undoes_nothing() {
    let stage = Stage::new().await;
    let update = |id: &str| once(UPDATE, &[Some(id)]);
    for text in ["rollback", "commit"] {
        for ends in [query(text), once(text, &[])] {
            let steps = [
                ends.clone(),
                step![
                    update("1"),
                    ends,
                    update("1"),
                    update("2"),
                    ends,
                    query("select 1"),
                    ends,
                    update("1")
                ],
                step![query("begin"), update("1"), query("commit"), ends, ends],
                step![query("begin"), query("update t set n = 1000 where id = 3"), query("commit"), ends],
                step![query("begin"), query("update t set n = 1000 where id = 3"), ends, ends],
                step![query("begin"), ends, ends, update("2")],
                step![parse("", "selct"), sync(), ends, update("3")],
                step![parse("", "selct"), parse("", text), bind("", "", &[]), execute("", 0), sync(), ends],
                // Within a unit it ends the unit's transaction.
                step![parse("", UPDATE), bind("", "", &[Some("4")]), execute("", 0), ends, update("5")],
            ];
            for _ in 0..2 {
                stage.same(text, &steps).await;
            }
        }
    }
    let mut raw = stage.raw(stage.gateway.port()).await;
    raw.query("set hotrow.reads = 'replica'").await;
    raw.query("rollback").await;
    let shown = raw.query("show hotrow.reads").await;
    assert_eq!(shown[1].values(), [Some(b"replica".to_vec())]);
}

#[tokio::test]
async fn the_settings_of_the_gateway_are_reset_too() {
    let stage = Stage::new().await;
    stage.direct.batch_execute(RESET).await.unwrap();
    for text in ["DISCARD ALL", "RESET ALL", ASYNCPG] {
        let mut raw: Raw = stage.raw(stage.gateway.port()).await;
        raw.query(text).await;
        raw.query("set hotrow.reads = 'replica'").await;
        raw.query(text).await;
        let shown = raw.query("show hotrow.reads").await;
        assert_eq!(shown[1].values(), [Some(b"primary".to_vec())], "{text}");
    }
}
