//! Measures the server's work for a load: commits, flushes, the CPU time of the walsender, and the waits of sessions.
//! It makes no load.

use crate::endpoint::Endpoint;
use crate::error::{Error, refused};
use crate::load::joined;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// The server's cost for a unit of work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerWork {
    /// Transactions that wrote something.
    pub commits_per_unit: f64,
    /// WAL flushes of the server.
    pub flushes_per_unit: f64,
    /// Average time of a flush in microseconds, as measured by the server. `None` if the server has reported none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_us: Option<f64>,
    /// CPU time of the walsender that decodes the WAL for a change stream, in microseconds, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walsender_us_per_unit: Option<f64>,
    /// The number of samples in which a busy session waited, for each wait event. `CPU` means that the session did not wait.
    pub waits: BTreeMap<String, u64>,
}

/// What a server that is not PostgreSQL has counted so far.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Transactions that wrote something.
    pub commits: i64,
    /// WAL flushes that other programs read.
    pub flushes: i64,
}

impl Counted {
    /// The cost for each of this number of units, from the load's beginning to its end.
    pub fn until(self, end: Self, units: u64) -> ServerWork {
        let per_unit = |before: i64, after: i64| (after - before) as f64 / units as f64;
        ServerWork {
            commits_per_unit: per_unit(self.commits, end.commits),
            flushes_per_unit: per_unit(self.flushes, end.flushes),
            flush_us: None,
            walsender_us_per_unit: None,
            waits: BTreeMap::new(),
        }
    }
}

/// Observes a server from the beginning of a load to its end.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    before: Counters,
    end: oneshot::Sender<()>,
    sampling: JoinHandle<Result<BTreeMap<String, u64>, tokio_postgres::Error>>,
}

#[derive(Debug, Clone, Copy)]
struct Counters {
    transactions: i64,
    flushes: i64,
    flushing_ms: f64,
    walsender_us: Option<f64>,
}

const TRANSACTIONS: &str = include_str!("../sql/watch/transactions.sql");
const FLUSHES: &str = include_str!("../sql/watch/flushes.sql");
const FLUSHES_BEFORE_18: &str = include_str!("../sql/watch/flushes_before_18.sql");
const WAITS: &str = include_str!("../sql/watch/waits.sql");
const WALSENDER: &str = include_str!("../sql/watch/walsender.sql");

impl Watch {
    /// Often enough for percentages, and rare enough to use only about 1 % of a core.
    const EVERY: Duration = Duration::from_millis(100);

    /// Begins to observe.
    pub async fn start(server: &Endpoint) -> Result<Self, Error> {
        let client = server.connect().await?;
        let sampler = server.connect().await?;
        let walsender_us = walsender_us(&client).await?;
        let before = Counters { walsender_us, ..counters(&client).await? };
        let (end, ended) = oneshot::channel();
        Ok(Self { client, before, end, sampling: tokio::spawn(sample(sampler, ended)) })
    }

    /// The cost for each of this number of units. The load has just ended.
    pub async fn finish(self, units: u64) -> Result<ServerWork, Error> {
        let after = counters(&self.client).await?;
        // The sampling task ends by itself only if its connection is lost, and it reports that.
        let _ = self.end.send(());
        let waits = joined(self.sampling.await).map_err(refused("say what its sessions wait for"))?;
        let per_unit = |count: f64| count / units as f64;
        let flushes = (after.flushes - self.before.flushes) as f64;
        let flushing_us = (after.flushing_ms - self.before.flushing_ms) * 1000.0;
        let walsender = self.before.walsender_us.zip(walsender_us(&self.client).await?);
        Ok(ServerWork {
            commits_per_unit: per_unit((after.transactions - self.before.transactions) as f64),
            flushes_per_unit: per_unit(flushes),
            flush_us: (flushes > 0.0).then_some(flushing_us / flushes),
            walsender_us_per_unit: walsender.map(|(before, after)| per_unit(after - before)),
            waits,
        })
    }
}

async fn counters(client: &Client) -> Result<Counters, Error> {
    let one = async |sql: &str| client.query_one(sql, &[]).await.map_err(refused("count what it does"));
    let version: i64 = one("select current_setting('server_version_num')::bigint").await?.get(0);
    let flushes = one(if version < 180_000 { FLUSHES_BEFORE_18 } else { FLUSHES }).await?;
    let transactions = one(TRANSACTIONS).await?.get(0);
    Ok(Counters { transactions, flushes: flushes.get(0), flushing_ms: flushes.get(1), walsender_us: None })
}

/// The CPU time of the walsender after it has read the whole WAL. `None` if there is no walsender, or if the system
/// does not report it.
async fn walsender_us(client: &Client) -> Result<Option<f64>, Error> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let now: String = {
        let row = client.query_one("select pg_current_wal_lsn()::text", &[]).await;
        row.map_err(refused("say where its WAL ends"))?.get(0)
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let row = client.query_opt(WALSENDER, &[&now]).await.map_err(refused("show its walsender"))?;
        let Some(row) = row else { return Ok(None) };
        let (process, caught_up): (i32, bool) = (row.get(0), row.get(1));
        if caught_up || Instant::now() > deadline {
            let spent = std::fs::read_to_string(format!("/proc/{process}/schedstat")).ok();
            let nanoseconds: Option<f64> = spent.and_then(|text| text.split(' ').next()?.parse().ok());
            return Ok(nanoseconds.map(|spent| spent / 1000.0));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn sample(
    client: Client,
    mut ended: oneshot::Receiver<()>,
) -> Result<BTreeMap<String, u64>, tokio_postgres::Error> {
    let statement = client.prepare(WAITS).await?;
    let mut waits = BTreeMap::new();
    let mut ticks = tokio::time::interval(Watch::EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = &mut ended => return Ok(waits),
            _ = ticks.tick() => {}
        }
        for row in client.query(&statement, &[]).await? {
            let sessions: i64 = row.get(1);
            *waits.entry(row.get(0)).or_default() += u64::try_from(sessions).unwrap_or_default();
        }
    }
}
