//! The hottest keys, as lanes count them, the transactions that wait for the same rows, and the blockers of keys whose
//! units are parked.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use hotrow_core::key::KeyName;
use hotrow_core::limits;
use hotrow_lane::key::Key;
use hotrow_lane::latencies::Latencies;
use serde::Serialize;

use super::blockers::{self, Blocker};
use super::labels;
use super::{Values, snapshots};
use crate::hot_keys::KeySnapshot;
use crate::lane::Detail;
use crate::pool::Pool;
use crate::shared::Shared;

#[derive(Debug, Serialize)]
pub struct HotKey {
    pub database: String,
    /// Lanes for writes (`write`) or for reads (`read`) count it, or transactions of clients that begin with the row
    /// (`transaction`).
    pub kind: &'static str,
    /// The table, or the function with a merge rule. Empty if it is not known.
    pub table: String,
    /// The columns that identify the row. Empty if many rows of the table are blocked.
    pub columns: Vec<String>,
    /// Their values, if they are shown.
    pub values: Option<Vec<String>>,
    /// A short text that stands for the row, also if its values are hidden.
    pub label: Option<String>,
    /// Units done in each of the last seconds. A transaction is one unit.
    pub units_per_second: f64,
    /// Units of the key in each commit that has any: of the last seconds, or else since the start.
    pub units_per_commit: f64,
    /// Units that wait in the queues of lanes, or transactions that wait in the gateway for the row.
    pub waiting: usize,
    /// Units behind one that waits for an outsider's lock.
    pub parked: usize,
    /// Median of the last seconds: from a unit's arrival to its commit.
    pub p50_milliseconds: Option<f64>,
    /// The same for the slowest unit of a hundred.
    pub p99_milliseconds: Option<f64>,
    /// Units since the start.
    pub units: u64,
    /// Further units that were not counted while the key was rare.
    pub units_missed_max: u64,
    /// Commits with these units.
    pub commits: u64,
    /// Commits that these units did not need. Reads and transactions save none.
    pub commits_saved: u64,
    /// The backends that hold the row, if a unit waits for its lock.
    pub blockers: Vec<Blocker>,
}

/// The counts of all lanes for one key.
#[derive(Default)]
struct Sum {
    name: Option<Arc<KeyName>>,
    units: u64,
    missed: u64,
    commits: u64,
    recent_units: u64,
    recent_commits: u64,
    per_second: f64,
    latencies: Latencies,
    waiting: usize,
    parked: usize,
    /// Sessions whose units wait for the lock, with their pools.
    blocked: Vec<(Arc<Pool>, u64)>,
}

/// A key of a database in the lanes of one kind.
type CountedKey = (String, &'static str, Key);

/// The hottest keys. Those with a blocked unit come first, and the others by their units per second.
pub async fn keys(shared: &Shared, values: Values) -> Vec<HotKey> {
    let mut sums = HashMap::<CountedKey, Sum>::new();
    for (pool, lane) in snapshots(shared, Detail::Keys).await {
        for key in lane.keys {
            let place = (pool.identity.database().to_owned(), lane.state.kind, key.key);
            sums.entry(place).or_default().add(&pool, &key);
        }
    }
    add_transactions(shared, &mut sums);
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|((_, _, key), one), ((_, _, other_key), other)| {
        let blocked = Reverse(!one.blocked.is_empty()).cmp(&Reverse(!other.blocked.is_empty()));
        let rate = other.per_second.total_cmp(&one.per_second);
        blocked.then(rate).then(other.units.cmp(&one.units)).then(key.cmp(other_key))
    });
    sums.truncate(limits::SHOWN_KEYS_MAX);
    let blocked = sums.iter().flat_map(|(_, sum)| sum.blocked.iter().cloned());
    let mut blockers =
        blockers::find(shared, blocked.take(limits::SHOWN_BLOCKED_MAX).collect(), values).await;
    let shown = sums.into_iter().map(|(place, sum)| {
        let sessions: Vec<u64> = sum.blocked.iter().map(|(_, session)| *session).collect();
        let blockers = sessions.iter().filter_map(|session| blockers.remove(session)).flatten().collect();
        sum.shown(place, values, blockers::once(blockers))
    });
    shown.collect()
}

/// Transactions work on rows of a database, whichever their pool is.
fn add_transactions(shared: &Shared, sums: &mut HashMap<CountedKey, Sum>) {
    let databases: HashMap<String, Arc<Pool>> =
        shared.pools().into_iter().map(|pool| (pool.identity.database().to_owned(), pool)).collect();
    for (database, pool) in databases {
        for key in pool.database_state().rows.snapshots() {
            let place = (database.clone(), "transaction", key.key);
            sums.entry(place).or_default().add(&pool, &key);
        }
    }
}

impl Sum {
    fn add(&mut self, pool: &Arc<Pool>, key: &KeySnapshot) {
        self.name = self.name.take().or_else(|| key.name.clone());
        self.units += key.units;
        self.missed += key.units_missed_max;
        self.commits += key.commits;
        self.recent_units += key.recent_units;
        self.recent_commits += key.recent_commits;
        if !key.recent.is_zero() {
            self.per_second += key.recent_units as f64 / key.recent.as_secs_f64();
        }
        self.latencies.add(&key.latencies);
        self.waiting += key.waiting;
        self.parked += key.parked;
        self.blocked.extend(key.blocked_session.map(|session| (pool.clone(), session)));
    }

    fn shown(self, (database, kind, key): CountedKey, values: Values, blockers: Vec<Blocker>) -> HotKey {
        let milliseconds = |share| self.latencies.quantile(share).map(|time| time as f64 / 1_000.0);
        let per_commit = |units: u64, commits: u64| units as f64 / commits.max(1) as f64;
        let name = self.name.as_deref();
        HotKey {
            label: labels::label(&database, key),
            database,
            kind,
            table: name.map(|name| name.table.clone()).unwrap_or_default(),
            columns: name.map(|name| name.columns.clone()).unwrap_or_default(),
            values: name.filter(|_| values == Values::Shown).map(|name| name.values.clone()),
            units_per_second: self.per_second,
            units_per_commit: match self.recent_commits {
                0 => per_commit(self.units, self.commits),
                commits => per_commit(self.recent_units, commits),
            },
            waiting: self.waiting,
            parked: self.parked,
            p50_milliseconds: milliseconds(0.5),
            p99_milliseconds: milliseconds(0.99),
            units: self.units,
            units_missed_max: self.missed,
            commits: self.commits,
            commits_saved: if kind == "write" { self.units.saturating_sub(self.commits) } else { 0 },
            blockers,
        }
    }
}

impl HotKey {
    /// The row, as in `id = 7`, with `?` for a value that is not shown.
    pub fn row(&self) -> String {
        let value = |index: usize| {
            self.values.as_ref().and_then(|values| values.get(index)).map_or("?", String::as_str)
        };
        let columns = self.columns.iter().enumerate();
        columns.map(|(index, column)| format!("{column} = {}", value(index))).collect::<Vec<_>>().join(", ")
    }
}
