//! A session sees its own commits and never an older state than before, whichever replica it reads from.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use hotrow_testkit::{PATIENCE, programs};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::{Stage, read, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make test-all"]
async fn a_session_sees_its_own_commits_while_replay_is_slow_and_paused() {
    const CLIENTS: i32 = 4;
    const PAIRS: usize = 1000;
    let stage = Stage::new(&["--replica-wait-ms", "20"]).await;
    stage.reader().await;
    let done = AtomicBool::new(false);
    let pauses = stage.pause_replay(&done, Duration::from_millis(30), Duration::from_millis(30));
    let counts = || (stage.replica_reads(), stage.gateway.metric("replica_fallbacks_total"));
    let are_enough = |(on_replicas, fallbacks)| on_replicas > 1000 && fallbacks > 10;
    // How many reads a replica answers in time depends on the machine.
    let is_over = Arc::new(AtomicBool::new(false));
    let count = async {
        let deadline = Instant::now() + PATIENCE;
        while !are_enough(counts()) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await; // the condition has no signal
        }
        is_over.store(true, SeqCst);
    };
    let clients = async {
        let mut all = JoinSet::new();
        for id in 1..=CLIENTS {
            let (client, is_over) = (stage.client().await, is_over.clone());
            all.spawn(async move {
                for pair in (0..).take_while(|pair| *pair < PAIRS || !is_over.load(SeqCst)) {
                    let written = match pair % 4 {
                        // In a lane, in a transaction of its own, and by a text of several statements.
                        0 | 1 => write(&client, id).await,
                        2 => {
                            client.batch_execute("begin").await.unwrap();
                            let written = write(&client, id).await;
                            client.batch_execute("commit").await.unwrap();
                            written
                        }
                        _ => {
                            let sql = format!("update item set n = n + 1 where id = {id}; select 1");
                            client.batch_execute(&sql).await.unwrap();
                            read(&client, id).await
                        }
                    };
                    assert_eq!(read(&client, id).await, written, "client {id}, pair {pair}");
                    assert_eq!(read(&client, id).await, written, "client {id}, pair {pair}, again");
                }
            });
        }
        while let Some(ended) = all.join_next().await {
            ended.unwrap();
        }
        done.store(true, SeqCst);
    };
    tokio::join!(pauses, clients, count);
    let (on_replicas, fallbacks) = counts();
    eprintln!("{on_replicas} reads on replicas, {fallbacks} on the primary");
    assert!(are_enough(counts()), "{on_replicas} reads on replicas, {fallbacks} fallbacks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_a_session_never_go_back() {
    const READERS: i32 = 4;
    // How much is done in the rounds depends on the machine, so everything goes on until it has done this.
    const LEAST: i64 = 100;
    let stage = Stage::new(&["--replica-lag-max-ms", "40"]).await;
    stage.reader().await;
    let (done, newest) = (AtomicBool::new(false), AtomicI64::new(0));
    let writer = async {
        let client = hotrow_testkit::connect(&stage.gateway.config()).await;
        while !done.load(SeqCst) || newest.load(SeqCst) <= LEAST {
            newest.store(write(&client, 1).await, SeqCst);
        }
    };
    let (until, stop) = tokio::sync::watch::channel(false);
    let mut readers = JoinSet::new();
    for reader in 0..READERS {
        let (client, stop) = (stage.client().await, stop.clone());
        readers.spawn(async move {
            let (mut last, mut reads) = (0, 0_i64);
            while !*stop.borrow() || reads <= LEAST {
                // Now and then on the primary, which is newer than any replica.
                let seen = match reads % 50 {
                    49 => {
                        let sql = "select n from item where id = 1 for update";
                        client.query_one(sql, &[]).await.unwrap().get(0)
                    }
                    _ => read(&client, 1).await,
                };
                assert!(seen >= last, "reader {reader} saw {last}, and then {seen}");
                (last, reads) = (seen, reads + 1);
            }
        });
    }
    // Replicas are left out in turn, so that sessions move.
    let pauses = async {
        let deadline = Instant::now() + PATIENCE;
        let rounds = programs(40).max(10) as usize;
        for round in 0.. {
            let enough = async || stage.shown().await.iter().all(|shown| shown.reads > LEAST.unsigned_abs());
            if round >= rounds && (enough().await || Instant::now() > deadline) {
                break;
            }
            let standby = &stage.standbys[round % 2];
            standby.query("select pg_wal_replay_pause()").unwrap();
            tokio::time::sleep(Duration::from_millis(120)).await; // the pause's length
            standby.query("select pg_wal_replay_resume()").unwrap();
            tokio::time::sleep(Duration::from_millis(60)).await; // the time between two pauses
        }
        until.send(true).unwrap();
        while let Some(ended) = readers.join_next().await {
            ended.unwrap();
        }
        done.store(true, SeqCst);
    };
    tokio::join!(writer, pauses);
    let shown = stage.shown().await;
    assert!(shown.iter().all(|shown| shown.reads > LEAST.unsigned_abs()), "{shown:?}");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_client_that_is_notified_of_a_commit_sees_it() {
    let stage = Stage::new(&["--replica-lag-max-ms", "86400000"]).await;
    let reader = stage.reader().await;
    reader.batch_execute("listen changed").await.unwrap();
    let writer = hotrow_testkit::connect(&stage.gateway.config()).await;
    for standby in &stage.standbys {
        standby.query("select pg_wal_replay_pause()").unwrap();
    }
    read(&reader, 2).await;
    writer.batch_execute("begin; update item set n = 7 where id = 2; notify changed; commit").await.unwrap();
    // The notification arrives with one of the next answers.
    stage.wait_for("the commit", || async { read(&reader, 2).await == 7 }).await;
}

/// A TCP balancer: its connections lead to these ports in turns.
async fn balance(listener: TcpListener, ports: oneshot::Receiver<[u16; 2]>) {
    for port in ports.await.unwrap().into_iter().cycle() {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make test-all"]
async fn reads_do_not_go_back_if_an_address_leads_to_several_replicas() {
    const CROWD: usize = 120;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, ports) = oneshot::channel();
    tokio::spawn(balance(listener, ports));
    let one_address = |ports| {
        send.send(ports).unwrap();
        format!("host=127.0.0.1 port={port} sslmode=disable")
    };
    let stage = Stage::with_replicas(one_address, &["--replica-lag-max-ms", "86400000"]).await;
    // So many clients that they need several lanes, whose connections lead to both standbys.
    let mut clients = Vec::new();
    for _ in 0..CROWD {
        clients.push(stage.client().await);
    }
    stage
        .wait_for("reads on the replica", || async {
            read(&clients[0], 1).await;
            stage.replica_reads() > 0
        })
        .await;
    clients = read_all(clients).await;
    for behind in &stage.standbys {
        behind.query("select pg_wal_replay_pause()").unwrap();
        // All rows change in one commit, so each read shows how new the state is.
        stage.direct.batch_execute("update item set n = n + 1").await.unwrap();
        clients = read_all(clients).await;
        behind.query("select pg_wal_replay_resume()").unwrap();
    }
    assert!(stage.replica_reads() > 1000, "{}", stage.replica_reads());
}

/// All clients read at the same time, and none sees an older state than before.
async fn read_all(clients: Vec<Client>) -> Vec<Client> {
    let mut all = JoinSet::new();
    for client in clients {
        all.spawn(async move {
            let mut last = 0;
            for id in 1..=100 {
                let seen = read(&client, id).await;
                assert!(seen >= last, "saw {last}, and then {seen}");
                last = seen;
            }
            client
        });
    }
    all.join_all().await
}
