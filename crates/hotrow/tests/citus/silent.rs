//! Workers that do not answer: they hold up no client of another worker for long, and no batch has a commit there whose answer can
//! be lost.

use std::time::{Duration, Instant};

use hotrow_core::limits;
use hotrow_testkit::{config, connect, migrate, until, value};

use crate::Stage;
use crate::faults::{ROWS, TABLE};

/// The port of the worker that has this row.
async fn port_of(stage: &Stage, id: i64) -> u16 {
    let port = format!(
        "select nodeport from citus_shards where shardid = get_shard_id_for_distribution_column('counters', {id})"
    );
    value(&stage.direct, &port).await.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_answer_does_not_hold_up_rows_of_another_node() {
    let Some(stage) = Stage::new(TABLE).await else { return };
    let client = stage.client().await;
    let update = async |id: i64| {
        let text = format!("update counters set n = n + 1 where id = {id}");
        client.batch_execute(&text).await.unwrap();
    };
    until("lanes to both nodes commit", async || {
        for id in 1..=ROWS {
            update(id).await;
        }
        let lanes = stage.lanes().await.into_iter().map(|(node, ..)| node).filter(|node| !node.is_empty());
        lanes.collect::<std::collections::BTreeSet<_>>().len() == 2
    })
    .await;
    let silent = connect(&config(stage.cluster.workers[1].port())).await;
    silent.batch_execute("begin; lock table pg_class in access exclusive mode").await.unwrap();
    client.batch_execute("create table another (id int)").await.unwrap(); // now each statement is judged again
    let mut others = Vec::new();
    for id in 1..=ROWS {
        if port_of(&stage, id).await == stage.cluster.workers[0].port() {
            others.push(id);
        }
    }
    assert!(!others.is_empty(), "the other worker has rows");
    for id in &others {
        let updated = tokio::time::timeout(Duration::from_secs(30), update(*id)).await;
        assert!(updated.is_ok(), "row {id} waits for a node that does not have it");
    }
    client.batch_execute("create table a_third (id int)").await.unwrap();
    let begun = Instant::now();
    update(others[0]).await;
    let limit = Duration::from_millis(limits::NODE_ANSWER_MS);
    assert!(begun.elapsed() < limit, "the node is known to be silent: {:?}", begun.elapsed());
    silent.batch_execute("rollback").await.unwrap();
}

/// A function that changes a distributed table, with its batch form, which the gateway merges.
const BUMP: &str = "
    create function bump_batch(k bigint[]) returns table (n bigint) language plpgsql as $$
    #variable_conflict use_column
    declare one bigint; r bigint;
    begin
      foreach one in array k loop
        update public.counters set n = counters.n + 1 where id = one returning counters.n into r;
        n := r; return next;
      end loop;
    end $$;
    create function bump(k bigint, out n bigint) language sql as $$ select * from public.bump_batch(array[$1]) $$;
    select hotrow.add_merge_rule('public.bump(bigint)', 'public.bump_batch(bigint[])', key_argument => 'k',
                                 key_space => 'public.counters', most_calls => 64)";

/// Citus commits the part on the worker before the coordinator's own transaction, so the coordinator does not know the outcome after
/// a failure. A merged call would also need a prepared transaction on each worker of its keys, where a direct one needs none.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_functions_that_may_change_rows_of_workers_are_not_merged() {
    let Some(stage) = Stage::new(TABLE).await else { return };
    tokio::task::block_in_place(|| migrate(&stage.cluster.coordinator.url()));
    stage.direct.batch_execute(BUMP).await.unwrap();
    let clients = futures_util::future::join_all((0..8).map(|_| stage.client())).await;
    for round in 1..=10 {
        let calls = clients.iter().enumerate().map(|(place, client)| {
            let call = format!("select n from public.bump({})", place % 2 + 1);
            async move { value(client, &call).await }
        });
        let mut answers = futures_util::future::join_all(calls).await;
        answers.sort_by_key(|answer| answer.parse::<i64>().unwrap());
        let expected = (1..=4).flat_map(|call| [4 * (round - 1) + call; 2].map(|n| n.to_string()));
        assert!(answers.iter().eq(&expected.collect::<Vec<_>>()), "{answers:?}");
    }
    assert_eq!(stage.gateway.metric("packed_units_total"), 0);
    // The hotrow schema's own tables are on the coordinator, and its calls are merged.
    let client = stage.client().await;
    until("calls of the hotrow schema are packed", async || {
        value(&client, "select * from hotrow.increment('likes')").await;
        stage.gateway.metric("packed_units_total") > 0
    })
    .await;
}
