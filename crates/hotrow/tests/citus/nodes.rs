//! Workers that are added, and workers that are away for a while, while clients update rows: nothing acknowledged is lost, nothing
//! runs twice, and the other nodes go on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hotrow_postgres::Cluster;
use hotrow_testkit::{PATIENCE, config, connect, describe, rows, sqlstate, until, value};

use crate::Stage;
use crate::faults::{ROWS, TABLE, check, during};

/// Runs a command of an operator, again after a deadlock or a lock timeout. Returns how often it has failed.
async fn command(client: &tokio_postgres::Client, text: &str) -> usize {
    let deadline = Instant::now() + PATIENCE * 4;
    for failures in 0.. {
        let Err(error) = client.batch_execute(text).await else { return failures };
        let may_repeat = matches!(sqlstate(&error), "40P01" | "55P03") && Instant::now() < deadline;
        assert!(may_repeat, "{text}: {}", describe(&error));
    }
    unreachable!("the range has no end")
}

/// Changes of the table beside the rebalancer, one after the other. Returns their number, with the attempts that gave up. A change
/// that waits for the rebalancer keeps the rebalancer's next move waiting, and Citus does not notice: without a lock timeout, both
/// would wait without end.
async fn change_the_table(port: u16, stop: &AtomicBool) -> (usize, usize) {
    let client = connect(&config(port)).await;
    client.batch_execute("set lock_timeout = '300ms'").await.unwrap();
    let (mut changes, mut failures) = (0, 0);
    while changes == 0 || !stop.load(Relaxed) {
        failures += command(&client, &format!("alter table counters add column more_{changes} int")).await;
        changes += 1;
        tokio::time::sleep(Duration::from_millis(200)).await; // the rebalancer needs the locks too
    }
    (changes, failures)
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_that_go_to_an_added_worker_lose_nothing_beside_changes_of_their_table() {
    let Some(stage) = Stage::new(TABLE).await else { return };
    let port = stage.cluster.coordinator.port();
    let binaries = stage.cluster.coordinator.binaries();
    let third = Cluster::node(binaries, "worker3", |builder| builder).unwrap();
    let has_lanes = async |node: &str| stage.lanes().await.iter().any(|lane| lane.0 == node);
    let all = during(&stage, async || {
        command(&stage.direct, &format!("select citus_add_node('127.0.0.1', {})", third.port())).await;
        let stop = AtomicBool::new(false);
        let rebalance = async {
            let text = "select rebalance_table_shards(shard_transfer_mode => 'force_logical')";
            command(&stage.direct, text).await;
            stop.store(true, Relaxed);
        };
        let ((), (changes, failures)) = tokio::join!(rebalance, change_the_table(port, &stop));
        assert!(changes + failures > 1, "the table was to be changed beside the rebalancer");
        let node = format!("select groupid from pg_dist_node where nodeport = {}", third.port());
        let node = value(&stage.direct, &node).await;
        until("a lane to the added worker commits", async || has_lanes(&node).await).await;
    })
    .await;
    check(&stage, &all).await;
    assert!(all.values().all(|told| told.unknown == 0), "a move leaves no outcome unknown: {all:?}");
    let placed = format!("select count(*) from citus_shards where nodeport = {}", third.port());
    assert_ne!(
        value(&stage.direct, &placed).await,
        "0",
        "the rebalancer has moved shards to the added worker"
    );
}

/// Rows that the load does not use, so their values show exactly which updates were executed.
const OWN: std::ops::RangeInclusive<i64> = ROWS + 1..=40;
const UPDATE: &str = "update counters set n = n + 1 where id = $1 returning n";

/// The rows of the test, in the order of their nodes' ports, each with its port.
async fn own_rows(stage: &Stage) -> Vec<(i64, String)> {
    let placed = format!(
        "select id, nodeport from generate_series({}, {}) id, citus_shards s
          where s.shardid = get_shard_id_for_distribution_column('counters', id) order by 1",
        OWN.start(),
        OWN.end()
    );
    let placed = rows(&stage.direct, &placed).await.unwrap();
    placed
        .into_iter()
        .map(|row| (row[0].as_deref().unwrap().parse().unwrap(), row[1].clone().unwrap()))
        .collect()
}

/// The test's updates of its rows while a worker is away.
struct Client {
    client: tokio_postgres::Client,
    /// Number of updates of each row that were answered.
    answered: HashMap<i64, i64>,
}

impl Client {
    /// The update of a row has its own value as the answer.
    async fn update(&mut self, id: i64) -> Result<(), tokio_postgres::Error> {
        let rows = self.client.query(UPDATE, &[&id]).await?;
        let answered = self.answered.entry(id).or_default();
        *answered += 1;
        assert_eq!((rows.len(), rows[0].get::<_, i64>(0)), (1, *answered), "row {id}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_worker_is_away_its_units_fail_cleanly_and_the_others_go_on() {
    let table = format!(
        "{TABLE}; insert into counters select id, 0 from generate_series({}, {}) id",
        OWN.start(),
        OWN.end()
    );
    let Some(stage) = Stage::with(&table, &["--server-wait-ms", "500"]).await else { return };
    let mut own = Client { client: stage.client().await, answered: HashMap::new() };
    let all = during(&stage, async || {
        let placed = own_rows(&stage).await;
        for worker in stage.cluster.workers.iter().rev() {
            let before = stage.units().await;
            until("lanes to nodes commit", async || stage.units().await > before + 100).await;
            let (there, here): (Vec<_>, Vec<_>) =
                placed.iter().partition(|(_, port)| *port == worker.port().to_string());
            assert!(!there.is_empty() && !here.is_empty(), "{placed:?}");
            tokio::task::block_in_place(|| worker.stop()).unwrap();
            for _ in 0..3 {
                for (id, _) in &there {
                    let began = Instant::now();
                    let error = own.update(*id).await.unwrap_err();
                    assert!(matches!(sqlstate(&error), "57P03" | "08006"), "row {id}: {}", describe(&error));
                    assert!(began.elapsed() < Duration::from_secs(10), "row {id}: {:?}", began.elapsed());
                }
                for _ in 0..20 {
                    for (id, _) in &here {
                        own.update(*id)
                            .await
                            .unwrap_or_else(|error| panic!("row {id}: {}", describe(&error)));
                    }
                }
            }
            tokio::task::block_in_place(|| worker.restart()).unwrap();
            for (id, _) in &there {
                let deadline = Instant::now() + PATIENCE;
                while let Err(error) = own.update(*id).await {
                    assert!(Instant::now() < deadline, "row {id}: {}", describe(&error));
                    tokio::time::sleep(Duration::from_millis(10)).await; // nothing signals that the node is back
                }
            }
        }
    })
    .await;
    check(&stage, &all).await;
    for (id, answered) in own.answered {
        let n = value(&stage.direct, &format!("select n from counters where id = {id}")).await;
        assert_eq!(n, answered.to_string(), "row {id}: an update that failed was executed");
    }
}
