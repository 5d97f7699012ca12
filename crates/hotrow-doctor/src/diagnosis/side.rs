//! Lesser findings: a long snapshot, checkpoints, replication, and what the doctor could not see.

use hotrow_core::untrusted::{identifier, literal};

use crate::counters::TableCounters;
use crate::diagnosis::findings::{Finding, Severity, Situation};
use crate::diagnosis::parts::Parts;
use crate::recording::{Lost, Table};
use crate::sample::Session;

/// Transactions that began after a snapshot before it counts as long.
const SNAPSHOT_AGE_MIN: i64 = 1_000;
/// Dead rows that a long snapshot has to keep before it is worth a finding.
const DEAD_MIN: i64 = 1_000;
/// Time that a session can be idle in a transaction.
const IDLE_SECONDS: f64 = 30.0;
/// Bytes of WAL that a slot can hold back.
const HELD_BYTES: f64 = (1u64 << 30) as f64;

/// The findings beside the main ones.
pub fn findings(parts: &Parts<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = parts.recording.lost.iter().map(lost).collect();
    found.extend(of_server(parts));
    found.extend(of_sight(parts));
    found
}

fn side(severity: Severity, text: String, next: String) -> Finding {
    Finding { kind: Situation::Side, severity, text, next }
}

/// The run ended early.
fn lost(lost: &Lost) -> Finding {
    let text = format!(
        "The server closed the doctor's connection {:.1} s after the first sample ({}). The report covers the time before, \
         without the server's counters.",
        lost.seconds, lost.message
    );
    side(Severity::Warning, text, "see the server's log, and run the doctor again".to_owned())
}

/// What is wrong beside the sessions' waits.
fn of_server(parts: &Parts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let throughput = parts.throughput;
    if throughput.requested_checkpoints >= 1.0 {
        found.push(side(
            Severity::Warning,
            format!(
                "{:.0} checkpoints were requested during the run, because the WAL reached max_wal_size or someone ran CHECKPOINT.",
                throughput.requested_checkpoints
            ),
            "a larger max_wal_size makes checkpoints rare".to_owned(),
        ));
    }
    if throughput.deadlocks >= 1.0 {
        found.push(side(
            Severity::Warning,
            format!(
                "The server resolved {:.0} deadlocks during the run by cancelling a transaction each.",
                throughput.deadlocks
            ),
            "lock the rows of a transaction in one order".to_owned(),
        ));
    }
    for slot in &parts.recording.after.slots {
        if slot.held_bytes.unwrap_or(0.0) >= HELD_BYTES {
            found.push(side(
                Severity::Warning,
                format!(
                    "The replication slot {} holds {:.1} GB of WAL back{}.",
                    slot.name,
                    slot.held_bytes.unwrap_or(0.0) / 1e9,
                    if slot.active { "" } else { ", and no receiver is connected" }
                ),
                format!("start its receiver, or select pg_drop_replication_slot({})", literal(&slot.name)),
            ));
        }
    }
    if let Some((pid, seconds)) = parts.idle_longest().filter(|(_, seconds)| *seconds >= IDLE_SECONDS) {
        found.push(side(
            Severity::Warning,
            format!("Process {pid} has been idle in its transaction for {seconds:.0} s."),
            format!("select pg_terminate_backend({pid}); idle_in_transaction_session_timeout prevents it"),
        ));
    }
    found
}

/// What the doctor could not see.
fn of_sight(parts: &Parts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(parts.rows.unread.iter().map(|table| unread(table, &parts.recording.abilities.role)));
    if parts.load.elsewhere >= 0.5 {
        found.push(side(
            Severity::Info,
            format!(
                "{:.1} sessions work in other databases. Their tables cannot be named from {}.",
                parts.load.elsewhere, parts.recording.abilities.database
            ),
            "run the doctor with the other database in --upstream".to_owned(),
        ));
    }
    if parts.recording.after.statements.is_empty() && parts.recording.lost.is_none() {
        found.push(side(
            Severity::Info,
            format!(
                "Calls are estimated from samples, because pg_stat_statements is not there, or {} cannot use its schema.",
                parts.recording.abilities.role
            ),
            "add it to shared_preload_libraries, restart, and create extension pg_stat_statements; grant usage on its schema".to_owned(),
        ));
    }
    if let Some(why) = &parts.recording.unpackable {
        found.push(side(
            Severity::Info,
            format!("The verdicts on statements are incomplete: {why}."),
            "see hotrow explain".to_owned(),
        ));
    }
    found
}

/// A table whose rows the doctor did not read.
fn unread(table: &Table, role: &str) -> Finding {
    let name = table.full_name();
    let (text, next) = if table.readable {
        let text = format!(
            "Rows of {name} are named by their page, because {role} is a superuser and an owner of the table or its schema is \
             not. Reading could run this owner's code with all rights."
        );
        (text, "run the doctor as a member of pg_monitor that has SELECT on the table".to_owned())
    } else {
        let text = format!(
            "Rows of {name} are named by their page, because {role} cannot read the table safely: no SELECT, row security, or a \
             server without the setting restrict_nonsystem_relation_kind."
        );
        (
            text,
            format!(
                "grant select on {} to {}; or install the server's latest minor release",
                table.quoted(),
                identifier(role)
            ),
        )
    };
    side(Severity::Info, text, next)
}

impl Parts<'_> {
    /// The session that has been idle in its transaction for the longest time, if it blocks no other.
    fn idle_longest(&self) -> Option<(i32, f64)> {
        let last = self.recording.samples.last()?;
        let stuck = self.stuck_blocker().and_then(|(blocker, _)| blocker.pid);
        let idle = last
            .sessions
            .iter()
            .filter(|session| session.is_idle_in_transaction() && Some(session.pid) != stuck);
        let session =
            idle.filter(|session| session.changed_us.is_some()).min_by_key(|session| session.changed_us)?;
        Some((session.pid, (last.at_us - session.changed_us?) as f64 / 1e6))
    }

    /// A snapshot that keeps dead rows.
    pub fn long_snapshot(&self) -> Option<Finding> {
        let (dead, table) = self.kept_dead()?;
        let last = self.recording.samples.last()?;
        let oldest = last
            .sessions
            .iter()
            .filter(|session| session.is_client())
            .max_by_key(|session| session.xmin_age)?;
        let age = oldest.xmin_age.unwrap_or(0);
        let slot = self.recording.after.slots.iter().max_by_key(|slot| slot.xmin_age);
        let standby = self.recording.after.standbys.iter().max_by_key(|standby| standby.xmin_age);
        let slot_age = slot.and_then(|slot| slot.xmin_age).unwrap_or(0);
        let standby_age = standby.and_then(|standby| standby.xmin_age).unwrap_or(0);
        let (who, next) = if slot_age >= age.max(standby_age).max(SNAPSHOT_AGE_MIN) {
            let name = slot.map_or("", |slot| slot.name.as_str());
            (format!("The replication slot {name}"), "start the slot's receiver, or drop the slot".to_owned())
        } else if standby_age >= age.max(SNAPSHOT_AGE_MIN) {
            let name = standby.map_or("", |standby| standby.name.as_str());
            (
                format!("A query on the standby {name}"),
                "end the query there, or set hot_standby_feedback = off".to_owned(),
            )
        } else if age >= SNAPSHOT_AGE_MIN && self.lasted_all_samples(oldest) {
            let since = oldest.xact_us.map_or(0.0, |began| (last.at_us - began).max(0) as f64 / 1e6);
            let state =
                if oldest.is_idle_in_transaction() { "idle in its transaction" } else { "in one statement" };
            let who = format!("Process {}, {state} for {since:.1} s,", oldest.pid);
            (
                who,
                format!(
                    "select pg_terminate_backend({}); idle_in_transaction_session_timeout or statement_timeout prevents it",
                    oldest.pid
                ),
            )
        } else {
            return None;
        };
        let vacuum = if self.load.vacuums > 0.0 { " Autovacuum runs and cannot remove them." } else { "" };
        Some(Finding {
            kind: Situation::LongSnapshot,
            severity: Severity::Critical,
            text: format!(
                "{who} has a snapshot that {} transactions have overtaken. {dead} dead rows of {table} cannot be removed, and every \
                 statement on them gets slower.{vacuum}",
                age.max(slot_age).max(standby_age)
            ),
            next,
        })
    }

    /// The table with the most new dead rows, if few of them were removed.
    fn kept_dead(&self) -> Option<(i64, String)> {
        let kept = |table: &&TableCounters| {
            let made = table.updated.unwrap_or(0) + table.deleted.unwrap_or(0);
            let new = table.dead.unwrap_or(0);
            new >= DEAD_MIN && new * 2 >= made
        };
        let table = self.throughput.tables.iter().filter(kept).max_by_key(|table| table.dead)?;
        let now = self.recording.after.table(table.oid).and_then(|table| table.dead).unwrap_or(0);
        Some((now, table.name.clone()))
    }

    /// Whether a session's transaction was there in all samples.
    fn lasted_all_samples(&self, oldest: &Session) -> bool {
        self.recording
            .samples
            .first()
            .is_some_and(|first| oldest.xact_us.is_some_and(|began| began <= first.at_us))
    }
}
