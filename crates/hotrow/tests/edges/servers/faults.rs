//! Faults of one server: clients of the other go on, and a commit in doubt is asked of the server that had it.

use std::time::{Duration, Instant};

use hotrow_testkit::line::Line;
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};
use hotrow_testkit::{Gateway, PATIENCE, rows, sqlstate, try_connect, until, value};

use crate::servers::{Stage, client, config, databases, servers, write};

const TABLES: &str =
    "create schema s; create table s.t (id int primary key, n int); insert into s.t values (1, 0)";
const UPDATE: &str = "update s.t set n = n + 1 where id = 1 returning n";
/// The longest time that work of one client on the living server may take. It is far below the waits for a server.
const AT_ONCE: Duration = Duration::from_secs(3);

async fn prepare(stage: &Stage) {
    for port in [stage.one.port(), stage.two.port()] {
        client(port, "postgres").await.batch_execute(TABLES).await.unwrap();
    }
}

/// Packed and passed-through work, and a login, on the database `left`. Returns the time that it took.
async fn works(gateway: &Gateway) -> Duration {
    let work = async {
        let client = client(gateway.port(), "left").await;
        for _ in 0..3 {
            client.simple_query(UPDATE).await.unwrap();
            client.batch_execute("begin; select 1 from s.t; commit").await.unwrap();
        }
    };
    let began = Instant::now();
    tokio::time::timeout(PATIENCE, work).await.expect("a client of the living server does not wait");
    began.elapsed()
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_server_that_is_killed_or_hangs_holds_up_no_client_of_another() {
    let stage = Stage::new();
    prepare(&stage).await;
    let tables = [("left", "one", "database = \"postgres\""), ("right", "two", "database = \"postgres\"")];
    let settings = format!("held_connections_max = 3\nheld_wait_ms = 1000\n{}", databases(&tables));
    let gateway = stage.gateway(&settings, &["--server-wait-ms", "60000"]);
    works(&gateway).await;
    let console = client(gateway.port(), "hotrow").await;
    let is = |field: &Option<String>, text| field.as_deref() == Some(text);
    for hangs in [false, true] {
        // More clients than connections that sessions may hold. They all wait for their server.
        let mut waiting = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(client(gateway.port(), "right").await);
        }
        if hangs {
            stage.two.freeze().unwrap()
        } else {
            stage.two.kill_dash_nine().unwrap()
        }
        for (number, client) in clients.into_iter().enumerate() {
            let text = if number % 2 == 0 { UPDATE } else { "begin; select 1 from s.t; commit" };
            waiting.push(tokio::spawn(async move { client.simple_query(text).await.map(drop) }));
        }
        let right = config(gateway.port(), "right").application_name("late").clone();
        let late = tokio::spawn(async move { try_connect(&right).await.map(drop) });
        // The login waits too, or begins to during the work below.
        until("all of them wait for their server", async || {
            let clients = rows(&console, "show clients").await.unwrap();
            let at_work = |row: &&Vec<_>| is(&row[3], "right") && !is(&row[7], "idle");
            let refused = waiting.iter().filter(|client| client.is_finished()).count();
            clients.iter().filter(at_work).count() + refused >= waiting.len()
        })
        .await;
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(works(&gateway).await);
        }
        // A busy machine can make one of them slow. A hold-up by the other server would make all slow.
        assert!(times.iter().filter(|time| **time >= AT_ONCE).count() <= 1, "{times:?}");
        assert!(waiting.iter().any(|client| !client.is_finished()), "the others wait for their server");
        if hangs {
            stage.two.thaw().unwrap()
        } else {
            stage.two.restart().unwrap()
        }
        late.await.unwrap().unwrap();
        for client in waiting {
            if let Err(error) = client.await.unwrap() {
                let codes = ["08006", "08007", "57P01", "57P02", "57P03", "53300", ""];
                assert!(codes.contains(&sqlstate(&error)), "{error:?}");
            }
        }
        let back = client(gateway.port(), "right").await;
        assert_eq!(value(&back, "select current_setting('port')").await, stage.two.port().to_string());
    }
    let outages = gateway.log().lines().filter(|line| line.contains("unreachable")).count();
    assert!(
        outages > 0 && !gateway.log().contains(&format!("unreachable server=127.0.0.1:{}", stage.one.port()))
    );
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_reload_applies_to_one_server_while_another_is_away() {
    let stage = Stage::new();
    prepare(&stage).await;
    let tables =
        databases(&[("left", "one", "database = \"postgres\""), ("right", "two", "database = \"postgres\"")]);
    let gateway = stage.gateway(&tables, &["--server-wait-ms", "60000"]);
    works(&gateway).await;
    let away = client(gateway.port(), "right").await;
    stage.two.kill_dash_nine().unwrap();
    drop(away);
    stage.reload(&gateway, &tables).await;
    works(&gateway).await;
    let lanes =
        "select count(*) from pg_stat_activity where application_name = 'hotrow lane 0' and backend_start > ";
    let direct = client(stage.one.port(), "postgres").await;
    let now = value(&direct, "select clock_timestamp()").await;
    stage.reload(&gateway, &tables).await;
    let renewed = format!("{lanes} '{now}'");
    until("the lane of the living server is renewed", async || {
        works(&gateway).await;
        value(&direct, &renewed).await == "1"
    })
    .await;
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_commit_in_doubt_is_asked_of_the_server_that_had_it() {
    let stage = Stage::new();
    prepare(&stage).await;
    let proxy = Proxy::start(stage.two.port());
    let tables = [("left", "one", "database = \"postgres\""), ("postgres", "two", "")];
    let settings = databases(&tables) + &servers(stage.one.port(), proxy.port());
    let file = write(stage.folder.path(), "proxied.toml", &settings);
    let gateway = Gateway::with(&["--config", file.to_str().unwrap(), "--server-wait-ms", "20000"]);
    works(&gateway).await;
    let mut line = Line::connect(gateway.port(), "s").unwrap().unwrap();
    assert_eq!(line.query(UPDATE).rows(), [[Some("1".to_owned())]]);
    for expected in 2..5 {
        // The server commits, and its answer is lost.
        proxy.arm(Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Swallow });
        let answer = line.query(UPDATE);
        assert_eq!(answer.rows(), [[Some(expected.to_string())]], "{:?}\n{}", answer.error(), gateway.log());
        assert_eq!(proxy.cuts(), expected - 1);
    }
    let direct = client(stage.two.port(), "postgres").await;
    assert_eq!(value(&direct, "select n from s.t").await, "4");
}
