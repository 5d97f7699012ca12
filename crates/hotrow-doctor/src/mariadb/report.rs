//! The report about a MariaDB server: one structure from which the JSON and the text are made. docs/mysql/doctor.md describes it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::diagnosis::findings::Finding;
use crate::mariadb::diagnosis::{Diagnosis, missing_routines};
use crate::mariadb::load::Class;
use crate::mariadb::rates::{Rates, round};
use crate::mariadb::rows::{HotRow, ROWS_MAX};
use crate::mariadb::statements::StatementLoad;
use crate::mariadb::summary;
use crate::mariadb::verdict::VerdictKind;

/// The version of the JSON. A field that is removed or changes its meaning makes a new one.
pub const VERSION: u32 = 1;
/// Statements of a report.
const STATEMENTS_MAX: usize = 20;

/// What the doctor says.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this structure.
    pub version: u32,
    pub server: Server,
    /// Length of the run in seconds.
    pub seconds: f64,
    pub samples: usize,
    /// The share of one core's time that the doctor's queries took.
    pub cost: f64,
    /// The first lines.
    pub summary: [String; 5],
    /// What is wrong, the most important first.
    pub findings: Vec<Finding>,
    pub sessions: Sessions,
    /// The rows that sessions wait for.
    pub hot_rows: Vec<Row>,
    /// The statements with the most sessions.
    pub statements: Vec<Statement>,
    pub throughput: Rates,
    /// Whether the gateway would pack the statements of the first finding.
    pub helps: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Server {
    /// `mariadb`.
    pub product: &'static str,
    pub version: String,
    pub database: Option<String>,
    /// Null without a binary log.
    pub binlog_format: Option<String>,
    /// Whether the doctor sees what packing needs at the server.
    pub has_routines: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Sessions {
    /// Average number of sessions that run a statement.
    pub active: f64,
    /// Average number of sessions by what they do.
    pub by_class: BTreeMap<Class, f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub table: String,
    pub index: String,
    /// Its key. Values are null without `--show-keys`, and if they are not known.
    pub key: BTreeMap<String, Option<String>>,
    /// Its name.
    pub name: String,
    /// Average number of sessions that wait for it.
    pub waiting: f64,
    /// Its share in all waits for rows.
    pub share: f64,
    /// Number of transactions that were seen to hold it.
    pub holders: usize,
    /// The part of these that waited for their client.
    pub idle_holders: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Statement {
    pub text: String,
    /// Average number of sessions that run it, and of those that wait for a row in it.
    pub active: f64,
    pub waiting: f64,
    /// The part of its calls in transactions of several statements.
    pub in_transaction: f64,
    /// The gateway's decision.
    pub verdict: VerdictKind,
    /// Why.
    pub reason: String,
    /// What to do instead.
    pub remedy: Option<String>,
}

impl Report {
    /// The report about a diagnosis.
    pub fn new(diagnosis: &Diagnosis<'_>) -> Self {
        let recording = diagnosis.recording;
        let abilities = &recording.abilities;
        let load = &diagnosis.load;
        Report {
            version: VERSION,
            server: Server {
                product: "mariadb",
                version: abilities.version.clone(),
                database: abilities.database.clone(),
                binlog_format: abilities.has_binary_log.then(|| abilities.binlog_format.clone()),
                has_routines: missing_routines(&abilities.routines) == 0,
            },
            seconds: round(recording.seconds),
            samples: load.samples,
            cost: round(recording.own_seconds / recording.seconds.max(1e-3)),
            summary: summary::summary(diagnosis),
            findings: diagnosis.findings.clone(),
            sessions: Sessions {
                active: round(load.active),
                by_class: load.classes.iter().map(|(class, sessions)| (*class, round(*sessions))).collect(),
            },
            hot_rows: rows(diagnosis),
            statements: statements(diagnosis),
            throughput: diagnosis.rates,
            helps: diagnosis.helps,
        }
    }
}

fn rows(diagnosis: &Diagnosis<'_>) -> Vec<Row> {
    let value = |value: &Option<String>| value.clone().filter(|_| diagnosis.show_keys);
    let row = |row: &HotRow| Row {
        table: row.table.to_string(),
        index: row.index.clone(),
        key: row.key.iter().map(|(column, known)| (column.clone(), value(known))).collect(),
        name: diagnosis.row_name(row),
        waiting: round(row.waiting),
        share: round(row.share),
        holders: row.holders,
        idle_holders: round(row.idle_holders),
    };
    diagnosis.rows.iter().take(ROWS_MAX).map(row).collect()
}

fn statements(diagnosis: &Diagnosis<'_>) -> Vec<Statement> {
    let statement = |load: &StatementLoad| Statement {
        text: diagnosis.text(load.statement),
        active: round(load.active),
        waiting: round(load.waiting),
        in_transaction: round(load.in_transaction),
        verdict: load.verdict.kind,
        reason: load.verdict.reason.clone(),
        remedy: load.verdict.remedy.clone(),
    };
    diagnosis.statements.iter().take(STATEMENTS_MAX).map(statement).collect()
}
