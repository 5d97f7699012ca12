//! The server's counters as rates. Pure.

use serde::Serialize;

use crate::mariadb::recording::{Counters, Recording};

/// What the counters say about a run, per second where no other unit is named. Null: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// INSERT, UPDATE, DELETE and REPLACE.
    pub changes: Option<f64>,
    /// Transactions in the binary log.
    pub commits: Option<f64>,
    /// Changes in a commit.
    pub changes_per_commit: Option<f64>,
    /// Flushes of the binary log, each for a group of commits.
    pub commit_groups: Option<f64>,
    /// Commits in a group.
    pub commits_per_group: Option<f64>,
    /// Flushes of InnoDB's log, or of all its files if the server does not count those of its log.
    pub flushes: Option<f64>,
    /// Waits for rows that have begun.
    pub row_waits: Option<f64>,
    /// The average time of a wait that has ended, in milliseconds.
    pub row_wait_ms: Option<f64>,
    /// Average number of sessions that waited for rows, from the time of the waits that have ended.
    pub row_waiting: Option<f64>,
    pub deadlocks: Option<f64>,
}

/// The counters whose sum is the number of changes.
const CHANGES: [&str; 8] = [
    "com_insert",
    "com_update",
    "com_delete",
    "com_replace",
    "com_insert_select",
    "com_update_multi",
    "com_delete_multi",
    "com_replace_select",
];

impl Rates {
    /// The rates of a recording.
    pub fn of(recording: &Recording) -> Self {
        let Recording { before, after, seconds, .. } = recording;
        if after.is_empty() || *seconds <= 0.0 {
            return Rates::default();
        }
        let rate = |name: &str| Some(round(since(before, after, name)? / seconds));
        let ratio = |above: Option<f64>, below: Option<f64>| {
            Some(round(above? / below.filter(|below| *below > 0.0)?))
        };
        let has_log = recording.abilities.has_binary_log;
        let commits = rate("binlog_commits").filter(|_| has_log);
        let commit_groups = rate("binlog_group_commits").filter(|_| has_log);
        let (row_waits, row_ms) = (rate("innodb_row_lock_waits"), rate("innodb_row_lock_time"));
        let changes = CHANGES.iter().filter_map(|name| rate(name)).reduce(|sum, one| sum + one);
        Rates {
            changes,
            commits,
            changes_per_commit: ratio(changes, commits),
            commit_groups,
            commits_per_group: ratio(commits, commit_groups),
            flushes: rate("innodb_os_log_fsyncs").or_else(|| rate("innodb_data_fsyncs")),
            row_waits,
            row_wait_ms: ratio(row_ms, row_waits),
            row_waiting: row_ms.map(|ms| round(ms / 1e3)),
            deadlocks: rate("innodb_deadlocks"),
        }
    }
}

/// A number for a report.
pub fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// The change of a counter. None if the server does not have it, or has started anew.
fn since(before: &Counters, after: &Counters, name: &str) -> Option<f64> {
    Some(after.get(name)?.checked_sub(*before.get(name)?)? as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mariadb::recording::Abilities;

    fn counters(pairs: &[(&str, u64)]) -> Counters {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn counters_become_rates() {
        let mut recording = Recording {
            before: counters(&[
                ("binlog_commits", 100),
                ("binlog_group_commits", 50),
                ("innodb_data_fsyncs", 7),
                ("com_update", 1),
                ("com_insert", 5),
            ]),
            after: counters(&[
                ("binlog_commits", 300),
                ("binlog_group_commits", 150),
                ("innodb_data_fsyncs", 27),
                ("com_update", 21),
                ("com_insert", 5),
            ]),
            seconds: 10.0,
            abilities: Abilities { has_binary_log: true, ..Abilities::default() },
            ..Recording::default()
        };
        let rates = Rates::of(&recording);
        assert_eq!(
            (rates.commits, rates.commit_groups, rates.commits_per_group),
            (Some(20.0), Some(10.0), Some(2.0))
        );
        assert_eq!((rates.flushes, rates.changes, rates.row_waits), (Some(2.0), Some(2.0), None));
        recording.abilities.has_binary_log = false;
        assert_eq!(Rates::of(&recording).commits, None);
        recording.after = counters(&[("com_update", 0), ("innodb_row_lock_waits", 4)]);
        recording.before.insert("innodb_row_lock_waits".to_owned(), 0);
        assert_eq!(Rates::of(&recording).changes, None, "the server has started anew");
        recording.after = Counters::new();
        assert_eq!(Rates::of(&recording), Rates::default());
    }

    #[test]
    fn waits_have_a_number_and_a_time() {
        let recording = Recording {
            before: counters(&[("innodb_row_lock_waits", 10), ("innodb_row_lock_time", 1_000)]),
            after: counters(&[("innodb_row_lock_waits", 30), ("innodb_row_lock_time", 5_000)]),
            seconds: 2.0,
            ..Recording::default()
        };
        let rates = Rates::of(&recording);
        assert_eq!(
            (rates.row_waits, rates.row_wait_ms, rates.row_waiting),
            (Some(10.0), Some(200.0), Some(2.0))
        );
    }
}
