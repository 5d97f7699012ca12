//! The report: one structure from which the JSON, the text and the page are made. docs/doctor.md describes its fields.

pub mod chart;
pub mod html;
pub mod text;

use std::collections::BTreeMap;

use hotrow_core::normalise::without_values;
use serde::Serialize;

use crate::diagnosis::findings::Finding;
use crate::diagnosis::load::Class;
use crate::diagnosis::lock_waits::LockWaits;
use crate::diagnosis::rows::HotRow;
use crate::diagnosis::statements::{StatementLoad, verdict};
use crate::diagnosis::throughput::Throughput;
use crate::diagnosis::workload::Workload;
use crate::diagnosis::{Diagnosis, summary};
use crate::recording::Recording;

/// The version of the JSON. A field that is removed or changes its meaning makes a new one.
pub const VERSION: u32 = 1;
/// Characters of a statement's text.
const TEXT_CHARS: usize = 500;
/// Lines of the lock tree.
const TREE_MAX: usize = 100;

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this structure.
    pub version: u32,
    pub server: Server,
    /// Length of the run in seconds.
    pub seconds: f64,
    /// Samples that were evaluated.
    pub samples: usize,
    /// The share of one core's time that the doctor's statements took.
    pub cost: f64,
    /// The first lines.
    pub summary: [String; 5],
    /// What is wrong, the most important first.
    pub findings: Vec<Finding>,
    pub sessions: Sessions,
    /// The rows that sessions wait for.
    pub hot_rows: Vec<Row>,
    /// Which session waits for which, at the worst moment.
    pub lock_tree: Vec<TreeLine>,
    /// The statements with the most time.
    pub statements: Vec<Statement>,
    /// Work per second.
    pub throughput: Rates,
    /// Long waits for locks, by type.
    pub lock_waits: Vec<LockWaits>,
    /// Replication slots and standbys.
    pub replication: Vec<Receiver>,
    /// What the gateway would give.
    pub prediction: Prediction,
    /// The shape of the load.
    pub workload: Workload,
}

#[derive(Clone, Debug, Serialize)]
pub struct Server {
    pub version: String,
    pub database: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Sessions {
    /// Average number of clients' sessions.
    pub total: f64,
    /// Average number of active sessions.
    pub active: f64,
    /// Average number of sessions by wait event.
    pub by_wait: BTreeMap<String, f64>,
    /// Average number of sessions by class, over time.
    pub over_time: Vec<BTreeMap<&'static str, f64>>,
    /// The same by wait event.
    pub by_wait_over_time: Vec<BTreeMap<String, f64>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub table: String,
    /// Its key. Values are null without `--show-keys`, and if they are not known.
    pub key: BTreeMap<String, Option<String>>,
    pub page: u32,
    /// Average number of sessions that wait for it.
    pub waiting: f64,
    /// Its share in all waits for rows.
    pub share: f64,
}

/// A line of the lock tree.
#[derive(Clone, Debug, Serialize)]
pub struct TreeLine {
    /// Sessions between it and the blocker.
    pub depth: usize,
    /// Its process.
    pub pid: Option<i32>,
    /// What it does.
    pub does: String,
    pub statement: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Statement {
    pub text: String,
    /// Calls during the run.
    pub calls: f64,
    /// The server counted the calls. Otherwise they are those that were seen.
    pub counted: bool,
    /// Average number of sessions that run it.
    pub active: f64,
    /// The share of its calls in transactions that wait for their client.
    pub interactive: f64,
    /// The class in which it spends the most time.
    pub waits: Option<&'static str>,
    /// The gateway's decision.
    pub verdict: String,
    /// Why.
    pub reason: String,
    /// What to write instead.
    pub remedy: Option<String>,
}

/// Work per second. Null: not known.
#[derive(Clone, Debug, Serialize)]
pub struct Rates {
    pub commits: Option<f64>,
    /// Transactions that write.
    pub writes: Option<f64>,
    /// WAL flushes.
    pub flushes: Option<f64>,
    /// Flushes per transaction that writes.
    pub flushes_per_write: Option<f64>,
    /// The time of a flush in milliseconds.
    pub flush_ms: Option<f64>,
    /// Bytes of WAL.
    pub wal_bytes: Option<f64>,
    /// Bytes of WAL per transaction that writes.
    pub wal_bytes_per_write: Option<f64>,
    pub statements: Option<f64>,
}

/// A replication slot or a standby.
#[derive(Clone, Debug, Serialize)]
pub struct Receiver {
    /// `slot` or `standby`.
    pub kind: &'static str,
    pub name: String,
    pub state: String,
    /// Bytes of WAL that it holds back or has not replayed.
    pub behind_bytes: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// The cautious factor on today's rate.
    pub low: f64,
    /// The optimistic factor.
    pub high: f64,
    /// Today's rate of the hot row, per second.
    pub today: Option<f64>,
    /// What the range assumes.
    pub assumptions: Vec<String>,
}

impl Report {
    /// The report about a recording. Values appear in it only if `show_keys` is set.
    pub fn new(recording: &Recording, diagnosis: &Diagnosis, show_keys: bool) -> Report {
        let shown = Shown { recording, show_keys };
        let load = &diagnosis.load;
        let named = |classes: &BTreeMap<Class, f64>| {
            classes.iter().map(|(class, sessions)| (class.name(), round(*sessions))).collect()
        };
        let by_wait = load.by_wait.iter().map(|(wait, sessions)| (wait.clone(), round(*sessions)));
        let waits = |waits: &BTreeMap<String, f64>| {
            waits.iter().map(|(wait, sessions)| (wait.clone(), round(*sessions))).collect()
        };
        let prediction = &diagnosis.prediction;
        Report {
            version: VERSION,
            server: Server {
                version: recording.abilities.version_text.clone(),
                database: recording.abilities.database.clone(),
            },
            seconds: round(load.seconds),
            samples: load.samples,
            cost: round(recording.own_ms / 1e3 / load.seconds.max(1e-3)),
            summary: summary::summary(recording, diagnosis),
            findings: diagnosis.findings.clone(),
            sessions: Sessions {
                total: round(load.sessions),
                active: round(load.active),
                by_wait: by_wait.collect(),
                over_time: load.series.iter().map(named).collect(),
                by_wait_over_time: load.wait_series.iter().map(waits).collect(),
            },
            hot_rows: diagnosis.rows.rows.iter().map(|row| shown.row(row)).collect(),
            lock_tree: shown.tree(diagnosis),
            statements: diagnosis.statements.top.iter().map(|load| shown.statement(load)).collect(),
            workload: diagnosis.workload.clone(),
            throughput: rates(&diagnosis.throughput),
            lock_waits: diagnosis.lock_waits.clone(),
            replication: receivers(recording),
            prediction: Prediction {
                low: round(prediction.low),
                high: round(prediction.high),
                today: prediction.today.map(round),
                assumptions: prediction.assumptions.clone(),
            },
        }
    }
}

/// What a report can show of a recording.
struct Shown<'r> {
    recording: &'r Recording,
    show_keys: bool,
}

impl Shown<'_> {
    fn row(&self, row: &HotRow) -> Row {
        let value = |value: &Option<String>| value.clone().filter(|_| self.show_keys);
        Row {
            table: row.table.clone(),
            key: row.key.iter().map(|(column, known)| (column.clone(), value(known))).collect(),
            page: row.page,
            waiting: round(row.waiting),
            share: round(row.share),
        }
    }

    fn text(&self, statement: Option<usize>) -> String {
        let statement = statement.and_then(|index| self.recording.statements.get(index));
        without_values(statement.map_or("", |statement| &statement.shape), TEXT_CHARS)
    }

    fn tree(&self, diagnosis: &Diagnosis) -> Vec<TreeLine> {
        let lines = diagnosis.blocking.tree.iter().take(TREE_MAX);
        let line = |line: &crate::diagnosis::blocking::TreeLine| TreeLine {
            depth: line.depth,
            pid: line.pid,
            does: line.does.clone(),
            statement: self.text(line.statement),
        };
        lines.map(line).collect()
    }

    fn statement(&self, load: &StatementLoad) -> Statement {
        let verdict = verdict(self.recording, load).cloned().unwrap_or_default();
        Statement {
            text: self.text(Some(load.statement)),
            calls: load.calls,
            counted: load.is_counted,
            active: round(load.active),
            interactive: round(load.interactive),
            waits: load.waits.map(Class::name),
            verdict: if verdict.name.is_empty() { "unknown".to_owned() } else { verdict.name },
            reason: verdict.reason.chars().take(TEXT_CHARS).collect(),
            remedy: verdict.remedy,
        }
    }
}

fn rates(throughput: &Throughput) -> Rates {
    let per_write = |rate: Option<f64>| {
        rate.zip(throughput.writes)
            .filter(|(_, writes)| *writes >= 1.0)
            .map(|(rate, writes)| round(rate / writes))
    };
    Rates {
        commits: throughput.commits.map(round),
        writes: throughput.writes.map(round),
        flushes: throughput.flushes.map(round),
        flushes_per_write: per_write(throughput.flushes),
        flush_ms: throughput.flush_ms.map(round),
        wal_bytes: throughput.wal.map(f64::round),
        wal_bytes_per_write: per_write(throughput.wal),
        statements: throughput.statements.map(round),
    }
}

fn receivers(recording: &Recording) -> Vec<Receiver> {
    let slots = recording.after.slots.iter().map(|slot| Receiver {
        kind: "slot",
        name: slot.name.clone(),
        state: format!("{}, {}", slot.kind, if slot.active { "active" } else { "inactive" }),
        behind_bytes: slot.held_bytes,
    });
    let standbys = recording.after.standbys.iter().map(|standby| Receiver {
        kind: "standby",
        name: standby.name.clone(),
        state: [&standby.state, &standby.sync].into_iter().flatten().cloned().collect::<Vec<_>>().join(", "),
        behind_bytes: standby.behind_bytes,
    });
    slots.chain(standbys).collect()
}

/// Rounds to three places.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// A text in a page or a picture.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
