//! What a client sends behind an error and before its Sync, as drivers in pipeline mode do: the server ignores it, and the
//! gateway must not believe that any of it has happened.

use hotrow_testkit::raw::{Message, bind, close, execute, flush, parse, query, sync, tags};
use hotrow_testkit::server;

use crate::stage::{RESET, Stage, UPDATE, once, step};

/// Sends the second part when the error of the first has come; what was said in all, if it is the same directly.
async fn same(stage: &Stage, prepared: &[u8], failing: &[u8], behind: &[u8], then: &[u8]) -> Vec<Message> {
    let mut said = Vec::new();
    for port in [server().port(), stage.gateway.port()] {
        stage.direct.batch_execute(RESET).await.unwrap();
        let mut raw = stage.raw(port).await;
        raw.send(prepared).await;
        let mut all = raw.until_ready(1).await;
        raw.send(failing).await;
        while all.last().unwrap().tag != b'E' {
            all.push(raw.message().await.unwrap());
        }
        raw.send(behind).await;
        all.extend(raw.until_ready(1).await);
        raw.send(then).await;
        all.extend(raw.until_ready(1).await);
        said.push(all);
    }
    let (through, directly) = (said.pop().unwrap(), said.pop().unwrap());
    assert_eq!(tags(&through), tags(&directly), "{through:?} instead of {directly:?}");
    assert_eq!(through, directly);
    through
}

#[tokio::test]
async fn what_follows_an_error_is_ignored_up_to_the_sync() {
    let stage = Stage::new().await;
    let failing = step![once(UPDATE, &[Some("1")]), parse("", "select 1 / 0"), bind("", "", &[]), flush()];
    let failing = step![failing, execute("", 0), flush()];
    let behind = step![parse("", "select 2"), bind("", "", &[]), execute("", 0), query("select 3"), sync()];
    same(&stage, &sync(), &failing, &behind, &query("select 4")).await;
}

#[tokio::test]
async fn a_statement_whose_close_was_ignored_is_still_there() {
    let stage = Stage::new().await;
    let prepared = step![parse("kept", "select 'kept'"), sync()];
    let failing = step![parse("", "select nothing"), flush()];
    let behind = step![close(b'S', "kept"), parse("kept", "select 'other'"), sync()];
    let run = |name| step![bind("", name, &[]), execute("", 0), sync()];
    let said = same(&stage, &prepared, &failing, &behind, &run("kept")).await;
    assert_eq!(tags(&said), "1ZEZ2DCZ");
    // Sent before the error was known.
    let failing = step![parse("", "select nothing"), close(b'S', "kept"), flush()];
    let said = same(&stage, &prepared, &failing, &sync(), &run("kept")).await;
    assert_eq!(tags(&said), "1ZEZ2DCZ");
    // Parsed and closed in the unit that fails.
    let failing = step![parse("new", "select 1"), parse("", "select nothing"), close(b'S', "new"), flush()];
    same(&stage, &prepared, &failing, &sync(), &run("new")).await;
    let failing = step![parse("", "select nothing"), parse("new", "select 1"), close(b'S', "new"), flush()];
    let said = same(&stage, &prepared, &failing, &sync(), &run("new")).await;
    assert_eq!(tags(&said), "1ZEZEZ");
}

#[tokio::test]
async fn a_statement_whose_parse_was_ignored_is_not_there() {
    let stage = Stage::new().await;
    let failing = step![parse("", "select nothing"), flush()];
    let behind = step![parse("new", "select 1"), sync()];
    let then = step![bind("", "new", &[]), execute("", 0), sync()];
    let said = same(&stage, &sync(), &failing, &behind, &then).await;
    assert_eq!(tags(&said), "ZEZEZ");
    // It may be prepared afterwards.
    let then = step![parse("new", "select 1"), bind("", "new", &[]), execute("", 0), sync()];
    let said = same(&stage, &sync(), &failing, &behind, &then).await;
    assert_eq!(tags(&said), "ZEZ12DCZ");
}
