//! A cancel request cancels the statement that it is meant for, wherever the statement waits, and no other statement.

use std::sync::Arc;

use hotrow_testkit::raw::{Raw, bind, execute, parse, sync, tags};
use hotrow_testkit::{
    Gateway, PATIENCE, config, connect, patient, rows, server, sqlstate, until, until_it_blocks, value,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_postgres::{CancelToken, Client, NoTls};

use crate::{Stage, UPDATE};

/// The beginning of a cancel request.
const CANCEL: [u8; 8] = [0, 0, 0, 16, 4, 210, 22, 46];

/// Runs a statement in the background. Returns its outcome and the client.
fn run(
    client: Client,
    sql: &'static str,
) -> tokio::task::JoinHandle<(Client, Result<(), tokio_postgres::Error>)> {
    tokio::spawn(async move {
        let outcome = client.simple_query(sql).await.map(drop);
        (client, outcome)
    })
}

/// Sends a cancel request, and waits until the gateway has handled it and closes the connection. `CancelToken::cancel_query` does
/// not wait, so on a busy machine its request can reach the client's next statement.
async fn cancel(gateway: &Gateway, token: &CancelToken) {
    let mut stream = TcpStream::connect(("127.0.0.1", gateway.port())).await.unwrap();
    token.cancel_query_raw(&mut stream, NoTls).await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

async fn asleep(stage: &Stage, count: usize) {
    let sleeping = format!(
        "select count(*) = {count} from pg_stat_activity where wait_event = 'PgSleep' and query like '%{}%'",
        stage.schema
    );
    until("the statements sleep", async || value(&stage.direct, &sleeping).await == "t").await;
}

#[tokio::test]
async fn a_cancel_request_cancels_only_its_own_statement() {
    let stage = Stage::new(&[]).await;
    let (first, second, idle) = (stage.client().await, stage.client().await, stage.client().await);
    let (cancel_first, cancel_second, cancel_idle) =
        (first.cancel_token(), second.cancel_token(), idle.cancel_token());
    let sleep: &'static str = format!("select '{}' from pg_sleep(60)", stage.schema).leak();
    let (sleeper, other) = (run(first, sleep), run(second, sleep));
    asleep(&stage, 2).await;

    cancel(&stage.gateway, &cancel_idle).await;
    cancel(&stage.gateway, &cancel_first).await;
    let (first, outcome) = sleeper.await.unwrap();
    assert_eq!(sqlstate(&outcome.unwrap_err()), "57014");
    asleep(&stage, 1).await;
    assert!(!other.is_finished());
    assert_eq!(value(&first, "select 1").await, "1");
    assert!(stage.packs(&first).await && stage.packs(&idle).await);

    // The first client's connection may serve another client by now. A second request for the first client has no
    // effect.
    cancel(&stage.gateway, &cancel_first).await;
    assert_eq!(value(&idle, "select 'undisturbed' from pg_sleep(0.2)").await, "undisturbed");
    cancel(&stage.gateway, &cancel_second).await;
    let (_, outcome) = other.await.unwrap();
    assert_eq!(sqlstate(&outcome.unwrap_err()), "57014");
}

#[tokio::test]
async fn a_packed_update_that_waits_for_a_lock_can_be_cancelled() {
    let stage = Stage::new(&["--lane-lock-timeout-ms", "2000"]).await;
    let (client, bystander) = (stage.client().await, stage.client().await);
    assert!(stage.packs(&client).await);
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let token = client.cancel_token();
    let waiting = run(client, UPDATE);
    until("the update has left its lane", async || stage.gateway.metric("blocked_units_total") > 0).await;
    let other = run(bystander, "update t set n = n + 1 where id = 2");
    let (bystander, outcome) = other.await.unwrap();
    outcome.unwrap();
    cancel(&stage.gateway, &token).await;
    let (client, outcome) = waiting.await.unwrap();
    assert_eq!(sqlstate(&outcome.unwrap_err()), "57014");
    stage.direct.batch_execute("rollback").await.unwrap();
    assert_eq!(
        value(&bystander, "select n from t where id = 1").await,
        "1",
        "the cancelled update had no effect"
    );
    assert_eq!(value(&client, UPDATE).await, "2");
}

#[tokio::test]
async fn a_cancel_request_that_comes_too_late_has_no_effect() {
    let stage = Stage::new(&[]).await;
    let (client, other) = (stage.client().await, stage.client().await);
    let token = client.cancel_token();
    for _ in 0..20 {
        value(&client, "select count(*) from t").await;
        let ((), answered) = tokio::join!(
            cancel(&stage.gateway, &token),
            other.simple_query("select count(*) from t, pg_sleep(0.01)")
        );
        answered.expect("the request was for another session");
    }
    assert!(stage.packs(&client).await);
}

/// A proxy in front of the server. It signals that a cancel request has arrived, and passes it on when the test allows
/// it.
struct CancelProxy {
    port: u16,
    arrived: Arc<Notify>,
    passes: Arc<Notify>,
}

impl CancelProxy {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = CancelProxy {
            port: listener.local_addr().unwrap().port(),
            arrived: Arc::default(),
            passes: Arc::default(),
        };
        let (arrived, passes) = (proxy.arrived.clone(), proxy.passes.clone());
        tokio::spawn(async move {
            while let Ok((gateway, _)) = listener.accept().await {
                tokio::spawn(carry(gateway, arrived.clone(), passes.clone()));
            }
        });
        proxy
    }
}

async fn carry(mut gateway: TcpStream, arrived: Arc<Notify>, passes: Arc<Notify>) -> std::io::Result<()> {
    let mut start = [0; 8];
    gateway.read_exact(&mut start).await?;
    if start == CANCEL {
        arrived.notify_one();
        passes.notified().await;
    }
    let mut server = TcpStream::connect(("127.0.0.1", server().port())).await?;
    server.write_all(&start).await?;
    copy_bidirectional(&mut gateway, &mut server).await.map(drop)
}

#[tokio::test]
async fn a_connection_serves_no_other_client_while_a_cancel_request_for_it_is_on_its_way() {
    let proxy = CancelProxy::open().await;
    let upstream = format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", proxy.port);
    let gateway = Gateway::in_front_of(&upstream, &patient(&["--held-connections-max", "1"]));
    let stage = Stage { gateway, ..Stage::new(&[]).await };
    let (first, second, third) = (stage.client().await, stage.client().await, stage.client().await);
    assert!(stage.packs(&third).await);
    let watcher = connect(&config(server().port())).await; // inside a transaction, pg_stat_activity does not change
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let token = first.cancel_token();
    let lock: &'static str = format!("select '{}' from t where id = 1 for update", stage.schema).leak();
    let locking = run(first, lock);
    let look = async |what: &str| {
        let query = format!("query like '%{}% for update'", stage.schema);
        value(&watcher, &format!("select count(*) from pg_stat_activity where {query} and {what}")).await
            == "1"
    };
    until("the first waits for the lock", async || look("wait_event_type = 'Lock'").await).await;
    let sleeping = run(second, "select from pg_sleep(1)");
    let cancelling = tokio::spawn(async move { token.cancel_query(NoTls).await });
    tokio::time::timeout(PATIENCE, proxy.arrived.notified())
        .await
        .expect("the gateway passes the request on");
    stage.direct.batch_execute("rollback").await.unwrap();
    until("the server is done with the first", async || !look("state = 'active'").await).await;
    for _ in 0..3 {
        value(&third, UPDATE).await; // in this time the second client could get the connection
    }
    proxy.passes.notify_one();
    cancelling.await.unwrap().unwrap();
    locking.await.unwrap().1.expect("the request came too late for the first client");
    sleeping.await.unwrap().1.expect("the request was not for the second client");
}

#[tokio::test]
async fn a_statement_that_waits_for_a_connection_can_be_cancelled() {
    let stage = Stage::new(&["--held-connections-max", "1", "--held-wait-ms", "60000"]).await;
    let (holder, waiter) = (stage.client().await, stage.client().await);
    let token = waiter.cancel_token();
    holder.batch_execute("begin; select 1").await.unwrap();
    let waiting = run(waiter, "select count(*) from t");
    while !waiting.is_finished() {
        // Repeated until the statement has been read, because a cancel request before that has no effect.
        cancel(&stage.gateway, &token).await;
    }
    let (waiter, outcome) = waiting.await.unwrap();
    assert_eq!(sqlstate(&outcome.unwrap_err()), "57014");
    assert_eq!(value(&holder, "select count(*) from t").await, "2", "the holder is not disturbed");
    holder.batch_execute("commit").await.unwrap();
    assert_eq!(value(&waiter, "select count(*) from t").await, "2", "the waiting session can continue");
}

#[tokio::test]
async fn a_unit_that_waits_in_a_lane_can_be_cancelled() {
    let stage = Stage::new(&["--lanes", "1", "--lane-lock-timeout-ms", "20000"]).await;
    let (first, second, third) = (stage.client().await, stage.client().await, stage.client().await);
    assert!(stage.packs(&first).await);
    value(&second, "update t set n = n + 1 where id = 2 returning n").await;
    // The lane waits for an outsider's lock, and all other units wait in its queue.
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let blocked = run(first, UPDATE);
    until_it_blocks(&stage.direct).await;
    let token = second.cancel_token();
    let queued = run(second, "update t set n = n + 10 where id = 2 returning n");
    let bystander = run(third, "update t set n = n + 100 where id = 2 returning n");
    while !queued.is_finished() {
        cancel(&stage.gateway, &token).await;
    }
    let (second, outcome) = queued.await.unwrap();
    assert_eq!(sqlstate(&outcome.unwrap_err()), "57014");
    assert!(!blocked.is_finished() && !bystander.is_finished());
    stage.direct.batch_execute("rollback").await.unwrap();
    blocked.await.unwrap().1.unwrap();
    bystander.await.unwrap().1.unwrap();
    assert_eq!(
        value(&second, "select n from t where id = 2").await,
        "101",
        "only the cancelled update had no effect"
    );
}

#[tokio::test]
async fn a_unit_that_is_cancelled_while_it_waits_for_a_connection_gives_its_name_no_meaning() {
    let stage = Stage::new(&["--held-connections-max", "2", "--lane-lock-timeout-ms", "2000"]).await;
    let options = format!("-c search_path={}", stage.schema);
    let parameters = [("options", &*options)];
    let (mut raw, replies) = Raw::login_with(stage.gateway.port(), &parameters).await;
    let key = replies.iter().find(|message| message.tag == b'K').unwrap().body.clone();
    let update = "update t set n = n + 1 where id = 1";
    raw.send(&[parse("", update), bind("", "", &[]), execute("", 0), sync()].concat()).await;
    raw.until_ready(1).await; // the verdict is known from now on
    let transaction = stage.direct.batch_execute("begin; update t set n = n where id = 1");
    transaction.await.unwrap();
    let mut holders = Vec::new();
    for _ in 0..2 {
        let mut holder = Raw::login(stage.gateway.port(), &parameters).await;
        holder.query("begin").await;
        holder.query("select 1").await;
        holders.push(holder);
    }
    raw.send(&[parse("a", update), bind("", "a", &[]), execute("", 0), sync()].concat()).await;
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    let waits = async || {
        let clients = rows(&console, "show clients").await.unwrap();
        clients.iter().flatten().flatten().any(|value| value == "waits for a connection")
    };
    until("the unit waits for a connection", waits).await;
    let mut stream = TcpStream::connect(("127.0.0.1", stage.gateway.port())).await.unwrap();
    stream.write_all(&[&CANCEL[..], &key].concat()).await.unwrap();
    let cancelled = raw.until_ready(1).await;
    assert_eq!(cancelled[0].field(b'C').as_deref(), Some("57014"), "{cancelled:?}");
    stage.direct.batch_execute("rollback").await.unwrap();
    drop(holders);
    raw.send(&[parse("a", "select 7"), bind("", "a", &[]), execute("", 0), sync()].concat()).await;
    assert_eq!(tags(&raw.until_ready(1).await), "12DCZ");
}
