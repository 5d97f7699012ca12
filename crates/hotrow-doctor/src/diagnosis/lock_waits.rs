//! Long waits for locks, as `pg_stat_lock` counts them in version 19 and later: only waits that took longer than
//! deadlock_timeout and then got the lock. Earlier versions have no such counters.

use serde::Serialize;
use serde_json::Value;

use crate::counters::change;
use crate::diagnosis::findings::{Finding, Severity, Situation};
use crate::recording::Recording;

/// Locks per second that find no fast path before it is worth a finding.
const BEYOND_FAST_PATH_MIN: f64 = 10.0;

/// The waits for locks of one type during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LockWaits {
    /// `pg_locks.locktype`.
    pub kind: String,
    /// Waits that were longer than deadlock_timeout and got the lock.
    pub waits: f64,
    /// Their time in milliseconds.
    pub wait_ms: f64,
    /// Locks that found no free slot of the fast path.
    pub beyond_fast_path: f64,
}

impl LockWaits {
    /// The types of locks with waits, the longest first.
    pub fn of(recording: &Recording) -> Vec<LockWaits> {
        let rows = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let before = rows(&recording.before.locks);
        let mut waits: Vec<LockWaits> = rows(&recording.after.locks)
            .iter()
            .filter_map(|after| {
                let kind = after.get("locktype")?.as_str()?;
                let same = |row: &&Value| row.get("locktype").and_then(Value::as_str) == Some(kind);
                let before = before.iter().find(same).unwrap_or(&Value::Null);
                Some(LockWaits {
                    kind: kind.to_owned(),
                    waits: change(before, after, "waits"),
                    wait_ms: change(before, after, "wait_time"),
                    beyond_fast_path: change(before, after, "fastpath_exceeded"),
                })
            })
            .filter(|waits| waits.waits > 0.0 || waits.beyond_fast_path > 0.0)
            .collect();
        waits.sort_by(|left, right| right.wait_ms.total_cmp(&left.wait_ms));
        waits
    }
}

/// The findings about them. `seconds` is the length of the run.
pub fn findings(waits: &[LockWaits], seconds: f64) -> Vec<Finding> {
    let mut found = Vec::new();
    for of_kind in waits.iter().filter(|waits| waits.waits >= 1.0) {
        found.push(Finding {
            kind: Situation::Side,
            severity: Severity::Info,
            text: format!(
                "{:.0} waits for locks of type {} took longer than deadlock_timeout, {:.1} s on average.",
                of_kind.waits,
                of_kind.kind,
                of_kind.wait_ms / of_kind.waits / 1e3
            ),
            next: "the server's log names the sessions and statements, because log_lock_waits is on by default in version 19"
                .to_owned(),
        });
    }
    let beyond: f64 = waits.iter().map(|waits| waits.beyond_fast_path).sum();
    if seconds > 0.0 && beyond / seconds >= BEYOND_FAST_PATH_MIN {
        found.push(Finding {
            kind: Situation::Side,
            severity: Severity::Warning,
            text: format!(
                "{:.0} locks per second found no free slot of the fast path, so the sessions meet at the lock manager.",
                beyond / seconds
            ),
            next: "raise max_locks_per_transaction, or let statements touch fewer tables, indexes and partitions".to_owned(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn waits_are_those_of_the_run_and_the_longest_come_first() {
        let row = |kind: &str, waits: i64, ms: f64, beyond: i64| json!({"locktype": kind, "waits": waits, "wait_time": ms, "fastpath_exceeded": beyond, "stats_reset": null});
        let mut recording = Recording::default();
        assert_eq!(LockWaits::of(&recording), []);
        recording.before.locks = json!([row("tuple", 4, 5_000.0, 0), row("relation", 0, 0.0, 10)]);
        recording.after.locks = json!([
            row("relation", 0, 0.0, 510),
            row("tuple", 6, 8_000.0, 0),
            row("transactionid", 1, 9_000.0, 0),
            row("page", 0, 0.0, 0)
        ]);
        let waits = LockWaits::of(&recording);
        let kinds: Vec<_> = waits.iter().map(|waits| waits.kind.as_str()).collect();
        assert_eq!(kinds, ["transactionid", "tuple", "relation"]);
        let texts: Vec<_> = findings(&waits, 10.0).into_iter().map(|finding| finding.text).collect();
        assert!(
            texts[1].starts_with("2 waits for locks of type tuple took longer than deadlock_timeout, 1.5 s"),
            "{texts:?}"
        );
        assert!(texts[2].starts_with("50 locks per second"), "{texts:?}");
        assert_eq!(findings(&waits, 100.0).len(), 2, "five per second are few");
    }
}
