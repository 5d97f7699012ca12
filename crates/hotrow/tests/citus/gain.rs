//! The demo of `make scale-out`: pgbench on one row, on random rows and with reads, at the coordinator and through the gateway,
//! as a table. After each run the rows are compared with the answers.

use std::path::Path;
use std::process::Command;

use hotrow_testkit::{tool, value};

use crate::Stage;

/// The environment variable with the seconds of each run. Without it, the runs are short and the table shows nothing useful.
const SECONDS: &str = "HOTROW_CITUS_SECONDS";
const ROWS: u32 = 10_000;
const TABLE: &str = "create table items (id bigint primary key, n bigint not null);
    select create_distributed_table('items', 'id');
    insert into items select id, 0 from generate_series(1, 10000) id";
/// Names, scripts, and whether a request adds 1 to a row.
const LOADS: [(&str, &str, bool); 3] = [
    ("updates of one row", "update items set n = n + 1 where id = 7;", true),
    ("updates of random rows", "\\set id random(1, :rows)\nupdate items set n = n + 1 where id = :id;", true),
    ("reads of random rows", "\\set id random(1, :rows)\nselect n from items where id = :id;", false),
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

#[tokio::test(flavor = "multi_thread")]
async fn the_gain_of_lanes_to_nodes_and_rows_that_agree_with_the_answers() {
    let Some(stage) = Stage::new(TABLE).await else { return };
    let Some(program) = tool("pgbench") else {
        eprintln!("not run: pgbench is not installed");
        return;
    };
    let seconds = std::env::var(SECONDS).unwrap_or_else(|_| "3".to_owned());
    let folder = tempfile::tempdir().unwrap();
    println!("\n{:<24}{:>18}{:>18}{:>8}", "requests per second", "coordinator", "through Hotrow", "ratio");
    let mut expected = 0;
    for (name, script, adds) in LOADS {
        let path = folder.path().join("script.sql");
        std::fs::write(&path, script).unwrap();
        let [direct, through] = [stage.cluster.coordinator.port(), stage.gateway.port()]
            .map(|port| tokio::task::block_in_place(|| pgbench(&program, port, &path, &seconds)));
        println!("{name:<24}{:>18.0}{:>18.0}{:>8.1}", direct.1, through.1, through.1 / direct.1);
        expected += if adds { direct.0 + through.0 } else { 0 };
        assert_eq!(
            value(&stage.direct, "select sum(n) from items").await,
            expected.to_string(),
            "after {name}"
        );
    }
    let on_nodes = stage.lanes().await.into_iter().filter(|(node, ..)| !node.is_empty()).count();
    assert!(on_nodes > 0, "lanes to nodes have run the load: {:?}", stage.lanes().await);
}
