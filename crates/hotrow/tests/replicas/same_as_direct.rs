//! Random statements of one session with `hotrow.reads = replica` have the answers of a direct connection to the primary, also
//! while replicas lag and change. A driver that prepares each statement asks for a position once.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::future::join_all;
use hotrow_testkit::{config, connect, sqlstate};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::{READ, Stage, read, write};

/// Sessions at one time.
const SESSIONS: i32 = 4;
/// The statements of a session in a round, and the least number of rounds. There are more rounds if replicas have answered few
/// reads: on a busy machine most answers are slow.
const STATEMENTS: usize = 150;
const ROUNDS: usize = 4;
/// A round takes some seconds, or many on a busy machine.
const ROUNDS_PATIENCE: Duration = Duration::from_secs(240);
/// A session's rows, and those that its batch function on a direct connection uses.
const ROWS: i32 = 5;
const TWIN: i32 = 1000;

/// One step of a session. The row is the first one's or the batch function's.
async fn step(client: &Client, kind: u8, row: i32, round: usize) -> String {
    let simple = |sql: String| async move { shown(client.simple_query(&sql).await) };
    match kind {
        // A shape for each row and round: a batch that a standby of a busy machine answers slowly sends the next reads of its
        // shapes to the primary.
        0 | 1 => {
            simple(format!("select n, note as note_{}_{round} from item where id = {row}", row % TWIN)).await
        }
        2 | 3 => match client.query(READ, &[&row]).await {
            Ok(rows) => format!("{:?}", rows.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>()),
            Err(error) => sqlstate(&error).to_owned(),
        },
        4 => match client.query_typed("select n from item where id = $1", &[(&row, Type::INT4)]).await {
            Ok(rows) => format!("{:?}", rows.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>()),
            Err(error) => sqlstate(&error).to_owned(),
        },
        5 => simple(format!("update item set n = n + 1 where id = {row} returning n")).await,
        6 => simple(format!("insert into item values ({row}, 7, 'again') on conflict (id) do nothing")).await,
        7 => simple(format!("delete from item where id = {row}")).await,
        8 => simple(format!("begin; update item set note = note || '.' where id = {row}; select note from item where id = {row}; commit")).await,
        9 => simple(format!("begin; update item set n = -1 where id = {row}; rollback; select n from item where id = {row}")).await,
        10 => simple(format!("select n / (n - n) from item where id = {row}")).await,
        11 => simple(format!("select n from item where id = {row}; select note from item where id = {row}")).await,
        12 => simple("begin".to_owned()).await + &simple(format!("select n from item where id = {row}")).await
            + &simple(format!("update item set n = n + 2 where id = {row}")).await + &simple("commit".to_owned()).await,
        13 => simple("selct".to_owned()).await,
        _ => match client.prepare("select note, n from item where id = $1").await {
            Ok(statement) => format!("{:?}", statement.columns().iter().map(|column| column.name().to_owned()).collect::<Vec<_>>()),
            Err(error) => sqlstate(&error).to_owned(),
        },
    }
}

/// An answer without the number of the row, which the batch function does not share.
fn shown(answer: Result<Vec<SimpleQueryMessage>, tokio_postgres::Error>) -> String {
    let shown = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            (0..row.len()).map(|column| format!("{:?} ", row.get(column))).collect()
        }
        SimpleQueryMessage::CommandComplete(count) => format!("({count}) "),
        _ => String::new(),
    };
    match answer {
        Ok(messages) => messages.iter().map(shown).collect(),
        Err(error) => sqlstate(&error).to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make test-all"]
async fn a_session_that_reads_from_replicas_gets_the_answers_of_a_direct_connection() {
    // On a busy machine a standby is behind for longer than the pauses of its replay.
    let stage = Stage::new(&["--replica-wait-ms", "10", "--replica-lag-max-ms", "1000"]).await;
    stage
        .direct
        .batch_execute("insert into item select id, 0, 'first' from generate_series(1001, 1100) id")
        .await
        .unwrap();
    stage.reader().await;
    let seed = hotrow_testkit::seed();
    let mut sessions = Vec::new();
    for session in 0..SESSIONS {
        let direct = connect(&config(stage.primary.port())).await;
        sessions.push((session, stage.client().await, direct, Rng::with_seed(seed + session as u64)));
    }
    let run = async |round, (session, client, direct, random): &mut (i32, Client, Client, Rng)| {
        for place in 0..STATEMENTS {
            let (kind, row) = (random.u8(..15), 1 + *session * ROWS + random.i32(..ROWS));
            let through = step(client, kind, row, round).await;
            let directly = step(direct, kind, row + TWIN, round).await;
            assert_eq!(
                through, directly,
                "HOTROW_SEED={seed}: session {session}, round {round}, statement {place} of kind {kind}"
            );
        }
    };
    let done = AtomicBool::new(false);
    let pauses = stage.pause_replay(&done, Duration::from_millis(60), Duration::from_millis(40));
    let ends = async {
        let deadline = Instant::now() + ROUNDS_PATIENCE;
        let mut round = 0;
        while round < ROUNDS || stage.replica_reads() <= 100 && Instant::now() < deadline {
            join_all(sessions.iter_mut().map(|session| run(round, session))).await;
            round += 1;
            // With pauses, a standby of a busy machine can be too far behind for all reads.
            done.store(round >= ROUNDS, SeqCst);
        }
    };
    tokio::join!(pauses, ends);
    let (on_replicas, fallbacks) = (stage.replica_reads(), stage.gateway.metric("replica_fallbacks_total"));
    println!("{on_replicas} reads on replicas, {fallbacks} on the primary");
    assert!(on_replicas > 100, "{on_replicas} reads on replicas, {fallbacks} on the primary");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_driver_that_prepares_before_each_read_asks_for_one_position() {
    let stage = Stage::new(&[]).await;
    let client = stage.reader().await;
    write(&client, 3).await;
    let metric = |name| stage.gateway.metric(name);
    let mut searches = 0;
    let (mut asked, mut on_replicas) = (0, 0);
    // A standby of a busy machine may not answer in time. The primary then answers, also the next reads if the batch was slow.
    for _ in 0..3 {
        searches = metric("replica_searches_total");
        let reads = stage.replica_reads();
        for _ in 0..50 {
            // Prepares, describes, and then runs, each in a unit of its own.
            assert_eq!(client.query_one(READ, &[&3]).await.unwrap().get::<_, i64>(0), 1);
        }
        on_replicas = stage.replica_reads() - reads;
        asked = metric("replica_searches_total") - searches;
        if on_replicas >= 40 {
            break;
        }
        tokio::time::sleep(Duration::from_secs(2)).await; // a slow statement runs in a lane again after a while
    }
    assert!((40..=50).contains(&on_replicas), "{on_replicas} reads on replicas");
    assert!((1..10).contains(&asked), "{asked} questions for {on_replicas} reads");
    // An error of a preparation can show something new. While no standby answers in time, the primary is read without a
    // question.
    let asks_again = || async {
        client.prepare("select n from nothing").await.unwrap_err();
        read(&client, 3).await;
        metric("replica_searches_total") - searches > asked
    };
    stage.wait_for("a question after an error", asks_again).await;
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn the_lag_of_a_replica_is_shown() {
    let stage = Stage::new(&["--replica-lag-max-ms", "60000"]).await;
    let client = stage.reader().await;
    let [paused, _] = &stage.standbys;
    let address = format!("replica=\"127.0.0.1:{}\"", paused.port());
    let lag = |name: &str| {
        let text = stage.gateway.metrics();
        let line = text.lines().find(|line| line.starts_with(name) && line.contains(&address));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
    };
    assert!(lag("hotrow_replica_lag_seconds").is_some_and(|seconds| seconds < 5.0));
    let position = async || {
        let rows = hotrow_testkit::rows(&stage.console, "show replicas").await.unwrap();
        rows[0][5].clone().unwrap()
    };
    paused.query("select pg_wal_replay_pause()").unwrap();
    let before = position().await;
    stage
        .wait_for("a lag of two seconds", || async {
            stage.direct.execute("update item set n = n + 1 where id = 3", &[]).await.unwrap();
            read(&client, 1).await;
            lag("hotrow_replica_lag_seconds").is_some_and(|seconds| seconds > 2.0)
        })
        .await;
    assert!(lag("hotrow_replica_lag_bytes").unwrap() > 100.0);
    paused.query("select pg_wal_replay_resume()").unwrap();
    stage
        .wait_for("no lag, and another position", || async {
            read(&client, 1).await;
            position().await != before
                && lag("hotrow_replica_lag_seconds").is_some_and(|seconds| seconds < 1.0)
        })
        .await;
    paused.kill_dash_nine().unwrap();
    stage
        .wait_for("an unknown lag of a replica that is away", || async {
            read(&client, 1).await;
            lag("hotrow_replica_lag_seconds").is_none()
        })
        .await;
}
