//! A gateway in front of a cluster of Citus: lanes connect to the node that has the row. Every answer is compared with that of
//! the coordinator. The tests need a PostgreSQL with Citus; HOTROW_CITUS_BIN names its binaries. Without one they say so.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod changes;
mod example;
mod faults;
mod gain;
mod nodes;
mod same_as_direct;
mod silent;

use hotrow_postgres::Cluster;
use hotrow_testkit::{Gateway, Original, OwnCluster, citus, config, connect, rows};
use tokio_postgres::Client;

/// Options of the gateway.
const LANES: &[&str] = &["--citus-lanes", "true"];

/// A cluster with two workers.
static CLUSTER: Original = Original::new(|| Some(Cluster::start(&citus()?, 2, |builder| builder).unwrap()));

/// Such a cluster, and a gateway in front of its coordinator.
struct Stage {
    cluster: OwnCluster,
    gateway: Gateway,
    direct: Client,
}

impl Stage {
    /// None if there is no Citus on this machine.
    async fn new(tables: &str) -> Option<Self> {
        Self::with(tables, &[]).await
    }

    /// The same, with further options of the gateway.
    async fn with(tables: &str, options: &[&str]) -> Option<Self> {
        let cluster = CLUSTER.copy()?;
        let direct = connect(&config(cluster.coordinator.port())).await;
        direct.batch_execute("set citus.shard_count = 8").await.unwrap();
        direct.batch_execute(tables).await.unwrap();
        let gateway = Gateway::in_front_of(&cluster.coordinator.url(), &[LANES, options].concat());
        Some(Stage { cluster, gateway, direct })
    }

    async fn client(&self) -> Client {
        connect(&self.gateway.config()).await
    }

    /// The state of the lanes that have committed something: node, kind and units.
    async fn lanes(&self) -> Vec<(String, String, u64)> {
        let console = connect(self.gateway.config().dbname("hotrow")).await;
        let lanes = rows(&console, "show lanes").await.unwrap();
        let names = console.simple_query("show lanes").await.unwrap();
        let tokio_postgres::SimpleQueryMessage::RowDescription(columns) = &names[0] else {
            panic!("no description of SHOW LANES")
        };
        let place = |name: &str| columns.iter().position(|column| column.name() == name).unwrap();
        let (node, kind, units) = (place("node"), place("kind"), place("units_done"));
        let text = |row: &Vec<Option<String>>, place: usize| row[place].clone().unwrap_or_default();
        lanes
            .iter()
            .map(|row| (text(row, node), text(row, kind), text(row, units).parse().unwrap()))
            .filter(|(.., units)| *units > 0)
            .collect()
    }

    /// Number of units that lanes to nodes have committed.
    async fn units(&self) -> u64 {
        self.lanes().await.iter().filter(|(node, ..)| !node.is_empty()).map(|(.., units)| units).sum()
    }
}
