//! The diagnosis of a recording: the loads, and the findings from them. Pure.

use std::collections::BTreeSet;

use hotrow_core::page;

use crate::diagnosis::findings::{Finding, Severity, Situation};
use crate::diagnosis::summary::amount;
use crate::mariadb::load::{Class, Load};
use crate::mariadb::rates::Rates;
use crate::mariadb::recording::Recording;
use crate::mariadb::rows::{HotRow, rows};
use crate::mariadb::statements::{Calls, StatementLoad, calls, lanes, statements};
use crate::mariadb::verdict::{ROUTINES, VerdictKind, server_refuses};

/// Sessions that have to wait on average before a wait is worth a finding.
const WAITING_MIN: f64 = 0.5;
/// The share of one row, or of a few rows, beside which no other row counts.
const FEW_ROWS: f64 = 0.85;
/// Rows that count as a few.
const FEW: usize = 4;
/// The part of the holders that waited for their client, from which the client is the reason.
const IDLE_HOLDERS: f64 = 0.3;
/// The part of the samples in which the same transaction holds a row that is stuck, and its age in seconds.
const STUCK: f64 = 0.8;
const STUCK_SECONDS: u64 = 2;
/// Characters of a statement in a finding.
const TEXT_CHARS: usize = 160;

/// What is wrong with a server, and what the gateway would change.
#[derive(Debug)]
pub struct Diagnosis<'r> {
    pub recording: &'r Recording,
    /// Values of keys can be shown.
    pub show_keys: bool,
    pub load: Load,
    pub rows: Vec<HotRow>,
    pub statements: Vec<StatementLoad>,
    /// None if no statement was seen.
    pub calls: Option<Calls>,
    pub rates: Rates,
    /// The main finding first. At least one.
    pub findings: Vec<Finding>,
    /// Whether the gateway would pack the statements of the main finding.
    pub helps: bool,
}

/// Diagnoses a recording.
pub fn diagnose(recording: &Recording, show_keys: bool) -> Diagnosis<'_> {
    let statements = statements(recording);
    let mut diagnosis = Diagnosis {
        recording,
        show_keys,
        load: Load::of(recording),
        rows: rows(recording),
        calls: calls(&statements),
        statements,
        rates: Rates::of(recording),
        findings: Vec::new(),
        helps: false,
    };
    let main = diagnosis.main();
    diagnosis.helps = diagnosis.helps_with(main.kind);
    let next = if diagnosis.helps { diagnosis.next_command() } else { main.next };
    diagnosis.findings.extend(diagnosis.blind());
    diagnosis.findings.push(Finding { next, ..main });
    diagnosis.findings.extend(diagnosis.side());
    diagnosis
}

impl Diagnosis<'_> {
    /// The finding that explains the waits.
    pub fn explanation(&self) -> &Finding {
        let explains = |finding: &&Finding| finding.kind != Situation::Blind;
        self.findings.iter().find(explains).unwrap_or(&self.findings[0])
    }

    /// Average number of sessions that wait for rows.
    pub fn waiting(&self) -> f64 {
        self.rows.iter().map(|row| row.waiting).fold(0.0, |sum, one| sum + one)
    }

    fn main(&self) -> Finding {
        let candidates = [self.stuck(), self.row_locks(), self.other_locks(), self.commits()];
        candidates.into_iter().flatten().next().unwrap_or_else(|| self.nothing())
    }

    fn blind(&self) -> Option<Finding> {
        let account = &self.recording.abilities.account;
        (!self.recording.abilities.sees_sessions).then(|| Finding {
            kind: Situation::Blind,
            severity: Severity::Warning,
            text: format!(
                "The account {account} cannot see what other sessions do, and which rows they wait for."
            ),
            next: format!("grant process on *.* to {account}"),
        })
    }

    fn stuck(&self) -> Option<Finding> {
        let is_stuck = |row: &&HotRow| {
            let holder = row.longest.as_ref();
            row.waiting >= WAITING_MIN
                && holder.is_some_and(|holder| holder.share >= STUCK && holder.age >= STUCK_SECONDS)
        };
        let row = self.rows.iter().find(is_stuck)?;
        let holder = row.longest.as_ref()?;
        let does = if holder.is_idle { "is idle in its transaction" } else { "runs a statement" };
        Some(Finding {
            kind: Situation::StuckSession,
            severity: Severity::Critical,
            text: format!(
                "Connection {} holds {} while {}: its transaction is {} s old, and the connection {does}.",
                holder.thread,
                self.row_name(row),
                wait(row.waiting),
                holder.age
            ),
            next: format!("end it: kill {}", holder.thread),
        })
    }

    fn row_locks(&self) -> Option<Finding> {
        let waiting = self.waiting();
        let row = self.rows.first().filter(|_| waiting >= WAITING_MIN)?;
        let few: f64 = self.rows.iter().take(FEW).map(|row| row.share).sum();
        let kind = match row {
            row if self.is_of_foreign_key(row) => Situation::ForeignKeyLocks,
            row if self.is_in_transactions(row) => Situation::HotRowInTransactions,
            row if row.share >= FEW_ROWS => Situation::HotRow,
            _ if few >= FEW_ROWS => Situation::HotRows,
            _ => Situation::RowLocks,
        };
        let named = self.rows.iter().take(FEW).map(|row| self.row_name(row)).collect::<Vec<_>>().join(", ");
        let name = self.row_name(row);
        let waits = wait(waiting);
        let text = match kind {
            Situation::ForeignKeyLocks => format!(
                "{waits} for {name} to check a foreign key, while other transactions change that row."
            ),
            Situation::HotRowInTransactions if row.share >= FEW_ROWS => {
                format!("{waits} for {name}. Transactions hold its lock while they wait for their clients.")
            }
            Situation::HotRowInTransactions => {
                format!(
                    "{waits} for rows such as {name}. Transactions hold the locks while they wait for their clients."
                )
            }
            Situation::HotRow => format!("{waits} for {name}."),
            Situation::HotRows => format!("{waits} for a few rows: {named}."),
            _ => format!("{waits} for many rows, such as {name}."),
        };
        let statement =
            row.statements.first().map(|statement| format!(" They run: {}", self.text(*statement)));
        Some(Finding {
            kind,
            severity: Severity::Critical,
            text: text + &statement.unwrap_or_default(),
            next: self.next_for_row(kind, row),
        })
    }

    /// What to do about a row if the gateway does not help.
    fn next_for_row(&self, kind: Situation, row: &HotRow) -> String {
        let text = match kind {
            Situation::ForeignKeyLocks => {
                "change the parent row at the end of its transaction, or move the column that changes into another table"
            }
            Situation::HotRowInTransactions => {
                "use autocommit for this statement, or make it the last one before COMMIT"
            }
            _ => "hold the lock for a shorter time: change the row at the end of the transaction",
        };
        let remedy = self.load_of(row).and_then(|load| load.verdict.remedy.as_deref());
        match remedy.filter(|_| !matches!(kind, Situation::ForeignKeyLocks | Situation::HotRowInTransactions))
        {
            Some(remedy) => remedy.to_owned(),
            None => text.to_owned(),
        }
    }

    fn other_locks(&self) -> Option<Finding> {
        let waiting = self.load.class(Class::Lock);
        (waiting >= WAITING_MIN).then(|| Finding {
            kind: Situation::TableLocks,
            severity: Severity::Critical,
            text: format!("{} for a lock of a table, or for another lock that is not one of a row.", wait(waiting)),
            next: "look for the statement or the transaction that has the lock: show full processlist, and information_schema.innodb_trx"
                .to_owned(),
        })
    }

    fn commits(&self) -> Option<Finding> {
        let waiting = self.load.class(Class::Commit);
        let is_most = Class::ALL.iter().all(|class| self.load.class(*class) <= waiting);
        (waiting >= WAITING_MIN && is_most).then(|| Finding {
            kind: Situation::Flush,
            severity: Severity::Warning,
            text: format!("{} until their commits are in the logs.", wait(waiting)),
            next: "commit several statements in one transaction, or use a disk with faster flushes"
                .to_owned(),
        })
    }

    fn nothing(&self) -> Finding {
        let counted = self.rates.row_waiting.unwrap_or_default();
        let blind = !self.recording.abilities.sees_sessions;
        if blind && counted >= WAITING_MIN {
            let text = format!("The server's counters say that {} for rows on average.", wait(counted));
            let next = "run the doctor again with the privilege PROCESS, to see which rows".to_owned();
            return Finding { kind: Situation::RowLocks, severity: Severity::Critical, text, next };
        }
        let text = match blind {
            true => "The server's counters show no long waits for rows.".to_owned(),
            false => format!(
                "There is no hot row: {} sessions are active on average, and {} of them wait for rows.",
                amount(self.load.active),
                amount(self.waiting())
            ),
        };
        let next = "run the doctor while the problem is there".to_owned();
        Finding { kind: Situation::NothingWrong, severity: Severity::Info, text, next }
    }

    fn side(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut side = |severity, text: String, next: String| {
            found.push(Finding { kind: Situation::Side, severity, text, next });
        };
        if let Some(message) = &self.recording.lost {
            side(
                Severity::Warning,
                format!("The doctor's connection was lost: {message}. The report covers the time before."),
                "run the doctor again for the counters and the verdicts".to_owned(),
            );
        }
        if !lanes(self.recording).is_empty() {
            let shared = self.rates.changes_per_commit.map_or_else(String::new, |changes| {
                format!(" On average, {} changes share a commit.", amount(changes))
            });
            side(
                Severity::Info,
                format!("A gateway of Hotrow is in front of this server.{shared}"),
                concat!(
                    "its metrics show which statements it packs: hotrow_not_packed_total (",
                    page!("mysql/README.md"),
                    ")"
                )
                .to_owned(),
            );
        }
        if let Some(deadlocks) = self.rates.deadlocks.filter(|deadlocks| *deadlocks > 0.0) {
            side(
                Severity::Warning,
                format!("There were {:.0} deadlocks.", (deadlocks * self.recording.seconds).max(1.0)),
                "show engine innodb status names the statements of the last one".to_owned(),
            );
        }
        let grants = self.statements.iter().filter(|load| load.verdict.kind != VerdictKind::PassedThrough);
        let grants: BTreeSet<&String> = grants.filter_map(|load| load.verdict.remedy.as_ref()).collect();
        for grant in grants {
            side(
                Severity::Info,
                "The doctor cannot see all facts about a table of the statements.".to_owned(),
                grant.clone(),
            );
        }
        if self.helps && !self.recording.abilities.has_binary_log {
            side(
                Severity::Info,
                "The server writes no binary log. InnoDB then releases the locks of rows before the flush of a commit, and the gateway gives less.".to_owned(),
                "compare the changes per second before and after".to_owned(),
            );
        }
        found
    }

    /// The load of the statement that waits for a row.
    fn load_of(&self, row: &HotRow) -> Option<&StatementLoad> {
        let statement = row.statements.first()?;
        self.statements.iter().find(|load| load.statement == *statement)
    }

    fn is_of_foreign_key(&self, row: &HotRow) -> bool {
        let table = self.load_of(row).and_then(|load| load.verdict.table.as_ref());
        row.shared >= 0.5 && table.is_some_and(|table| *table != row.table)
    }

    fn is_in_transactions(&self, row: &HotRow) -> bool {
        let in_transaction = self.load_of(row).is_some_and(|load| load.in_transaction >= 0.5);
        row.idle_holders >= IDLE_HOLDERS || in_transaction
    }

    fn helps_with(&self, kind: Situation) -> bool {
        match kind {
            Situation::HotRow | Situation::HotRows | Situation::RowLocks => {
                let load = self.rows.first().and_then(|row| self.load_of(row));
                load.is_some_and(|load| load.verdict.kind == VerdictKind::Packed)
            }
            Situation::Flush => self.calls.is_some_and(|calls| calls.packed >= 0.5),
            _ => false,
        }
    }

    /// What has to be typed to send the statements through the gateway.
    fn next_command(&self) -> String {
        let serve = format!(
            "hotrow serve --upstream mysql://GATE:PASSWORD@{} --listen 127.0.0.1:6433 --pack true",
            self.recording.address
        );
        match missing_routines(&self.recording.abilities.routines) {
            0 => format!("send these statements through the gateway: {serve}"),
            _ => format!(
                "run hotrow migrate --upstream mysql://ADMINISTRATOR:PASSWORD@{} ({}), then send these statements through \
                 the gateway: {serve}",
                self.recording.address,
                page!("mysql/README.md#packing")
            ),
        }
    }

    /// A row's name for a report: `shop.item (id = 7)`.
    pub fn row_name(&self, row: &HotRow) -> String {
        let value = |value: &Option<String>| match value {
            Some(value) if self.show_keys => value.clone(),
            _ => "?".to_owned(),
        };
        if row.key.is_empty() {
            return format!("a row of {} in the index {}", row.table, row.index);
        }
        let key: Vec<String> =
            row.key.iter().map(|(column, known)| format!("{column} = {}", value(known))).collect();
        format!("{} ({})", row.table, key.join(", "))
    }

    /// A statement's text for a report.
    pub fn text(&self, statement: usize) -> String {
        let shape = self.recording.statements.get(statement).map_or("", |statement| statement.shape.as_str());
        match shape.char_indices().nth(TEXT_CHARS) {
            Some((end, _)) => format!("{}…", &shape[..end]),
            None => shape.to_owned(),
        }
    }

    /// Why the gateway would pack nothing on this server.
    pub fn server_refuses(&self) -> Option<&'static str> {
        server_refuses(&self.recording.abilities).map(|(reason, _)| reason)
    }
}

/// `3 sessions wait`.
fn wait(sessions: f64) -> String {
    match format!("{:.0}", sessions.max(1.0)).as_str() {
        "1" => "1 session waits".to_owned(),
        number => format!("{number} sessions wait"),
    }
}

/// The number of routines of this version that the doctor does not see.
pub fn missing_routines(seen: &BTreeSet<String>) -> usize {
    ROUTINES.iter().filter(|routine| !seen.contains(routine.as_str())).count()
}
