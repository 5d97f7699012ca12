//! A worker that does not answer: it holds up no client of another worker for long, and a commit whose answer is lost there is
//! not repeated.

use std::time::Duration;

use hotrow_testkit::{config, connect, migrate, rows, sqlstate, until, value};

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
    let mut others = 0;
    for id in 1..=ROWS {
        if port_of(&stage, id).await == stage.cluster.workers[0].port() {
            let updated = tokio::time::timeout(Duration::from_secs(30), update(id)).await;
            assert!(updated.is_ok(), "row {id} waits for a node that does not have it");
            others += 1;
        }
    }
    assert!(others > 0, "the other worker has rows");
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

/// Citus commits the part on the worker first. If the connection to the worker is lost before the worker's answer, the commit
/// fails, and the part is committed.
#[tokio::test(flavor = "multi_thread")]
async fn a_merged_call_whose_part_is_committed_does_not_run_again() {
    let Some(stage) = Stage::new(TABLE).await else { return };
    tokio::task::block_in_place(|| migrate(&stage.cluster.coordinator.url()));
    stage.direct.batch_execute(BUMP).await.unwrap();
    let bump = "select n from public.bump(2)";
    let client = stage.client().await;
    until("calls are packed", async || {
        let before = stage.gateway.metric("packed_units_total");
        value(&client, bump).await;
        stage.gateway.metric("packed_units_total") > before
    })
    .await;
    let before: i64 = value(&stage.direct, "select n from counters where id = 2").await.parse().unwrap();
    let worker = connect(&config(port_of(&stage, 2).await)).await;
    // The worker's commit is done, and waits for a standby that does not exist before it is answered.
    for text in ["alter system set synchronous_standby_names = 'nobody'", "select pg_reload_conf()"] {
        worker.batch_execute(text).await.unwrap();
    }
    let call = tokio::spawn(async move { client.query(bump, &[]).await });
    until("the worker's commit waits", async || {
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'";
        !rows(&worker, end).await.unwrap().is_empty()
    })
    .await;
    for text in ["alter system reset synchronous_standby_names", "select pg_reload_conf()"] {
        worker.batch_execute(text).await.unwrap();
    }
    let error = call.await.unwrap().expect_err("the outcome is unknown");
    assert_eq!(sqlstate(&error), "08007", "{error:?}");
    let after: i64 = value(&stage.direct, "select n from counters where id = 2").await.parse().unwrap();
    assert_eq!(after, before + 1, "the call had one effect");
}
