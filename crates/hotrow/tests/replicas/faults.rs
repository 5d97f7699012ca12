//! Replicas that die, freeze or are promoted, a failover, and changes of tables beside reads.

use std::time::Duration;

use crate::{READ, Stage, read, write};
use hotrow_testkit::{connect, until, value};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make test-all"]
async fn replicas_are_killed_and_frozen_under_load_and_no_read_fails_or_is_stale() {
    let stage = Stage::new(&[]).await;
    stage.reader().await;
    let (until, stop) = tokio::sync::watch::channel(false);
    let mut clients = tokio::task::JoinSet::new();
    for id in 1..=4 {
        let (client, stop) = (stage.client().await, stop.clone());
        clients.spawn(async move {
            let mut pairs = 0;
            while !*stop.borrow() {
                let written = write(&client, id).await;
                // A new shape now and then: one whose answer was slow runs on the primary for a while.
                let read = format!("select n as n{} from item where id = {id}", pairs / 10);
                for _ in 0..5 {
                    assert_eq!(value(&client, &read).await, written.to_string());
                }
                pairs += 1;
            }
            pairs
        });
    }
    for round in 0..4 {
        let standby = &stage.standbys[round % 2];
        tokio::time::sleep(Duration::from_millis(500)).await; // the load while both serve
        standby.kill_dash_nine().unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await; // the load while one serves
        standby.restart().unwrap();
        stage.wait_for("it serves again", || async { stage.serving().await == 2 }).await;
    }
    let frozen = &stage.standbys[0];
    frozen.freeze().unwrap();
    stage.wait_for("it is left out", || async { stage.serving().await == 1 }).await;
    frozen.thaw().unwrap();
    stage.wait_for("it serves again", || async { stage.serving().await == 2 }).await;
    stage.wait_for("replicas have answered reads", || async { stage.replica_reads() > 20 }).await;
    until.send(true).unwrap();
    while let Some(pairs) = clients.join_next().await {
        assert!(pairs.unwrap() > 20);
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_promoted_replica_serves_no_reads() {
    let stage = Stage::new(&[]).await;
    let client = stage.reader().await;
    let [promoted, _] = &stage.standbys;
    stage
        .wait_for("it has the table", || async {
            promoted.query("select to_regclass('item')").unwrap()[0][0].is_some()
        })
        .await;
    let clients = [stage.client().await, stage.client().await, stage.client().await, stage.client().await];
    let read_all = async || {
        for client in &clients {
            assert_eq!(read(client, 1).await, 0, "the promoted server has another history");
        }
    };
    for _ in 0..10 {
        read_all().await;
    }
    promoted.promote().unwrap();
    promoted.query("update item set n = -1").unwrap();
    for _ in 0..50 {
        read_all().await;
    }
    for _ in 0..50 {
        write(&client, 2).await;
        assert_eq!(read(&client, 1).await, 0);
    }
    let is_left_out = |shown: &crate::Shown| shown.port == promoted.port() && shown.state == "promoted";
    stage
        .wait_for("it is left out", || async {
            read(&client, 1).await;
            stage.shown().await.iter().any(is_left_out)
        })
        .await;
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_replica_that_follows_a_promoted_one_serves_no_reads() {
    let stage = Stage::new(&[]).await;
    let client = stage.reader().await;
    let [promoted, follower] = &stage.standbys;
    let follows = format!("host=127.0.0.1 port={} user=postgres", promoted.port());
    follower.query(&format!("alter system set primary_conninfo = '{follows}'")).unwrap();
    follower.query("select pg_reload_conf()").unwrap();
    promoted.promote().unwrap();
    promoted.query("update item set n = -1").unwrap();
    promoted.query("select pg_switch_wal()").unwrap();
    let shown = || follower.query("select n from item where id = 1").unwrap()[0][0].clone();
    // It goes on to the new timeline without a restart, and its control file still shows the old one.
    stage.wait_for("the other history", || async { shown().as_deref() == Some("-1") }).await;
    stage
        .wait_for("it is left out", || async {
            read(&client, 1).await;
            stage.serving().await == 0
        })
        .await;
    for _ in 0..50 {
        assert_eq!(read(&client, 1).await, 0, "the replica has another history");
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_pause_closes_the_connections_on_which_the_primary_is_asked() {
    let stage = Stage::new(&[]).await;
    let client = stage.reader().await;
    write(&client, 1).await;
    read(&client, 1).await;
    stage.console.batch_execute("pause").await.unwrap();
    let here = "select count(*) from pg_stat_activity where application_name like 'hotrow%'";
    until("no backend is left", async || value(&stage.direct, here).await == "0").await;
    // The replicas are asked every 250 ms.
    for _ in 0..300 {
        assert_eq!(value(&stage.direct, here).await, "0", "the database is paused");
        tokio::time::sleep(Duration::from_millis(2)).await; // two questions would come in this time
    }
    stage.console.batch_execute("resume").await.unwrap();
    let before = stage.replica_reads();
    stage
        .wait_for("reads on replicas", || async {
            read(&client, 1).await;
            stage.replica_reads() > before
        })
        .await;
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_changed_table_is_never_read_as_it_was_for_a_session_that_knows_the_change() {
    let stage = Stage::new(&[]).await;
    let client = stage.reader().await;
    let other = connect(&stage.gateway.config()).await;
    for round in 0..10_i64 {
        let paused = &stage.standbys[usize::try_from(round % 2).unwrap()];
        paused.query("select pg_wal_replay_pause()").unwrap();
        // The client reads the table before and after each change, by names that the change gives another meaning.
        client.query_one("select n, note from item where id = 4", &[]).await.unwrap();
        let sql = format!(
            "begin; alter table item drop column note; alter table item add column note bigint; \
             update item set note = {round} where id = 4; commit"
        );
        let changes = if round % 3 == 0 { &client } else { &other };
        changes.batch_execute(&sql).await.unwrap();
        // Described on the primary, so the client has seen the change.
        let statement = client.prepare("select note from item where id = $1").await.unwrap();
        for _ in 0..5 {
            let row = client.query_one(&statement, &[&4]).await.unwrap();
            assert_eq!(row.get::<_, Option<i64>>(0), Some(round));
        }
        paused.query("select pg_wal_replay_resume()").unwrap();
        read(&client, 4).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make test-all"]
async fn changes_of_a_table_beside_reads_fail_no_read() {
    let stage = Stage::new(&[]).await;
    stage.reader().await;
    let (until, stop) = tokio::sync::watch::channel(false);
    let mut readers = tokio::task::JoinSet::new();
    for id in 1..=3 {
        let (client, stop) = (stage.client().await, stop.clone());
        readers.spawn(async move {
            let statement = client.prepare(READ).await.unwrap();
            while !*stop.borrow() {
                let row = client.query_one(&statement, &[&id]).await.unwrap();
                assert_eq!(row.get::<_, i64>(0), 0);
            }
        });
    }
    let changes = connect(&stage.gateway.config()).await;
    for round in 0..20 {
        let sql = format!("alter table item add column c{round} int default {round}");
        changes.batch_execute(&sql).await.unwrap();
        stage.direct.batch_execute("analyze item").await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await; // reads run between two changes
    }
    let before = stage.replica_reads();
    stage.wait_for("reads on replicas", || async { stage.replica_reads() > before + 100 }).await;
    stage.wait_for("replicas have answered reads", || async { stage.replica_reads() > 20 }).await;
    until.send(true).unwrap();
    while let Some(ended) = readers.join_next().await {
        ended.unwrap();
    }
}
