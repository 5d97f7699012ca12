//! Commits, flushes, WAL and requests per second.

use std::collections::BTreeSet;

use crate::counters::{TableCounters, change};
use crate::diagnosis::load::seconds;
use crate::recording::Recording;
use crate::sample::Sample;

/// The work of the server per second. `None`: the server does not show it.
#[derive(Clone, Debug, Default)]
pub struct Throughput {
    /// Commits in this database.
    pub commits: Option<f64>,
    /// Commits per second as in most parts of the run. A session reports its commits up to ten seconds later, all at once, so
    /// the difference between the ends of a run can contain many that happened before it.
    pub usual_commits: Option<f64>,
    /// Transactions with an ID, which are those that write.
    pub writes: Option<f64>,
    /// WAL flushes.
    pub flushes: Option<f64>,
    /// The time of a flush in milliseconds, if the server measures it.
    pub flush_ms: Option<f64>,
    /// Bytes of WAL.
    pub wal: Option<f64>,
    /// Statements that clients sent, if the server counts them.
    pub statements: Option<f64>,
    /// Rows that were inserted, updated or deleted.
    pub changes: Option<f64>,
    /// The same as in most parts of the run.
    pub usual_changes: Option<f64>,
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
            changes: shown(
                ["tup_inserted", "tup_updated", "tup_deleted"]
                    .map(|column| change(&before.database, &after.database, column))
                    .iter()
                    .sum::<f64>()
                    / between,
            ),
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
        let own = f64::from(recording.own_queries) / between;
        let commits = usual(&recording.samples, |sample| sample.commits);
        throughput.usual_commits = commits.and_then(|commits| shown(commits - own));
        throughput.usual_changes = usual(&recording.samples, |sample| sample.changes).and_then(shown);
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

/// The median of a counter's rates in windows of a second, in which each session at work reports once. `None` if there are
/// fewer than three.
fn usual(samples: &[Sample], counter: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    const WINDOW_US: i64 = 1_000_000;
    let mut rates = Vec::new();
    let mut begun: Option<(i64, f64)> = None;
    for sample in samples {
        let Some(count) = counter(sample) else { continue };
        let (at_us, before) = *begun.get_or_insert((sample.at_us, count));
        let length = sample.at_us - at_us;
        if length >= WINDOW_US {
            rates.push((count - before) * 1e6 / length as f64);
            begun = Some((sample.at_us, count));
        }
    }
    rates.sort_by(f64::total_cmp);
    (rates.len() >= 3).then(|| rates[rates.len() / 2])
}

fn changes(table: &TableCounters) -> i64 {
    [table.inserted, table.updated, table.deleted].into_iter().flatten().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(seconds: f64, commits: f64) -> Sample {
        Sample { at_us: (seconds * 1e6) as i64, commits: Some(commits), ..Sample::default() }
    }

    #[test]
    fn commits_that_were_reported_late_do_not_change_the_usual_rate() {
        let late = |seconds: f64| if seconds > 1.5 { 40_000.0 } else { 0.0 };
        let samples: Vec<Sample> = (0..=50)
            .map(|number| f64::from(number) / 10.0)
            .map(|seconds| counted(seconds, 1_000.0 * seconds + late(seconds)))
            .collect();
        let rate = usual(&samples, |sample| sample.commits).unwrap();
        assert!((999.0..1_001.0).contains(&rate), "{rate}");
        assert_eq!(usual(&samples[..25], |sample| sample.commits), None, "two windows do not tell");
        assert_eq!(usual(&samples, |sample| sample.changes), None);
    }
}
