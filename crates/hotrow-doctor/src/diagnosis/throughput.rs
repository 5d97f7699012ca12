//! Commits, flushes, log and requests per second.

use std::collections::BTreeSet;

use crate::counters::{TableCounters, change};
use crate::diagnosis::load::seconds;
use crate::recording::Recording;

/// The work of the server per second. `None`: the server does not show it.
#[derive(Clone, Debug, Default)]
pub struct Throughput {
    /// Commits in this database.
    pub commits: Option<f64>,
    /// Transactions with an ID, which are those that write.
    pub writes: Option<f64>,
    /// Flushes of the log.
    pub flushes: Option<f64>,
    /// The time of a flush in milliseconds, if the server measures it.
    pub flush_ms: Option<f64>,
    /// Bytes of log.
    pub wal: Option<f64>,
    /// Statements that clients sent, if the server counts them.
    pub statements: Option<f64>,
    /// Requested checkpoints during the run.
    pub requested_checkpoints: f64,
    /// Deadlocks during the run.
    pub deadlocks: f64,
    /// The work on tables during the run, those with the most first.
    pub tables: Vec<TableCounters>,
    /// Time between the two looks at the counters.
    pub seconds: f64,
}

impl Throughput {
    /// The throughput of a recording.
    pub fn of(recording: &Recording) -> Throughput {
        let (before, after) = (&recording.before, &recording.after);
        let between = (after.at_us - before.at_us) as f64 / 1e6;
        if between <= 0.0 {
            return Throughput::default();
        }
        let shown = |value: f64| (value > 0.0).then_some(value);
        let flushes = (after.flushes() - before.flushes()).max(0.0);
        let calls = recording.statements.iter().filter_map(|statement| statement.counters.as_ref());
        let commits = change(&before.database, &after.database, "xact_commit");
        let mut throughput = Throughput {
            commits: shown((commits - f64::from(recording.own_queries)) / between),
            flushes: shown(flushes / between),
            flush_ms: shown((after.flush_ms() - before.flush_ms()) / flushes.max(1.0)),
            statements: shown(calls.map(|calls| calls.calls as f64).sum::<f64>() / between),
            requested_checkpoints: (after.requested_checkpoints() - before.requested_checkpoints()).max(0.0),
            deadlocks: change(&before.database, &after.database, "deadlocks"),
            seconds: between,
            ..Throughput::default()
        };
        if let [first, .., last] = recording.samples.as_slice() {
            let time = seconds(&recording.samples).max(1e-6);
            let ids = first.xid.zip(last.xid).and_then(|(first, last)| last.checked_sub(first));
            throughput.writes = ids.map(|ids| ids as f64 / time);
            throughput.wal = first.wal.zip(last.wal).map(|(first, last)| (last - first).max(0.0) / time);
        }
        let oids: BTreeSet<u32> = after.tables.iter().map(|table| table.oid).collect();
        let work = oids.iter().filter_map(|oid| Some(after.table(*oid)?.since(before.table(*oid))));
        throughput.tables = work.collect();
        throughput.tables.sort_by_key(|table| std::cmp::Reverse(changes(table) + table.scanned.unwrap_or(0)));
        throughput
    }

    /// Rows of a table that were updated or deleted, per second.
    pub fn changes_of(&self, relation: u32) -> Option<f64> {
        let table = self.tables.iter().find(|table| table.oid == relation)?;
        let changed = (table.updated.unwrap_or(0) + table.deleted.unwrap_or(0)) as f64;
        (changed > 0.0 && self.seconds > 0.0).then(|| changed / self.seconds)
    }
}

fn changes(table: &TableCounters) -> i64 {
    [table.inserted, table.updated, table.deleted].into_iter().flatten().sum()
}
