//! A gateway in front of a primary with two streaming standbys: sessions with `hotrow.reads = replica` read from the standbys,
//! and never miss what they have done or seen.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod balance;
mod faults;
mod freshness;
mod same_as_direct;
mod settings;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, PATIENCE, config, connect, rows};
use tokio_postgres::Client;

/// A primary, two standbys, and a gateway in front of them.
struct Stage {
    primary: PrivateServer,
    standbys: [PrivateServer; 2],
    gateway: Gateway,
    direct: Client,
    console: Client,
}

/// What SHOW REPLICAS says of a replica that a session has read from.
#[derive(Debug)]
struct Shown {
    port: u16,
    state: String,
    reads: u64,
}

impl Stage {
    async fn new(options: &[&str]) -> Self {
        let both = |ports: [u16; 2]| {
            format!("host=127.0.0.1,127.0.0.1 port={},{} sslmode=disable", ports[0], ports[1])
        };
        Stage::with_replicas(both, options).await
    }

    /// `replicas` makes the setting from the standbys' ports.
    async fn with_replicas(replicas: impl FnOnce([u16; 2]) -> String, options: &[&str]) -> Self {
        let primary = PrivateServer::builder().label("primary").start().unwrap();
        let standbys = [primary.standby().unwrap(), primary.standby().unwrap()];
        let direct = connect(&config(primary.port())).await;
        direct.batch_execute(TABLES).await.unwrap();
        let replicas = replicas(standbys.each_ref().map(PrivateServer::port));
        let mut all = vec!["--replicas", &replicas];
        all.extend(options);
        let gateway = Gateway::in_front_of(&primary.url(), &all);
        let console = connect(gateway.config().dbname("hotrow")).await;
        Stage { primary, standbys, gateway, direct, console }
    }

    /// A client whose reads run on replicas, when both serve.
    async fn reader(&self) -> Client {
        let client = self.client().await;
        self.wait_for("both replicas", || async {
            read(&client, 1).await;
            self.serving().await == 2
        })
        .await;
        client
    }

    /// The same without waiting.
    async fn client(&self) -> Client {
        let client = connect(&self.gateway.config()).await;
        client.batch_execute("set hotrow.reads = replica").await.unwrap();
        client
    }

    async fn serving(&self) -> usize {
        self.shown().await.iter().filter(|shown| shown.state == "serves").count()
    }

    /// The replicas as the console shows them.
    async fn shown(&self) -> Vec<Shown> {
        let rows = rows(&self.console, "show replicas").await.unwrap();
        let shown = |row: &Vec<Option<String>>| Shown {
            port: row[3].as_ref().unwrap().rsplit_once(':').unwrap().1.parse().unwrap(),
            state: row[4].clone().unwrap(),
            reads: row[8].as_ref().unwrap().parse().unwrap(),
        };
        rows.iter().map(shown).collect()
    }

    async fn wait_for<F: Future<Output = bool>>(&self, what: &str, mut is_there: impl FnMut() -> F) {
        let deadline = Instant::now() + PATIENCE;
        while !is_there().await {
            assert!(Instant::now() < deadline, "{what}: {:?}\n{}", self.shown().await, self.gateway.log());
            tokio::time::sleep(Duration::from_millis(5)).await; // the condition has no signal
        }
    }

    /// Pauses the replay of each standby in turn, and then of both, until all is done, with a time between two pauses.
    async fn pause_replay(&self, done: &AtomicBool, pause: Duration, between: Duration) {
        let (first, second) = self.standbys.split_at(1);
        for standbys in [first, second, &self.standbys].into_iter().cycle().take_while(|_| !done.load(SeqCst))
        {
            standbys.iter().for_each(|standby| drop(standby.query("select pg_wal_replay_pause()").unwrap()));
            tokio::time::sleep(pause).await; // the load's shape
            standbys.iter().for_each(|standby| drop(standby.query("select pg_wal_replay_resume()").unwrap()));
            tokio::time::sleep(between).await; // the load's shape
        }
    }

    /// Point reads that replicas have answered so far.
    fn replica_reads(&self) -> u64 {
        self.gateway.metric("replica_reads_total")
    }
}

const TABLES: &str = "create table item (id int primary key, n bigint not null default 0, note text);
    insert into item select id, 0, 'first' from generate_series(1, 100) id";
const READ: &str = "select n from item where id = $1";
const WRITE: &str = "update item set n = n + 1 where id = $1 returning n";

/// One message, so nothing else of the session runs before the read.
async fn read(client: &Client, id: i32) -> i64 {
    let rows = rows(client, &format!("select n from item where id = {id}")).await.unwrap();
    rows[0][0].as_ref().unwrap().parse().unwrap()
}

async fn write(client: &Client, id: i32) -> i64 {
    client.query_one(WRITE, &[&id]).await.unwrap().get(0)
}
