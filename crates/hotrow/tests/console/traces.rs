//! Traces: the spans that a collector gets, and what happens without one. The collector is a small server in the test.
//!
//! Tests that count spans have a server of their own: a CREATE SCHEMA of another test makes the server analyse all statements of the
//! database again. Batches then run twice, and have two spans.

use std::sync::{Arc, Mutex};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};
use hotrow_testkit::{config, connect, free_port, sqlstate, until};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::Stage;

const UPDATE: &str = "update t set n = n + 1 where id = 1";

/// A collector that keeps the spans it gets.
struct Collector {
    settings: String,
    spans: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    /// Answers each request with this status and body.
    async fn start(status: &'static str, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let settings = settings(listener.local_addr().unwrap().port());
        let spans: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = spans.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read_request(&mut stream).await;
                let new = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
                kept.lock().unwrap().extend(new);
                let length = answer.len();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{answer}");
                let _ = stream.write_all(answer.as_bytes()).await; // the gateway may have been stopped
            }
        });
        Collector { settings, spans }
    }

    fn spans(&self) -> Vec<Value> {
        self.spans.lock().unwrap().clone()
    }

    /// Waits until there are this many spans.
    async fn wait_for(&self, count: usize) -> Vec<Value> {
        until(&format!("{count} spans arrive"), || async { self.spans().len() >= count }).await;
        assert_eq!(self.spans().len(), count, "{:#?}", self.spans());
        self.spans()
    }
}

fn settings(port: u16) -> String {
    format!("lanes = 1\ntraces = \"http://127.0.0.1:{port}/v1/traces\"\n")
}

/// The body of a request that is what a collector expects.
async fn read_request(stream: &mut TcpStream) -> Value {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).await.unwrap() > 0, "{head}");
    }
    let head = head.to_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
    let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// A statement of the client's span with this number.
fn traced(statement: &str, span: u8) -> String {
    format!("{statement} /*traceparent='00-{}-{}-01'*/", trace_id(span), span_id(span))
}

fn trace_id(span: u8) -> String {
    format!("{span:032x}")
}

fn span_id(span: u8) -> String {
    format!("{span:016x}")
}

/// The numbers of the clients' spans to which a span has links.
fn links(span: &Value) -> Vec<u8> {
    let links = span["links"].as_array().unwrap().iter().map(|link| {
        let number = u8::from_str_radix(link["spanId"].as_str().unwrap(), 16).unwrap();
        assert_eq!(link, &json!({"traceId": trace_id(number), "spanId": span_id(number)}));
        number
    });
    let mut links: Vec<u8> = links.collect();
    links.sort_unstable();
    links
}

/// The value of an attribute.
fn attribute<'s>(span: &'s Value, key: &str) -> &'s str {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("no {key}: {span:#?}"));
    let value = &found["value"];
    value["stringValue"].as_str().or(value["intValue"].as_str()).unwrap()
}

fn outcome(span: &Value) -> &str {
    attribute(span, "hotrow.batch.outcome")
}

fn counted(stage: &Stage, outcome: &str) -> u64 {
    stage.gateway.metric(&format!("trace_spans_total{{outcome=\"{outcome}\"}}"))
}

#[tokio::test]
async fn units_that_share_a_batch_are_links_of_one_span() {
    let collector = Collector::start("200 OK", "{}").await;
    let (stage, _server) = Stage::alone(&collector.settings).await;
    let console = stage.console().await;
    let prepares = stage.client().await;
    let prepared = prepares.prepare(&traced("update t set n = n + $1 where id = 1", 2)).await.unwrap();
    prepares.execute(&prepared, &[&1_i32]).await.unwrap();
    let first = collector.wait_for(1).await;
    assert_eq!((links(&first[0]), attribute(&first[0], "hotrow.batch.units")), (vec![2], "1"));
    assert!(stage.packs(&stage.client().await).await, "a statement without a comment is in no span");

    console.simple_query("pause").await.unwrap();
    let unsampled = traced(UPDATE, 3).replace("-01'", "-00'");
    let malformed = traced(UPDATE, 4).replace("'00-", "'0-");
    let mut waiting = Vec::new();
    for text in [traced(UPDATE, 1), unsampled, malformed] {
        let client = stage.client().await;
        waiting.push(tokio::spawn(async move { client.batch_execute(&text).await.unwrap() }));
    }
    waiting.push(tokio::spawn(async move {
        prepares.execute(&prepared, &[&1_i32]).await.unwrap();
    }));
    until("all units wait", || async { stage.gateway.metric("queued_units") == 4 }).await;
    console.simple_query("resume").await.unwrap();
    for unit in waiting {
        unit.await.unwrap();
    }

    let spans = collector.wait_for(2).await;
    let span = &spans[1];
    assert_eq!(links(span), [1, 2], "{span:#?}");
    assert_eq!(
        (&span["name"], &span["kind"], &span["droppedLinksCount"]),
        (&json!("hotrow batch"), &json!(3), &json!(0))
    );
    let expected = [
        ("db.system.name", "postgresql"),
        ("hotrow.pool", "postgres@postgres"),
        ("hotrow.lane.kind", "write"),
        ("hotrow.lane.index", "0"),
        ("hotrow.batch.units", "4"),
        ("hotrow.batch.statements", "4"),
        ("hotrow.batch.outcome", "committed"),
    ];
    for (key, value) in expected {
        assert_eq!(attribute(span, key), value, "{key}");
    }
    let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    assert!(time("startTimeUnixNano") < time("endTimeUnixNano"));
    let (one, other) = (spans[0]["traceId"].as_str().unwrap(), span["traceId"].as_str().unwrap());
    assert!(one != other && one.len() == 32 && span.get("parentSpanId").is_none(), "each span is a root");
    until("both spans are counted", || async { counted(&stage, "exported") == 2 }).await;
    assert_eq!(counted(&stage, "dropped"), 0);
}

#[tokio::test]
async fn a_span_says_that_its_batch_was_rolled_back_or_that_its_outcome_is_unknown() {
    let collector = Collector::start("200 OK", "{}").await;
    let server = PrivateServer::builder().label("traces").start().unwrap();
    let proxy = Proxy::start(server.port());
    let settings = format!("{}server_wait_ms = 1000\n", collector.settings);
    let direct = connect(&config(server.port())).await;
    let stage = Stage::with(&proxy.url(), direct, "public".to_owned(), &settings, &[]).await;
    let client = stage.client().await;
    let error = client.batch_execute(&traced("update t set n = n / 0 where id = 1", 1)).await.unwrap_err();
    assert_eq!(sqlstate(&error), "22012");
    let spans = collector.wait_for(1).await;
    assert_eq!((links(&spans[0]), outcome(&spans[0])), (vec![1], "rolled back"));

    // The server commits, and the gateway finds that out on another connection.
    let swallow = Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Swallow };
    client.batch_execute(UPDATE).await.unwrap();
    proxy.arm(swallow);
    client.batch_execute(&traced(UPDATE, 2)).await.unwrap();
    let spans = collector.wait_for(2).await;
    assert_eq!((links(&spans[1]), outcome(&spans[1])), (vec![2], "committed"));

    // No other connection can be made.
    proxy.for_new(|| Some(Fault { way: Way::ToGateway, after: After::Bytes(0), how: How::Cut }));
    proxy.arm(swallow);
    let error = client.batch_execute(&traced(UPDATE, 3)).await.unwrap_err();
    assert_eq!(sqlstate(&error), "08007");
    let spans = collector.wait_for(3).await;
    assert_eq!((links(&spans[2]), outcome(&spans[2])), (vec![3], "unknown"));
    assert_eq!((&spans[1]["status"], &spans[2]["status"]), (&json!({}), &json!({"code": 2})));
}

#[tokio::test]
async fn spans_that_a_collector_does_not_take_are_counted() {
    let away = free_port();
    let rejects = Collector::start("200 OK", r#"{"partialSuccess":{"rejectedSpans":"1000"}}"#).await;
    let fails = Collector::start("503 Service Unavailable", "").await;
    for settings in [settings(away), rejects.settings, fails.settings] {
        let stage = Stage::new(&settings, &[]).await;
        let client = stage.client().await;
        for _ in 0..2 {
            let before = counted(&stage, "dropped");
            // A batch that runs twice has two spans, and a unit that runs alone on a busy machine has none.
            until("another span is counted", || async {
                client.batch_execute(&traced(UPDATE, 1)).await.unwrap();
                counted(&stage, "dropped") > before
            })
            .await;
        }
        assert_eq!(counted(&stage, "exported"), 0);
        let log = stage.gateway.log();
        assert_eq!(log.matches("traces do not reach the collector").count(), 1, "{log}");
    }
}

#[tokio::test]
async fn a_collector_that_does_not_answer_holds_up_no_statement() {
    // The system accepts connections, and nothing reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stage = Stage::new(&settings(silent.local_addr().unwrap().port()), &[]).await;
    let client = stage.client().await;
    let read = traced("select n from t where id = 1", 1);
    // One request is under way with 512 spans at most, and 2,048 wait.
    for _ in 0..3_000 {
        client.batch_execute(&read).await.unwrap();
    }
    assert!(counted(&stage, "dropped") > 0, "3,000 reads are as many batches");
    assert_eq!(counted(&stage, "exported"), 0);
}

#[tokio::test]
async fn a_stop_sends_the_last_spans_and_does_not_wait_for_a_silent_collector() {
    let collector = Collector::start("200 OK", "{}").await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for settings in [&collector.settings, &settings(silent.local_addr().unwrap().port())] {
        let (mut stage, _server) = Stage::alone(settings).await;
        let client = stage.client().await;
        client.batch_execute(&traced(UPDATE, 1)).await.unwrap();
        stage.gateway.sigterm();
        drop(client);
        let ended = tokio::task::spawn_blocking(move || stage.gateway.wait()).await.unwrap();
        assert!(ended.success());
    }
    collector.wait_for(1).await;
}

#[tokio::test]
async fn a_reload_keeps_the_traces() {
    let collector = Collector::start("200 OK", "{}").await;
    let (stage, _server) = Stage::alone(&collector.settings).await;
    let log = stage.reload("lanes = 1\n").await;
    assert!(log.contains("traces has changed, and takes effect at the next start"), "{log}");
    // A pool that is opened after the reload.
    let client = stage.client().await;
    client.batch_execute(&traced(UPDATE, 1)).await.unwrap();
    collector.wait_for(1).await;
}
