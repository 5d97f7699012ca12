//! COPY by the extended protocol and by Query, with its data in one write or in pieces, with Syncs where drivers send
//! them, and with errors at each position; and FunctionCall after messages whose Sync has not arrived.

use std::time::Duration;

use hotrow_testkit::raw::{Message, bind, close, execute, flush, frame, parse, query, sync, tags};
use hotrow_testkit::{server, value};

use crate::stage::{RESET, Stage, step};

const COPY: &str = "copy t (id, n, label) from stdin";
const GOOD: &[u8] = b"11\t1\tone\n";
const BAD: &[u8] = b"11\tx\tone\n";

fn data(text: &[u8]) -> Vec<u8> {
    frame(b'd', text)
}

fn done() -> Vec<u8> {
    frame(b'c', b"")
}

fn begin_copy() -> Vec<u8> {
    step![parse("", COPY), bind("", "", &[]), execute("", 0)]
}

/// The error of PostgreSQL 18 for the statement after a FunctionCall in an extended query: the server did not commit at the Sync,
/// and rolls back now.
fn is_half_open(message: &Message) -> bool {
    const ERROR: &[u8] = b"unexpected state STARTED";
    message.body.windows(ERROR.len()).any(|part| part == ERROR)
}

/// The replies before those to the last query.
fn before_the_end(all: &[Message]) -> &[Message] {
    let is_error = all.len() > 1 && is_half_open(&all[all.len() - 2]);
    &all[..all.len() - if is_error { "EZ".len() } else { "TDCZ".len() }]
}

/// Sends the pieces with a short pause after each, and then a query. Returns the tags of the replies, which must be
/// those of a direct connection.
async fn same(stage: &Stage, what: &str, pieces: &[Vec<u8>]) -> String {
    let mut replies: Vec<(Vec<Message>, String)> = Vec::new();
    for port in [server().port(), stage.gateway.port()] {
        stage.direct.batch_execute(RESET).await.unwrap();
        let mut raw = stage.raw(port).await;
        for piece in pieces {
            raw.send(piece).await;
            tokio::time::sleep(Duration::from_millis(20)).await; // the pieces arrive one by one, as from a slow client
        }
        raw.send(&query("select 'the end'")).await;
        let mut all = Vec::new();
        while !all.iter().any(|message: &Message| message.body.ends_with(b"the end") || is_half_open(message))
        {
            all.push(
                raw.message().await.unwrap_or_else(|| panic!("{what}: connection closed after {all:?}")),
            );
        }
        all.extend(raw.until_ready(1).await);
        let state = value(&stage.direct, "select string_agg(t::text, ' ' order by id) from t").await;
        replies.push((all, state));
    }
    let (through, directly) = (replies.pop().unwrap(), replies.pop().unwrap());
    if directly.0.iter().any(is_half_open) {
        // The gateway asks the connection which state is left. That query gets the error, and not the client's.
        let replies = (before_the_end(&through.0), before_the_end(&directly.0));
        assert_eq!((replies.0, &through.1), (replies.1, &directly.1), "{what}");
    } else {
        assert_eq!(through, directly, "{what}");
    }
    tags(&directly.0)
}

#[tokio::test]
async fn a_copy_in_one_go_and_in_pieces() {
    let stage = Stage::new().await;
    let all = step![begin_copy(), data(GOOD), done(), sync()];
    assert_eq!(same(&stage, "in one go", &[all]).await, "12GCZTDCZ");
    let end = step![data(GOOD), done(), sync()];
    assert_eq!(same(&stage, "in two pieces", &[begin_copy(), end.clone()]).await, "12GCZTDCZ");
    let begin = step![begin_copy(), sync()];
    assert_eq!(same(&stage, "a Sync up front", &[begin.clone(), end.clone()]).await, "12GCZTDCZ");
    let syncs = step![begin, data(GOOD), sync(), flush(), done(), sync(), sync()];
    assert_eq!(same(&stage, "Syncs everywhere", &[syncs]).await, "12GCZZTDCZ");
    let fails = step![begin_copy(), data(GOOD), frame(b'f', b"no more\0"), sync()];
    assert_eq!(same(&stage, "CopyFail", &[fails]).await, "12GEZTDCZ");
    let no_sync = [step![begin_copy(), data(GOOD), done()], sync()];
    assert_eq!(same(&stage, "the Sync later", &no_sync).await, "12GCZTDCZ");
    let later = step![begin_copy(), data(GOOD), done(), parse("", "select 1 / 0"), bind("", "", &[])];
    let later = [later, step![execute("", 0), close(b'S', "x"), sync()]];
    same(&stage, "a later message fails", &later).await;
}

#[tokio::test]
async fn a_copy_that_fails() {
    let stage = Stage::new().await;
    let end = step![data(GOOD), done(), sync()];
    let bad = step![data(BAD), done(), sync()];
    let begin = step![begin_copy(), sync()];
    same(&stage, "wrong data", &[step![begin_copy(), bad]]).await;
    same(&stage, "wrong data, a Sync up front", &[begin.clone(), bad.clone()]).await;
    same(&stage, "wrong data, a Sync up front, in one go", &[step![begin, bad]]).await;
    same(
        &stage,
        "a Sync between wrong data",
        &[step![begin, data(BAD), sync(), data(GOOD), sync(), done(), sync()]],
    )
    .await;
    same(
        &stage,
        "another Parse after it",
        &[step![begin, bad, parse("s", "select 1"), sync()], step![close(b'S', "s"), sync()]],
    )
    .await;
    let never = step![parse("", "copy nowhere from stdin"), bind("", "", &[]), execute("", 0)];
    same(&stage, "COPY of an unknown table", &[step![never, data(GOOD), done(), sync()]]).await;
    same(&stage, "COPY of an unknown table, a Sync up front", &[step![never, sync()], end.clone()]).await;
    let skipped = step![parse("", "select 1 / 0"), bind("", "", &[]), execute("", 0)];
    same(&stage, "a skipped COPY", &[step![skipped, begin_copy(), sync(), data(GOOD), done(), sync()]]).await;
}

#[tokio::test]
async fn a_copy_that_fails_before_its_data_are_read() {
    let stage = Stage::new().await;
    stage
        .direct
        .batch_execute(
            "create table refuses (id int, n int, label text);
             create function refuse() returns trigger language plpgsql as
                $$ begin raise exception 'not today'; end $$;
             create trigger refuses before insert on refuses for each statement execute function refuse()",
        )
        .await
        .unwrap();
    let copy = "copy refuses from stdin";
    let begin = step![parse("", copy), bind("", "", &[]), execute("", 0)];
    let end = step![data(GOOD), done(), sync()];
    let replies = same(&stage, "a Sync up front", &[step![begin, sync()], end.clone()]).await;
    assert_eq!(replies, "12GEZZTDCZ");
    same(&stage, "a Sync up front, in one go", &[step![begin, sync(), end]]).await;
    same(&stage, "Syncs everywhere", &[step![begin, sync(), data(GOOD), sync(), done(), sync(), sync()]])
        .await;
    same(&stage, "no Sync up front", &[step![begin, end]]).await;
    same(&stage, "in a transaction", &[query("begin"), step![begin, sync(), end], query("rollback")]).await;
    same(&stage, "by Query", &[query(copy), step![data(GOOD), sync(), done()], sync()]).await;
    same(&stage, "by Query, in one go", &[step![query(copy), sync(), data(GOOD), sync(), done(), sync()]])
        .await;
}

#[tokio::test]
async fn a_copy_by_query() {
    let stage = Stage::new().await;
    let end = step![data(GOOD), done()];
    assert_eq!(same(&stage, "in one go", &[step![query(COPY), end]]).await, "GCZTDCZ");
    assert_eq!(same(&stage, "in pieces", &[query(COPY), data(GOOD), done()]).await, "GCZTDCZ");
    same(&stage, "wrong data", &[step![query(COPY), data(BAD), done()]]).await;
    same(&stage, "wrong data and Syncs", &[step![query(COPY), sync(), data(BAD), sync(), done(), sync()]])
        .await;
    same(&stage, "COPY of an unknown table", &[step![query("copy nowhere from stdin"), sync(), end]]).await;
    let two = query(&format!("{COPY}; {COPY}"));
    let more = step![data(b"12\t1\ttwo\n"), done()];
    assert_eq!(same(&stage, "two of them", &[step![two, end, more]]).await, "GCGCZTDCZ");
    same(&stage, "the second fails", &[step![two, end, data(BAD), done(), query("select 1")]]).await;
}

#[tokio::test]
async fn copy_data_without_a_copy_are_ignored() {
    let stage = Stage::new().await;
    same(&stage, "idle", &[step![data(GOOD), done(), frame(b'f', b"no\0"), sync()]]).await;
    let between = step![parse("", "select 1"), data(GOOD), bind("", "", &[]), done(), execute("", 0), sync()];
    same(&stage, "between other messages", &[between]).await;
    same(&stage, "in a transaction", &[step![query("begin"), data(GOOD), done(), query("commit")]]).await;
}

#[tokio::test]
async fn a_function_call_runs_after_earlier_messages() {
    let stage = Stage::new().await;
    stage
        .direct
        .batch_execute("create function rows() returns bigint language sql as 'select count(*) from t'")
        .await
        .unwrap();
    let oid: u32 = value(&stage.direct, "select 'rows()'::regprocedure::oid").await.parse().unwrap();
    let call = frame(b'F', &[&oid.to_be_bytes()[..], &[0, 0, 0, 0, 0, 0]].concat());
    let insert = step![parse("", "insert into t values (20, 1, 'x')"), bind("", "", &[]), execute("", 0)];
    let replies = same(&stage, "after an Execute", &[step![insert, call, sync()]]).await;
    assert!(replies == "12CVZZTDCZ" || replies == "12CVZZEZ", "{replies}");
    let fails = step![parse("", "select 1 / 0"), bind("", "", &[]), execute("", 0)];
    assert_eq!(same(&stage, "after an error", &[step![fails, call, sync()]]).await, "1EZTDCZ");
    same(
        &stage,
        "after a Bind",
        &[step![parse("", "select 1"), bind("", "", &[]), call, execute("", 0), sync()]],
    )
    .await;
}

/// A client that shuts down its sending side still expects the gateway to run everything that it sent.
#[tokio::test]
async fn messages_sent_before_the_client_shut_down_its_sending_side_run() {
    let stage = Stage::new().await;
    for messages in [
        step![query("copy t from stdin"), frame(b'd', b"70\t1\tx\n"), frame(b'c', b"")],
        step![query("discard all"), query("select 1"), query("select 2")],
        step![query("deallocate all"), parse("s", "select 1"), bind("", "s", &[]), execute("", 0), sync()],
    ] {
        let mut replies = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            stage.direct.batch_execute(RESET).await.unwrap();
            let mut raw = stage.raw(port).await;
            raw.send(&messages).await;
            raw.shut().await;
            replies.push(tags(&raw.until_closed().await));
        }
        assert_eq!(replies[1], replies[0]);
    }
}
