//! A cancel request reaches a statement that the gateway has not sent to the server yet, whatever the statement waits for.

use std::sync::Arc;

use hotrow_testkit::raw::{Message, Raw, bind, execute, parse, query, sync, tags};
use hotrow_testkit::{Gateway, PATIENCE, connect, patient, rows, server, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_postgres::Client;

use crate::Stage;

/// A client with its key.
struct Canceller {
    port: u16,
    request: Vec<u8>,
}

impl Canceller {
    /// A connection with the stage's schema as its search path, and a canceller for it.
    async fn connect(stage: &Stage) -> (Raw, Self) {
        let options = format!("-c search_path={}", stage.schema);
        let port = stage.gateway.port();
        let (raw, replies) = Raw::login_with(port, &[("options", &options)]).await;
        let key = replies.iter().find(|message| message.tag == b'K').unwrap();
        let request = [&[0, 0, 0, 16, 4, 210, 22, 46][..], &key.body].concat();
        (raw, Canceller { port, request })
    }

    /// Sends a cancel request, and waits until the gateway has handled it.
    async fn cancel(&self) {
        let mut stream = Raw::open(self.port).await;
        stream.send(&self.request).await;
        stream.until_closed().await;
    }
}

/// Waits until a client is in this state.
async fn until_it(console: &Client, state: &str) {
    let is_there = async || {
        let clients = rows(console, "show clients").await.unwrap();
        clients.iter().flatten().flatten().any(|value| value == state)
    };
    until(state, is_there).await;
}

/// The tags, the codes of errors and the statuses of replies.
fn shown(replies: &[Message]) -> String {
    let shown = replies.iter().map(|message| match message.tag {
        b'E' => message.field(b'C').unwrap(),
        b'Z' => format!("Z{}", char::from(message.body[0])),
        tag => char::from(tag).to_string(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_statement_about_which_the_catalog_is_asked_can_be_cancelled() {
    let question = Question::open(b"hotrow_question_").await;
    let options = ["--held-connections-max", "1", "--held-wait-ms", "60000"];
    let gateway = Gateway::in_front_of(&question.upstream(), &patient(&options));
    let stage = Stage { gateway, ..Stage::new(&[]).await };
    let holder = stage.client().await;
    holder.batch_execute("begin; select 1").await.unwrap();
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    // A table of its own for each: nothing is asked about what is known.
    let tables =
        ["a", "b", "c", "d", "e"].map(|name| format!("create table t_{name} (id int primary key, n int)"));
    stage.direct.batch_execute(&tables.join("; ")).await.unwrap();
    let update = |name: &str| format!("update t_{name} set n = n + 1 where id = 1");
    let run = |sql: &str| [parse("", sql), bind("", "", &[]), execute("", 0), sync()].concat();
    let in_block = [query("begin"), query(&update("e")), query("commit")].concat();
    for (messages, readies, expected) in [
        (query(&update("a")), 1, "57014 ZI"),
        (run(&update("b")), 1, "57014 ZI"),
        (query(&format!("{}; {}", update("c"), update("c"))), 1, "57014 ZI"),
        (query(&format!("begin; {}; commit", update("d"))), 1, "C 57014 ZE"),
        (in_block, 3, "C ZT 57014 ZE C ZI"),
        (query(&format!("select pg_sleep(0), '{}'", stage.schema)), 1, "57014 ZI"),
    ] {
        let (mut raw, canceller) = Canceller::connect(&stage).await;
        question.is_held.send_replace(true);
        raw.send(&messages).await;
        until_it(&console, "waits for the catalog").await;
        canceller.cancel().await;
        let replies = raw.until_ready(readies).await;
        question.is_held.send_replace(false);
        assert_eq!(shown(&replies), expected);
        if expected.ends_with("ZE") {
            assert_eq!(shown(&raw.query("rollback").await), "C ZI");
        }
    }
    holder.batch_execute("commit").await.unwrap();
    let (mut raw, _) = Canceller::connect(&stage).await;
    assert_eq!(tags(&raw.query("select n from t where id = 1 and n = 0").await), "TDCZ", "nothing has run");
}

/// A proxy in front of the server. It can hold a question of the gateway.
struct Question {
    port: u16,
    arrived: Arc<Notify>,
    is_held: watch::Sender<bool>,
}

impl Question {
    /// `part` is a part of the question.
    async fn open(part: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let question = Question { port, arrived: Arc::default(), is_held: watch::Sender::new(false) };
        let (arrived, is_held) = (question.arrived.clone(), question.is_held.subscribe());
        tokio::spawn(async move {
            while let Ok((gateway, _)) = listener.accept().await {
                let stream = TcpStream::connect(("127.0.0.1", server().port())).await.unwrap();
                let (from_server, to_server) = stream.into_split();
                let (from_gateway, to_gateway) = gateway.into_split();
                tokio::spawn(carry(from_server, to_gateway, None));
                let hold = Hold { part, arrived: arrived.clone(), is_held: is_held.clone() };
                tokio::spawn(carry(from_gateway, to_server, Some(hold)));
            }
        });
        question
    }

    fn upstream(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }
}

struct Hold {
    part: &'static [u8],
    arrived: Arc<Notify>,
    is_held: watch::Receiver<bool>,
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut hold: Option<Hold>,
) -> std::io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        if let Some(Hold { part, arrived, is_held }) = &mut hold
            && bytes[..count].windows(part.len()).any(|found| found == *part)
        {
            arrived.notify_one();
            let _ = is_held.wait_for(|is_held| !is_held).await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}

#[tokio::test]
async fn a_statement_that_waits_for_a_query_of_the_gateway_can_be_cancelled() {
    let question = Question::open(b"pg_listening_channels").await;
    let gateway = Gateway::in_front_of(&question.upstream(), &patient(&[]));
    let stage = Stage { gateway, ..Stage::new(&[]).await };
    let sleep = "select pg_sleep(300)";
    for (set, is_extended) in [("set work_mem = '5MB'", false), ("set enable_seqscan = off", true)] {
        let (mut raw, canceller) = Canceller::connect(&stage).await;
        question.is_held.send_replace(true);
        assert_eq!(shown(&raw.query(set).await), "C ZI");
        tokio::time::timeout(PATIENCE, question.arrived.notified()).await.expect("the gateway asks");
        let messages = match is_extended {
            true => [parse("", sleep), bind("", "", &[]), execute("", 0), sync()].concat(),
            false => query(sleep),
        };
        raw.send(&messages).await;
        let cancelling = tokio::spawn(async move { canceller.cancel().await });
        let console = connect(stage.gateway.config().dbname("hotrow")).await;
        rows(&console, "show clients").await.unwrap(); // the request has probably arrived by now
        question.is_held.send_replace(false);
        let replies = raw.until_ready(1).await;
        assert!(shown(&replies).ends_with("57014 ZI"), "{replies:?}");
        cancelling.await.unwrap();
        // A request that finds no statement cancels nothing.
        let (_, canceller) = Canceller::connect(&stage).await;
        canceller.cancel().await;
        assert_eq!(shown(&raw.query("select 1").await), "T D C ZI");
    }
}
