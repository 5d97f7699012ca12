//! Messages after an error and before the Sync, as drivers send them in pipeline mode: the server ignores them, and the
//! gateway must not act as if the server had run any of them.

use hotrow_testkit::raw::{Message, bind, close, execute, flush, parse, query, sync, tags};
use hotrow_testkit::server;

use crate::stage::{RESET, Stage, UPDATE, once, step};

/// Sends the second part after the error of the first has arrived. Returns all replies, which must be those of the
/// server.
async fn same(stage: &Stage, prepared: &[u8], failing: &[u8], late: &[u8], then: &[u8]) -> Vec<Message> {
    let mut replies = Vec::new();
    for port in [server().port(), stage.gateway.port()] {
        stage.direct.batch_execute(RESET).await.unwrap();
        let mut raw = stage.raw(port).await;
        raw.send(prepared).await;
        let mut all = raw.until_ready(1).await;
        raw.send(failing).await;
        while all.last().unwrap().tag != b'E' {
            all.push(raw.message().await.unwrap());
        }
        raw.send(late).await;
        all.extend(raw.until_ready(1).await);
        raw.send(then).await;
        all.extend(raw.until_ready(1).await);
        replies.push(all);
    }
    let (through, directly) = (replies.pop().unwrap(), replies.pop().unwrap());
    assert_eq!(tags(&through), tags(&directly), "{through:?} instead of {directly:?}");
    assert_eq!(through, directly);
    through
}

#[tokio::test]
async fn messages_after_an_error_are_ignored_up_to_the_sync() {
    let stage = Stage::new().await;
    let failing = step![once(UPDATE, &[Some("1")]), parse("", "select 1 / 0"), bind("", "", &[]), flush()];
    let failing = step![failing, execute("", 0), flush()];
    let late = step![parse("", "select 2"), bind("", "", &[]), execute("", 0), query("select 3"), sync()];
    same(&stage, &sync(), &failing, &late, &query("select 4")).await;
}

#[tokio::test]
async fn a_statement_whose_close_was_ignored_still_exists() {
    let stage = Stage::new().await;
    let prepared = step![parse("kept", "select 'kept'"), sync()];
    let failing = step![parse("", "select nothing"), flush()];
    let late = step![close(b'S', "kept"), parse("kept", "select 'other'"), sync()];
    let run = |name| step![bind("", name, &[]), execute("", 0), sync()];
    let replies = same(&stage, &prepared, &failing, &late, &run("kept")).await;
    assert_eq!(tags(&replies), "1ZEZ2DCZ");
    // The client sent the Close before it knew of the error.
    let failing = step![parse("", "select nothing"), close(b'S', "kept"), flush()];
    let replies = same(&stage, &prepared, &failing, &sync(), &run("kept")).await;
    assert_eq!(tags(&replies), "1ZEZ2DCZ");
    // Parsed and closed in the unit that fails.
    let failing = step![parse("new", "select 1"), parse("", "select nothing"), close(b'S', "new"), flush()];
    same(&stage, &prepared, &failing, &sync(), &run("new")).await;
    let failing = step![parse("", "select nothing"), parse("new", "select 1"), close(b'S', "new"), flush()];
    let replies = same(&stage, &prepared, &failing, &sync(), &run("new")).await;
    assert_eq!(tags(&replies), "1ZEZEZ");
}

#[tokio::test]
async fn a_statement_whose_parse_was_ignored_does_not_exist() {
    let stage = Stage::new().await;
    let failing = step![parse("", "select nothing"), flush()];
    let late = step![parse("new", "select 1"), sync()];
    let then = step![bind("", "new", &[]), execute("", 0), sync()];
    let replies = same(&stage, &sync(), &failing, &late, &then).await;
    assert_eq!(tags(&replies), "ZEZEZ");
    // The name can be prepared afterwards.
    let then = step![parse("new", "select 1"), bind("", "new", &[]), execute("", 0), sync()];
    let replies = same(&stage, &sync(), &failing, &late, &then).await;
    assert_eq!(tags(&replies), "ZEZ12DCZ");
}
