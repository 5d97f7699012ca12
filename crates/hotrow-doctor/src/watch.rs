//! The server at this moment, for the operations page: a few numbers, asked for once a second. No texts of statements.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_postgres::{Client, Statement};

use crate::error::Error;

/// The time that a look may take. After it the server counts as away.
const PATIENCE: Duration = Duration::from_secs(3);

/// A connection that looks at the server again and again.
pub struct Watch {
    client: Client,
    look: Statement,
    flushes: Option<Statement>,
    before: Option<(i64, Counters)>,
}

/// The server at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerNow {
    at_us: i64,
    version: String,
    database: String,
    /// The role that looks.
    role: String,
    standby: bool,
    up_seconds: f64,
    max_connections: u32,
    synchronous_commit: String,
    connections: u32,
    active: u32,
    idle: u32,
    idle_in_transaction: u32,
    /// Sessions whose state the role cannot see.
    hidden: u32,
    oldest_transaction_seconds: Option<f64>,
    /// Active sessions by what they wait for. Without a type they run.
    waits: Vec<Wait>,
    standbys: Vec<Standby>,
    slots: Vec<Slot>,
    #[serde(skip_serializing)]
    counters: Counters,
    /// The changes since the look before.
    #[serde(default)]
    per_second: Option<PerSecond>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Wait {
    r#type: Option<String>,
    event: Option<String>,
    sessions: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Standby {
    name: String,
    state: Option<String>,
    sync: Option<String>,
    behind_bytes: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Slot {
    name: String,
    active: Option<bool>,
    kind: Option<String>,
    held_bytes: Option<f64>,
}

/// Numbers since the start of the server's statistics.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Counters {
    commits: Option<i64>,
    rollbacks: Option<i64>,
    deadlocks: Option<i64>,
    wal_bytes: Option<i64>,
    flushes: Option<i64>,
}

/// Changes of the counters per second; `None` if the server does not show a counter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerSecond {
    commits: Option<f64>,
    rollbacks: Option<f64>,
    deadlocks: Option<f64>,
    wal_bytes: Option<f64>,
    /// WAL flushes.
    pub flushes: Option<f64>,
}

impl ServerNow {
    /// The changes since the look before.
    pub fn per_second(&self) -> Option<PerSecond> {
        self.per_second
    }
}

impl Watch {
    /// Connects and limits the session.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        tokio::time::timeout(PATIENCE, Self::open(url)).await.map_err(|_| Error::Slow)?
    }

    async fn open(url: &str) -> Result<Self, Error> {
        let client = hotrow_connect::driver::connect(url).await?;
        client.batch_execute(include_str!("../sql/begin.sql")).await.map_err(Error::query("its settings"))?;
        let name = include_str!("../sql/watch_name.sql");
        client.batch_execute(name).await.map_err(Error::query("its settings"))?;
        let look = client.prepare(include_str!("../sql/watch.sql")).await;
        let look = look.map_err(Error::query("sessions"))?;
        // Each of the two fails on the other versions.
        let flushes = match client.prepare(include_str!("../sql/flushes_io.sql")).await {
            Ok(statement) if has_value(&client, &statement).await => Some(statement),
            _ => client.prepare(include_str!("../sql/flushes.sql")).await.ok(),
        };
        Ok(Self { client, look, flushes, before: None })
    }

    /// Looks once. After an error the connection is of no more use.
    pub async fn look(&mut self) -> Result<ServerNow, Error> {
        tokio::time::timeout(PATIENCE, self.ask()).await.map_err(|_| Error::Slow)?
    }

    async fn ask(&mut self) -> Result<ServerNow, Error> {
        let row = self.client.query_one(&self.look, &[]).await.map_err(Error::query("sessions"))?;
        let json: String = row.try_get(0).map_err(Error::query("sessions"))?;
        let mut now: ServerNow =
            serde_json::from_str(&json).map_err(|source| Error::Answer { what: "sessions", source })?;
        if let Some(statement) = &self.flushes {
            let row = self.client.query_opt(statement, &[]).await.map_err(Error::query("flushes"))?;
            now.counters.flushes = row.and_then(|row| row.try_get(0).ok().flatten());
        }
        now.per_second = self.before.and_then(|before| per_second(before, (now.at_us, now.counters)));
        self.before = Some((now.at_us, now.counters));
        Ok(now)
    }
}

async fn has_value(client: &Client, statement: &Statement) -> bool {
    let row = client.query_opt(statement, &[]).await;
    row.is_ok_and(|row| row.is_some_and(|row| matches!(row.try_get::<_, Option<i64>>(0), Ok(Some(_)))))
}

/// The changes between two looks. None after a reset of the statistics or of the clock.
fn per_second(before: (i64, Counters), now: (i64, Counters)) -> Option<PerSecond> {
    let seconds = (now.0 - before.0) as f64 / 1e6;
    let rate = |before: Option<i64>, now: Option<i64>| {
        let change = now?.checked_sub(before?)?;
        (change >= 0).then_some(change as f64 / seconds)
    };
    let (before, now) = (before.1, now.1);
    (seconds > 0.0).then(|| PerSecond {
        commits: rate(before.commits, now.commits),
        rollbacks: rate(before.rollbacks, now.rollbacks),
        deadlocks: rate(before.deadlocks, now.deadlocks),
        wal_bytes: rate(before.wal_bytes, now.wal_bytes),
        flushes: rate(before.flushes, now.flushes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_divided_by_the_time_between_two_looks() {
        let counters = |commits, flushes| Counters { commits: Some(commits), flushes, ..Counters::default() };
        let changes = |later| per_second((1_000_000, counters(100, Some(7))), later);
        let changed = changes((3_000_000, counters(300, Some(17)))).unwrap();
        assert_eq!((changed.commits, changed.flushes, changed.wal_bytes), (Some(100.0), Some(5.0), None));
        assert_eq!(changes((3_000_000, counters(90, None))).unwrap().commits, None, "after a reset");
        assert_eq!(changes((1_000_000, counters(300, None))), None);
    }
}
