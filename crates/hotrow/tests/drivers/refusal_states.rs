//! The transaction in which a refusal by the gateway leaves its client, for each form of a transaction. It is the one in which
//! an error of the server would leave it, and no later statement of the client runs outside of it.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::raw::{Message, Raw, bind, execute, parse, query, sync, tags};
use hotrow_testkit::{Gateway, connect, value};

use crate::refused::{block_the_lane, cancelled};
use crate::stage::{RESET, Stage, once, step};

/// A statement that the client sends after the refused one.
const LATER: &str = "update t set n = n + 10 where id = 9";

/// A text whose statements can be packed, and one whose statements cannot.
const PACKED: &str = "begin; update t set n = n + 1 where id = 2; commit";
const PASSED: &str = "begin; select count(*) from t; commit";

/// The messages that run a statement without parameters, without a Sync.
fn run(sql: &str) -> Vec<u8> {
    [parse("", sql), bind("", "", &[]), execute("", 0)].concat()
}

/// A transaction in several messages with one Sync.
fn in_one_unit(statement: &str) -> Vec<u8> {
    [run("begin"), run(statement), run("commit"), sync()].concat()
}

/// The status in each ReadyForQuery.
fn statuses(replies: &[Message]) -> String {
    let readies = replies.iter().filter(|message| message.tag == b'Z');
    readies.map(|ready| char::from(ready.body[0])).collect()
}

/// The codes of the errors.
fn codes(replies: &[Message]) -> Vec<String> {
    replies.iter().filter(|message| message.tag == b'E').filter_map(|error| error.field(b'C')).collect()
}

/// Asserts that the client of these replies is in a failed transaction, and that its later statement was refused with it.
async fn assert_failed(
    stage: &Stage,
    raw: &mut Raw,
    replies: &[Message],
    expected: &str,
    code: &str,
    what: &str,
) {
    assert_eq!((&*tags(replies), &*statuses(replies)), (expected, "EE"), "{what}: {replies:?}");
    assert_eq!(codes(replies), [code, "25P02"], "{what}");
    assert_eq!(codes(&raw.query(LATER).await), ["25P02"], "{what}");
    let ended = raw.query("rollback").await;
    assert_eq!((&*tags(&ended), &*statuses(&ended)), ("CZ", "I"), "{what}");
    assert_eq!(value(&stage.direct, "select n from t where id = 9").await, "0", "{what}");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_transaction_without_a_free_connection_fails_in_each_form() {
    let stage = Stage::with(&["--held-connections-max", "1", "--held-wait-ms", "200"]).await;
    stage.direct.batch_execute(RESET).await.unwrap();
    let mut holder = stage.raw(stage.gateway.port()).await;
    holder.query(LATER.replace("10", "0").as_str()).await; // now the gateway has read the catalog
    holder.query("begin; select 1").await;
    let read = "select count(*) from t";
    for (what, messages, expected) in [
        ("in one text", query(PASSED), "CEZEZ"),
        ("that stays open in one text", query("begin; select count(*) from t"), "CEZEZ"),
        ("with modes", query("start transaction isolation level serializable; select 1; commit"), "CEZEZ"),
        ("that chains", query("begin; update t set n = 1 where id = 3; commit and chain"), "CEZEZ"),
        ("in one unit", in_one_unit(read), "12CEZEZ"),
        ("that stays open in one unit", [run("begin"), run(read), sync()].concat(), "12CEZEZ"),
    ] {
        for pack in ["on", "off"] {
            let mut raw = stage.raw(stage.gateway.port()).await;
            assert_eq!(tags(&raw.query(&format!("set hotrow.pack = {pack}")).await), "CZ");
            raw.send(&step![messages.clone(), query(LATER)]).await;
            let replies = raw.until_ready(2).await;
            assert_failed(&stage, &mut raw, &replies, expected, "53300", &format!("{what}, pack {pack}"))
                .await;
        }
    }
    // The gateway has answered the BEGIN.
    for begin in [query("begin"), once("begin", &[])] {
        let mut raw = stage.raw(stage.gateway.port()).await;
        raw.send(&begin).await;
        assert_eq!(statuses(&raw.until_ready(1).await), "T");
        raw.send(&step![once(read, &[]), query(LATER)]).await;
        let replies = raw.until_ready(2).await;
        assert_failed(&stage, &mut raw, &replies, "EZEZ", "53300", "begun").await;
    }
    // The refused statement is not in a transaction.
    for (what, messages) in [
        ("a statement", query(read)),
        ("a unit", [run(read), run(read), sync()].concat()),
        ("a statement before the BEGIN", query("select count(*) from t; begin; select 1; commit")),
    ] {
        let mut raw = stage.raw(stage.gateway.port()).await;
        raw.send(&messages).await;
        let replies = raw.until_ready(1).await;
        assert_eq!((&*tags(&replies), &*statuses(&replies)), ("EZ", "I"), "{what}: {replies:?}");
    }
}

#[tokio::test]
async fn a_text_that_is_cancelled_in_its_lane_or_finds_it_full_leaves_a_failed_transaction() {
    let options = ["--lanes", "1", "--lane-lock-timeout-ms", "60000", "--queue-wait-ms", "60000"];
    let stage = Stage::with(&options).await;
    stage.direct.batch_execute(RESET).await.unwrap();
    let packed = stage.packed();
    for text in [query(PACKED), in_one_unit("update t set n = n + 1 where id = 2")] {
        let mut raw = stage.raw(stage.gateway.port()).await;
        raw.send(&text).await;
        assert_eq!(statuses(&raw.until_ready(1).await), "I");
    }
    assert_eq!(stage.packed() - packed, 2, "both forms are packed");
    let (holder, mut stuck) = block_the_lane(&stage).await;
    let path = format!("-c search_path={}", value(&stage.direct, "select current_schema()").await);
    for (messages, expected) in
        [(query(PACKED), "CEZEZ"), (in_one_unit("update t set n = n + 1 where id = 2"), "12CEZEZ")]
    {
        let (mut raw, replies) = Raw::login_with(stage.gateway.port(), &[("options", &path)]).await;
        let key = replies.iter().find(|message| message.tag == b'K').unwrap();
        raw.send(&messages).await;
        let (mut replies, mut raw) = cancelled(stage.gateway.port(), raw, key, 1).await;
        replies.extend(raw.query(LATER).await);
        assert_failed(&stage, &mut raw, &replies, expected, "57014", "cancelled").await;
    }
    let mut fillers = Vec::new();
    let label = once("update t set label = $1 where id = 6", &[Some("x")]);
    while stage.gateway.metric("refused_total") < 3 {
        let mut filler = stage.raw(stage.gateway.port()).await;
        filler.send(&label.repeat(900)).await;
        fillers.push(filler);
    }
    let mut raw = stage.raw(stage.gateway.port()).await;
    raw.send(&step![query(PACKED), query(LATER)]).await;
    let answered = tokio::spawn(async move { (raw.until_ready(2).await, raw) });
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    while !answered.is_finished() {
        console.simple_query("show lanes").await.unwrap(); // this makes the lane read its new units
    }
    let (replies, mut raw) = answered.await.unwrap();
    assert_failed(&stage, &mut raw, &replies, "CEZEZ", "53000", "a full lane").await;
    holder.batch_execute("rollback").await.unwrap();
    stuck.until_ready(1).await;
    for mut filler in fillers {
        filler.until_ready(900).await;
    }
    assert_eq!(value(&stage.direct, "select n from t where id = 2").await, "2");
    assert_eq!(tags(&raw.query(PACKED).await), "CCCZ", "the session goes on");
}

#[tokio::test]
async fn a_text_for_a_stopped_server_leaves_a_failed_transaction() {
    let server = tokio::task::spawn_blocking(|| PrivateServer::builder().label("texts").start().unwrap());
    let server = server.await.unwrap();
    server.query("create table t (id int primary key, n int); insert into t values (2, 0)").unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &["--server-wait-ms", "300"]);
    let mut raw = Raw::login(gateway.port(), &[]).await;
    assert_eq!(tags(&raw.query(PACKED).await), "CCCZ");
    server.stop().unwrap();
    raw.send(&step![query(PACKED), query(PACKED)]).await;
    let replies = raw.until_ready(2).await;
    assert_eq!((&*tags(&replies), &*statuses(&replies)), ("CEZEZ", "EE"), "{replies:?}");
    assert_eq!(codes(&replies), ["57P03", "25P02"]);
    assert_eq!(tags(&raw.query("rollback").await), "CZ");
    server.restart().unwrap();
    while tags(&raw.query(PACKED).await) != "CCCZ" {
        raw.query("rollback").await; // the lane is not back yet
    }
}
