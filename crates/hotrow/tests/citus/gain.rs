//! The demo of `make scale-out`: pgbench on one row, on random rows, with reads, and with calls of a distributed hotrow schema, at the
//! coordinator and through the gateway, as a table. After each run the rows are compared with the answers.

use std::path::Path;
use std::process::Command;

use hotrow_testkit::{Gateway, distribute, hotrow, tool, value};

use crate::{LANES, Stage};

/// The environment variable with the seconds of each run. Without it, the runs are short and the table shows nothing useful.
const SECONDS: &str = "HOTROW_CITUS_SECONDS";
const ROWS: u32 = 10_000;
const SHARDS: usize = 8;
/// More orders than both runs take in a second.
const ORDERS_PER_SECOND: u32 = 50_000;
const TABLE: &str = "create table items (id bigint primary key, n bigint not null);
    select create_distributed_table('items', 'id');
    insert into items select id, 0 from generate_series(1, 10000) id";

/// Requests for the table.
struct Load {
    name: &'static str,
    script: &'static str,
    /// A query for the number of requests that were executed; empty if they change nothing.
    done: &'static str,
}

const DONE: &str = "select sum(n) from items";
const LOADS: [Load; 5] = [
    Load { name: "updates of one row", script: "update items set n = n + 1 where id = 7;", done: DONE },
    Load {
        name: "updates of random rows",
        script: "\\set id random(1, :rows)\nupdate items set n = n + 1 where id = :id;",
        done: DONE,
    },
    Load {
        name: "reads of random rows",
        script: "\\set id random(1, :rows)\nselect n from items where id = :id;",
        done: "",
    },
    Load {
        name: "increments of a counter",
        script: "select value, version, status from hotrow.increment('likes', 1);",
        done: "select value from hotrow.counter('likes')",
    },
    Load {
        name: "orders taken, one a call",
        script: "select receipt, id from hotrow.take('work', 1, '1 hour');",
        done: "select in_flight from hotrow.queue_stats('work')",
    },
];

/// Requests, and requests per second. On a busy machine, a short run can end before all clients are connected.
fn pgbench(program: &Path, port: u16, script: &Path, seconds: &str) -> (u64, f64) {
    let mut command = Command::new(program);
    command.args([
        "-n",
        "-M",
        "prepared",
        "-c",
        "64",
        "-j",
        "1",
        "-T",
        seconds,
        "-h",
        "127.0.0.1",
        "-U",
        "postgres",
    ]);
    command.args(["-p", &port.to_string(), "-D", &format!("rows={ROWS}"), "-f"]).arg(script).arg("postgres");
    let output = command.env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let after = |start: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(start))
            .unwrap_or_else(|| panic!("{start} in {text}"));
        line.split_whitespace().next().unwrap().to_owned()
    };
    let requests = after("number of transactions actually processed: ");
    let requests: u64 = requests.parse().unwrap();
    (requests, if requests == 0 { 0.0 } else { after("tps = ").parse().unwrap() })
}

/// Distributes the hotrow schema, and makes a counter with a ledger and a queue with orders.
async fn make_pack(stage: &mut Stage, seconds: u32) {
    let url = stage.cluster.coordinator.url();
    distribute(&url, SHARDS);
    stage.gateway = Gateway::in_front_of(&url, LANES);
    let made = "select hotrow.create_counter('likes', 'ledger'), hotrow.create_queue('work')";
    stage.direct.batch_execute(made).await.unwrap();
    let orders = "select count(*) from hotrow.enqueue_batch(array_fill('work'::text, array[1000]),
                                                             array(select gen_random_uuid() from generate_series(1, 1000)))";
    for _ in 0..(ORDERS_PER_SECOND * seconds).div_ceil(1_000) {
        stage.direct.batch_execute(orders).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gain_of_lanes_to_nodes_and_rows_that_agree_with_the_answers() {
    let Some(mut stage) = Stage::new(TABLE).await else { return };
    let Some(program) = tool("pgbench") else {
        eprintln!("not run: pgbench is not installed");
        return;
    };
    let seconds = std::env::var(SECONDS).unwrap_or_else(|_| "2".to_owned());
    make_pack(&mut stage, seconds.parse().unwrap()).await;
    let folder = tempfile::tempdir().unwrap();
    println!("\n{:<26}{:>18}{:>18}{:>8}", "requests per second", "coordinator", "through Hotrow", "ratio");
    for Load { name, script, done } in LOADS {
        let path = folder.path().join("script.sql");
        std::fs::write(&path, script).unwrap();
        let before = executed(&stage, done).await;
        let [direct, through] = [stage.cluster.coordinator.port(), stage.gateway.port()]
            .map(|port| tokio::task::block_in_place(|| pgbench(&program, port, &path, &seconds)));
        println!("{name:<26}{:>18.0}{:>18.0}{:>8.1}", direct.1, through.1, through.1 / direct.1);
        let expected = if done.is_empty() { 0 } else { direct.0 + through.0 };
        assert_eq!(executed(&stage, done).await - before, expected, "after {name}");
    }
    let left = "select depth > 0 from hotrow.queue_stats('work')";
    assert_eq!(value(&stage.direct, left).await, "t", "there were enough orders");
    let on_nodes = stage.lanes().await.into_iter().filter(|(node, ..)| !node.is_empty()).count();
    assert!(on_nodes > 0, "lanes to nodes have run the load: {:?}", stage.lanes().await);
    assert!(
        stage.gateway.metric("merged_units_total") > 0,
        "calls of the hotrow schema were merged on nodes"
    );
    let verified =
        hotrow().args(["verify", "--upstream", &stage.cluster.coordinator.url()]).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// The number of requests that were executed, or 0 if they change nothing.
async fn executed(stage: &Stage, query: &str) -> u64 {
    if query.is_empty() { 0 } else { value(&stage.direct, query).await.parse().unwrap() }
}
