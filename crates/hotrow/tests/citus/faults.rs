//! Shards that move and workers that are killed while clients update rows: nothing acknowledged is lost, nothing runs twice, and
//! no statement misses its row.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hotrow_testkit::{connect, rows, sqlstate, until};
use tokio_postgres::Config;

use crate::Stage;

pub const ROWS: i64 = 16;
const CLIENTS: i64 = 12;

pub const TABLE: &str = "create table counters (id bigint primary key, n bigint not null default 0);
    select create_distributed_table('counters', 'id');
    insert into counters select id, 0 from generate_series(1, 16) id";

/// How Citus moves a shard: it keeps writes waiting, or it copies the rows while clients write them.
const MODES: [&str; 3] = ["force_logical", "block_writes", "force_logical"];

/// The environment variable with the duration of each test, in seconds. Without it, the tests end after 20 moves and 10 kills.
const SECONDS: &str = "HOTROW_FAULT_SECONDS";

fn end() -> Instant {
    let seconds = std::env::var(SECONDS).map_or(0, |text| text.parse().expect("a number of seconds"));
    Instant::now() + Duration::from_secs(seconds)
}

/// What the clients were told about one row.
#[derive(Default, Debug, Clone)]
pub struct Told {
    /// The values that updates returned.
    values: Vec<i64>,
    /// Updates whose outcome is unknown.
    pub unknown: usize,
}

pub type All = HashMap<i64, Told>;

/// One client: adds 1 to rows in turn until it is stopped.
async fn add(config: Config, first: i64, stop: Arc<AtomicBool>) -> All {
    let mut told = All::new();
    let mut client = connect(&config).await;
    let mut id = first;
    while !stop.load(Relaxed) {
        id = id % ROWS + 1;
        let of_row = told.entry(id).or_default();
        let updated = client.query("update counters set n = n + 1 where id = $1 returning n", &[&id]).await;
        match updated {
            Ok(rows) => {
                assert_eq!(rows.len(), 1, "the update of row {id} has found no row");
                of_row.values.push(rows[0].get(0));
            }
            Err(error) => {
                if !matches!(sqlstate(&error), "57P03" | "55P03") {
                    of_row.unknown += 1;
                }
                if client.is_closed() {
                    client = connect(&config).await;
                }
                tokio::time::sleep(Duration::from_millis(20)).await; // a client's pause before it tries again
            }
        }
    }
    told
}

/// Runs the clients during `work`. Returns what they were told.
pub async fn during(stage: &Stage, work: impl AsyncFnOnce()) -> All {
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> =
        (0..CLIENTS).map(|first| tokio::spawn(add(stage.gateway.config(), first, stop.clone()))).collect();
    work().await;
    stop.store(true, Relaxed);
    let mut all = All::new();
    for client in clients {
        for (id, told) in client.await.unwrap() {
            let sum = all.entry(id).or_default();
            sum.values.extend(told.values);
            sum.unknown += told.unknown;
        }
    }
    all
}

/// Compares the rows with what the clients were told.
pub async fn check(stage: &Stage, all: &All) {
    let answered: usize = all.values().map(|told| told.values.len()).sum();
    let unknown: usize = all.values().map(|told| told.unknown).sum();
    eprintln!("{answered} updates answered, {unknown} with an unknown outcome");
    let counters = format!("select id, n from counters where id <= {ROWS} order by id");
    for row in rows(&stage.direct, &counters).await.unwrap() {
        let number = |place: usize| row[place].as_deref().unwrap().parse::<i64>().unwrap();
        let (id, n) = (number(0), number(1));
        let mut told = all[&id].clone();
        let answered = told.values.len();
        told.values.sort_unstable();
        told.values.dedup();
        assert_eq!(told.values.len(), answered, "two updates of row {id} returned the same value");
        let most = answered + told.unknown;
        assert!(
            (answered as i64..=most as i64).contains(&n),
            "row {id} is {n} after {answered} answered updates and {} with an unknown outcome",
            told.unknown
        );
        assert!(answered > 0, "no update of row {id} was answered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_moves_under_load_loses_nothing_and_nothing_runs_twice() {
    let Some(stage) = Stage::new(TABLE).await else { return };
    let ports: Vec<u16> = stage.cluster.workers.iter().map(|worker| worker.port()).collect();
    let end = end();
    let all = during(&stage, async || {
        for number in (0..).take_while(|number| *number < 20 || Instant::now() < end) {
            let shards = rows(
                &stage.direct,
                "select distinct s.shardid, s.nodeport from citus_shards s, counters c
                  where s.shardid = get_shard_id_for_distribution_column('counters', c.id) order by 1",
            );
            let shards = shards.await.unwrap();
            let shard = &shards[number % shards.len()];
            let (id, from) = (shard[0].clone().unwrap(), shard[1].clone().unwrap());
            let to = ports.iter().find(|port| port.to_string() != from).unwrap();
            let mode = MODES[number % MODES.len()];
            let moved = format!(
                "select citus_move_shard_placement({id}, '127.0.0.1', {from}, '127.0.0.1', {to}, '{mode}')"
            );
            stage.direct.batch_execute(&moved).await.unwrap();
            let before = stage.units().await;
            until("a lane to a worker commits between two moves", async || stage.units().await > before)
                .await;
        }
    })
    .await;
    check(&stage, &all).await;
    assert!(all.values().all(|told| told.unknown == 0), "a move leaves no outcome unknown: {all:?}");
    let nodes: std::collections::BTreeSet<_> = stage.lanes().await.into_iter().map(|lane| lane.0).collect();
    assert!(nodes.len() >= 2, "lanes of both workers have committed: {nodes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_under_load_loses_nothing_and_nothing_runs_twice() {
    let Some(stage) = Stage::new(TABLE).await else { return };
    let end = end();
    let all = during(&stage, async || {
        for number in (0..).take_while(|number| *number < 10 || Instant::now() < end) {
            let worker = &stage.cluster.workers[number % 2];
            let before = stage.units().await;
            until("lanes to workers commit", async || stage.units().await > before + 100).await;
            tokio::task::block_in_place(|| {
                worker.kill_dash_nine().unwrap();
                worker.restart().unwrap();
            });
            let before = stage.units().await;
            until("a lane to a worker commits again", async || stage.units().await > before).await;
        }
    })
    .await;
    check(&stage, &all).await;
    assert!(stage.units().await > 0, "lanes to workers have committed");
}
