//! Which replicas serve: both in turn, none that lags, and one that has caught up again.

use hotrow_testkit::{PATIENT_LANES, until};

use crate::{READ, Stage, read, write};

#[tokio::test]
#[ignore = "long: make test-all"]
async fn reads_are_spread_over_the_replicas_and_writes_stay_on_the_primary() {
    let stage = Stage::new(&PATIENT_LANES).await;
    let mut clients = vec![stage.reader().await];
    for _ in 0..7 {
        clients.push(stage.client().await);
    }
    let before = stage.shown().await;
    for client in &clients {
        for _ in 0..50 {
            read(client, 1).await;
        }
    }
    let after = stage.shown().await;
    for (before, after) in before.iter().zip(&after) {
        assert!(after.reads - before.reads >= 100, "{before:?} {after:?}");
    }
    for client in &clients {
        write(client, 5).await;
    }
    assert_eq!(read(&clients[0], 5).await, 8);
    let servers = hotrow_testkit::rows(&stage.console, "show servers").await.unwrap();
    let used: Vec<_> = servers.iter().filter_map(|row| row[5].clone()).collect();
    assert!(used.iter().any(|used| used.starts_with("read lane 0 of replica 127.0.0.1:")), "{used:?}");
    assert!(!used.iter().any(|used| used.starts_with("write lane") && used.contains("replica")), "{used:?}");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_replica_that_lags_is_left_out_until_it_has_caught_up() {
    let stage = Stage::new(&["--replica-lag-max-ms", "200"]).await;
    let client = stage.reader().await;
    let [paused, other] = &stage.standbys;
    paused.query("select pg_wal_replay_pause()").unwrap();
    let both = async || {
        let shown = stage.shown().await;
        [paused.port(), other.port()].map(|port| {
            let shown = shown.iter().find(|shown| shown.port == port).unwrap();
            (shown.state.clone(), shown.reads)
        })
    };
    // On a busy machine, the other one can lag too, for a moment.
    stage
        .wait_for("only the paused one is left out", || async {
            stage.direct.execute("update item set n = n + 1 where id = 3", &[]).await.unwrap();
            read(&client, 1).await;
            let [(paused, _), (other, _)] = both().await;
            paused == "lags" && other == "serves"
        })
        .await;
    let before = both().await;
    stage
        .wait_for("the other one answers reads", || async {
            read(&client, 1).await;
            let now = both().await;
            assert_eq!(now[0].1, before[0].1, "a replica that lags has answered a read: {now:?}");
            now[1].1 >= before[1].1 + 50
        })
        .await;
    until("the log says so", async || stage.gateway.log().contains("a replica serves no reads")).await;
    paused.query("select pg_wal_replay_resume()").unwrap();
    stage
        .wait_for("both serve again", || async {
            read(&client, 1).await;
            stage.serving().await == 2
        })
        .await;
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn sessions_that_do_not_ask_for_replicas_do_not_reach_them() {
    let stage = Stage::new(&[]).await;
    let client = hotrow_testkit::connect(&stage.gateway.config()).await;
    for _ in 0..20 {
        client.query_one(READ, &[&1]).await.unwrap();
    }
    assert_eq!(stage.replica_reads(), 0);
    for standby in &stage.standbys {
        let sessions = standby.query(
            "select count(*) from pg_stat_activity where usename is not null and pid <> pg_backend_pid()",
        );
        assert_eq!(sessions.unwrap()[0][0].as_deref(), Some("0"), "nothing connects to a standby");
    }
}
