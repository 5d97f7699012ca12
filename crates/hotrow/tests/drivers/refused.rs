//! Transactions whose BEGIN, statements and COMMIT are separate messages, when the gateway itself has to answer: each
//! message gets its ReadyForQuery, because the client counts them, and the replies are those to a transaction that has failed.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::raw::{Message, Raw, bind, execute, parse, query, sync, tags};
use hotrow_testkit::{Gateway, config_in, connect, until, until_it_blocks, value};

use tokio_postgres::Client;

use crate::stage::{RESET, Stage, UPDATE, once, step};

/// ReadyForQuery of the block's five messages (simple and extended queries) and of the query after the block.
const READIES: usize = 6;
/// Units that a client can send without waiting.
const FILLER_UNITS: usize = 900;

fn block(id: &str) -> Vec<u8> {
    let text = format!("update t set n = n + 1 where id = {id}");
    step![query("begin"), once(UPDATE, &[Some(id)]), query(&text), once(UPDATE, &[Some(id)]), query("commit")]
}

/// The block and a query after it, sent together.
fn with_query_after(id: &str) -> Vec<u8> {
    step![block(id), query("select n from t where id = 9")]
}

/// Asserts that the first statement of a block got this error, as if the server had reported it.
fn assert_rejected(replies: &[Message], code: &str) {
    assert_eq!(tags(replies), "CZEZEZEZCZ", "{replies:?}");
    let bodies = |place: usize| replies.iter().skip(place).step_by(2);
    let codes: Vec<_> =
        bodies(0).filter_map(|error| error.field(b'C').filter(|_| error.tag == b'E')).collect();
    assert_eq!(codes, [code, "25P02", "25P02"]);
    assert_eq!((&*replies[0].body, &*replies[8].body), (&b"BEGIN\0"[..], &b"ROLLBACK\0"[..]));
    assert!(bodies(1).map(|ready| &*ready.body).eq([b"T", b"E", b"E", b"E", b"I"]), "{replies:?}");
}

async fn n(stage: &Stage, id: &str) -> String {
    value(&stage.direct, &format!("select n from t where id = {id}")).await
}

/// A stage with a filled table, and a client whose block has been packed.
async fn ready(options: &[&str]) -> (Stage, Raw) {
    let stage = Stage::with(options).await;
    stage.direct.batch_execute(RESET).await.unwrap();
    let mut raw = stage.raw(stage.gateway.port()).await;
    let packed = stage.packed();
    raw.send(&with_query_after("1")).await;
    assert_eq!(tags(&raw.until_ready(READIES).await), "CZ12TDCZCZ12TDCZCZTDCZ");
    assert_eq!(stage.packed() - packed, 2, "the block is one unit");
    (stage, raw)
}

/// Blocks the gateway's only lane by another client's lock, until that client rolls back.
pub async fn block_the_lane(stage: &Stage) -> (Client, Raw) {
    let schema = value(&stage.direct, "select current_schema()").await;
    let holder = connect(&config_in(hotrow_testkit::server().port(), &schema)).await;
    let mut stuck = stage.raw(stage.gateway.port()).await;
    holder.batch_execute("begin; update t set n = n where id = 5").await.unwrap();
    stuck.send(&once(UPDATE, &[Some("5")])).await;
    until_it_blocks(&holder).await;
    (holder, stuck)
}

/// The replies to what a client has sent, up to this many ReadyForQuery. It is cancelled again and again until they are there, because
/// a cancel request before the gateway has read the messages has no effect.
pub async fn cancelled(port: u16, mut client: Raw, key: &Message, readies: usize) -> (Vec<Message>, Raw) {
    let request = [&16_u32.to_be_bytes()[..], &80_877_102_u32.to_be_bytes(), &key.body].concat();
    let answered = tokio::spawn(async move { (client.until_ready(readies).await, client) });
    while !answered.is_finished() {
        let mut cancel = Raw::open(port).await;
        cancel.send(&request).await;
        cancel.until_closed().await;
    }
    answered.await.unwrap()
}

#[tokio::test]
async fn a_block_cancelled_in_its_lane_has_failed() {
    let (stage, mut raw) = ready(&["--lanes", "1", "--lane-lock-timeout-ms", "60000"]).await;
    let (holder, mut stuck) = block_the_lane(&stage).await;
    let path = format!("-c search_path={}", value(&stage.direct, "select current_schema()").await);
    let (mut client, replies) = Raw::login_with(stage.gateway.port(), &[("options", &path)]).await;
    let key = replies.iter().find(|message| message.tag == b'K').unwrap();
    client.send(&block("2")).await;
    let (replies, mut client) = cancelled(stage.gateway.port(), client, key, 5).await;
    assert_rejected(&replies, "57014");
    assert_eq!(tags(&client.query("select 1").await), "TDCZ", "no reply is left over");
    holder.batch_execute("rollback").await.unwrap();
    assert_eq!(tags(&stuck.until_ready(1).await), "12TDCZ");
    assert_eq!(n(&stage, "2").await, "0");
    raw.send(&with_query_after("2")).await;
    raw.until_ready(READIES).await;
    assert_eq!(n(&stage, "2").await, "3");
}

#[tokio::test]
async fn a_block_for_a_full_lane_has_failed() {
    let options = ["--lanes", "1", "--lane-lock-timeout-ms", "60000", "--queue-wait-ms", "60000"];
    let (stage, mut raw) = ready(&options).await;
    let (holder, mut stuck) = block_the_lane(&stage).await;
    // More units than a lane's queue takes.
    let mut fillers = Vec::new();
    let label = once("update t set label = $1 where id = 6", &[Some("x")]);
    while stage.gateway.metric("refused_total") == 0 {
        let mut filler = stage.raw(stage.gateway.port()).await;
        filler.send(&label.repeat(FILLER_UNITS)).await;
        fillers.push(filler);
    }
    raw.send(&block("2")).await;
    let answered = tokio::spawn(async move { (raw.until_ready(5).await, raw) });
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    while !answered.is_finished() {
        console.simple_query("show lanes").await.unwrap(); // this makes the lane read its new units
    }
    let (replies, mut raw) = answered.await.unwrap();
    assert_rejected(&replies, "53000");
    assert_eq!(n(&stage, "2").await, "0");
    holder.batch_execute("rollback").await.unwrap();
    stuck.until_ready(1).await;
    for mut filler in fillers {
        filler.until_ready(FILLER_UNITS).await;
    }
    raw.send(&with_query_after("2")).await;
    raw.until_ready(READIES).await;
    assert_eq!(n(&stage, "2").await, "3");
}

#[tokio::test]
async fn a_block_that_a_lane_gave_back_is_rejected_without_a_free_connection() {
    let (stage, mut raw) = ready(&["--held-connections-max", "1", "--held-wait-ms", "200"]).await;
    let mut holder = stage.raw(stage.gateway.port()).await;
    holder.query("begin; select 1").await;
    stage.direct.batch_execute("update t set n = 98 where id = 2").await.unwrap();
    raw.send(&with_query_after("2")).await; // n < 100
    let replies = raw.until_ready(READIES).await;
    assert_rejected(&replies[..10], "53300");
    assert_eq!(tags(&replies[10..]), "TDCZ");
    assert_eq!(n(&stage, "2").await, "98");
    holder.query("rollback").await;
    raw.send(&with_query_after("2")).await;
    assert_eq!(tags(&raw.until_ready(READIES).await), "CZ12TDCZEZEZCZTDCZ", "the server reports the error");
    assert_eq!(n(&stage, "2").await, "98");
}

#[tokio::test]
async fn a_block_for_a_stopped_server_has_failed() {
    let server = tokio::task::spawn_blocking(|| PrivateServer::builder().label("blocks").start().unwrap());
    let server = server.await.unwrap();
    server.query("create table t (id int primary key, n int); insert into t values (2, 0), (9, 0)").unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &["--server-wait-ms", "300"]);
    let mut raw = Raw::login(gateway.port(), &[]).await;
    for _ in 0..2 {
        raw.send(&with_query_after("2")).await;
        assert_eq!(tags(&raw.until_ready(READIES).await), "CZ12TDCZCZ12TDCZCZTDCZ");
    }
    let named = |name: &str| {
        let update = "update t set n = n + 1 where id = 9 returning n";
        step![parse(name, update), bind("", name, &[]), execute("", 0), sync()]
    };
    raw.send(&named("first")).await;
    assert_eq!(tags(&raw.until_ready(1).await), "12DCZ");
    let client = connect(&gateway.config()).await;
    server.stop().unwrap();
    raw.send(&with_query_after("2")).await;
    let replies = raw.until_ready(READIES).await;
    assert_rejected(&replies[..10], "57P03");
    assert_eq!(tags(&replies[10..]), "EZ");
    raw.send(&named("second")).await;
    let replies = raw.until_ready(1).await;
    assert_eq!((&*tags(&replies), replies[0].field(b'C').as_deref()), ("EZ", Some("57P03")));
    server.restart().unwrap();
    let update = "update t set n = n + 1 where id = 9";
    until("the lane is back", async || client.simple_query(update).await.is_ok()).await;
    raw.send(&step![named("second"), named("first")]).await;
    assert_eq!(
        tags(&raw.until_ready(2).await),
        "12DCZEZ",
        "only the statement whose Parse succeeded has a name"
    );
    assert_eq!(value(&client, "select n from t where id = 2").await, "6", "a rejected block has no effect");
}

/// A BEGIN that the gateway does not answer is passed through and can be rejected there.
#[tokio::test]
async fn a_begin_that_gets_no_connection_closes_the_session() {
    let stage = Stage::with(&["--held-connections-max", "1", "--held-wait-ms", "200"]).await;
    stage.direct.batch_execute(RESET).await.unwrap();
    let mut holder = stage.raw(stage.gateway.port()).await;
    let read = "select n from t where id = 3";
    holder.query(read).await; // now the gateway has read the catalog
    holder.query("begin; select 1").await;
    let update = "update t set n = n + 1 where id = 3";
    let whole = once("begin", &[]);
    for (what, messages) in
        [("text", step![query("begin"), query(update)]), ("extended", step![whole, query(update)])]
    {
        let mut raw = stage.raw(stage.gateway.port()).await;
        assert_eq!(tags(&raw.query("set hotrow.pack = off").await), "CZ");
        raw.send(&messages).await;
        let replies = raw.until_closed().await;
        assert_eq!(tags(&replies), "E", "{what}: {replies:?}");
        assert_eq!(replies[0].field(b'C').as_deref(), Some("53300"), "{what}");
        assert_eq!(replies[0].field(b'V').as_deref(), Some("FATAL"), "{what}");
    }
    let mut raw = stage.raw(stage.gateway.port()).await;
    for (pack, alone) in [("off", "begin"), ("on", "select count(*) from t")] {
        assert_eq!(tags(&raw.query(&format!("set hotrow.pack = {pack}")).await), "CZ");
        assert_eq!(tags(&raw.query(alone).await), "EZ", "{alone}: no message follows");
    }
    raw.send(&step![query("select count(*) from t"), query(read)]).await;
    assert_eq!(tags(&raw.until_ready(2).await), "EZTDCZ", "no transaction begins there");

    // The gateway has answered this BEGIN, and its transaction has failed.
    raw.send(&step![query("begin"), query("select count(*) from t"), query(update), query("commit")]).await;
    let replies = raw.until_ready(4).await;
    assert_eq!(tags(&replies), "CZEZEZCZ");
    let code = |place: usize| replies[place].field(b'C');
    assert_eq!((code(2).as_deref(), code(4).as_deref()), (Some("53300"), Some("25P02")));
    assert_eq!(n(&stage, "3").await, "0");
}
