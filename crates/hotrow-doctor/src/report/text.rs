//! The report for a terminal.

use std::fmt::Display;

use hotrow_core::untrusted::visible;

use crate::diagnosis::findings::Severity;
use crate::diagnosis::summary::amount;
use crate::report::{Report, chart};

/// Rows of each table.
const ROWS: usize = 10;

/// The lines of the report. Each can contain names and texts of the server's users, which cannot leave their line.
#[derive(Debug, Default)]
pub struct Lines(String);

impl Lines {
    /// Adds a line.
    pub fn add(&mut self, line: impl Display) {
        self.0.push_str(&visible(&line.to_string()));
        self.0.push('\n');
    }

    /// Begins a part of the report.
    pub fn part(&mut self, title: impl Display) {
        self.add("");
        self.add(title);
    }

    /// All lines.
    pub fn finish(self) -> String {
        self.0
    }
}

pub fn text(report: &Report) -> String {
    let mut text = Lines::default();
    report.summary.iter().for_each(|line| text.add(line));
    findings(&mut text, report);
    text.part(format_args!(
        "Sessions over {:.0} seconds, on average by what they do ({} samples):",
        report.seconds, report.samples
    ));
    text.add("");
    chart::terminal(&report.sessions.over_time).lines().for_each(|line| text.add(line));
    waits(&mut text, report);
    rows(&mut text, report);
    tree(&mut text, report);
    statements(&mut text, report);
    throughput(&mut text, report);
    prediction(&mut text, report);
    let server = &report.server;
    text.part(format_args!(
        "PostgreSQL {}, database {}. The doctor's statements took {:.1} % of one core.",
        server.version,
        server.database,
        report.cost * 100.0
    ));
    text.finish()
}

fn findings(text: &mut Lines, report: &Report) {
    text.part("Findings");
    for finding in &report.findings {
        let mark = match finding.severity {
            Severity::Critical => "!!",
            Severity::Warning => "! ",
            Severity::Info => "- ",
        };
        text.add(format_args!("  {mark} {}", finding.text));
        text.add(format_args!("     next: {}", finding.next));
    }
}

fn waits(text: &mut Lines, report: &Report) {
    let mut waits: Vec<_> = report.sessions.by_wait.iter().collect();
    waits.sort_by(|left, right| right.1.total_cmp(left.1));
    text.part("Waits, in average sessions");
    for (wait, sessions) in waits.into_iter().take(ROWS) {
        text.add(format_args!("  {sessions:>8.2}  {wait}"));
    }
}

fn rows(text: &mut Lines, report: &Report) {
    if report.hot_rows.is_empty() {
        return;
    }
    text.part("Rows that sessions wait for");
    text.add("  waiting  share  row");
    for row in report.hot_rows.iter().take(ROWS) {
        let key: Vec<String> = row
            .key
            .iter()
            .map(|(column, value)| format!("{column} = {}", value.as_deref().unwrap_or("?")))
            .collect();
        let key = if key.is_empty() { String::new() } else { format!(" ({})", key.join(", ")) };
        text.add(format_args!(
            "  {:>7.1}  {:>4.0}%  {}{key}, page {}",
            row.waiting,
            row.share * 100.0,
            row.table,
            row.page
        ));
    }
    if report.hot_rows.iter().any(|row| row.key.values().any(Option::is_none)) {
        text.add("  --show-keys shows the values of the keys.");
    }
}

fn tree(text: &mut Lines, report: &Report) {
    if report.lock_tree.is_empty() {
        return;
    }
    text.part("Lock tree at the worst moment: each session waits for the one above it");
    for line in report.lock_tree.iter().take(ROWS) {
        let pid = line.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let indent = "  ".repeat(line.depth.min(10));
        let statement: String = line.statement.chars().take(90).collect();
        text.add(format_args!("  {indent}{pid} ({}) {statement}", line.does));
    }
    if report.lock_tree.len() > ROWS {
        text.add(format_args!("  and {} more", report.lock_tree.len() - ROWS));
    }
}

fn statements(text: &mut Lines, report: &Report) {
    if report.statements.is_empty() {
        return;
    }
    text.part("Statements, with the gateway's verdict");
    for statement in report.statements.iter().take(ROWS) {
        let calls = if statement.counted { "calls" } else { "calls seen" };
        let waits = statement.waits.map_or_else(String::new, |waits| format!(", mostly {waits}"));
        text.add(format_args!(
            "  {:.1} sessions, {} {calls}{waits}: {}",
            statement.active,
            amount(statement.calls),
            statement.text
        ));
        text.add(format_args!("      {}: {}", statement.verdict, statement.reason));
        if let Some(remedy) = &statement.remedy {
            text.add(format_args!("      instead: {remedy}"));
        }
        if statement.interactive >= 0.05 {
            text.add(format_args!(
                "      {:.0} % of its calls are in transactions that wait for their client",
                statement.interactive * 100.0
            ));
        }
    }
}

fn throughput(text: &mut Lines, report: &Report) {
    let rates = &report.throughput;
    text.part("Work per second");
    let mut line = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            text.add(format_args!("  {name:<34} {:>12}", amount(value)));
        }
    };
    line("statements", rates.statements);
    line("commits in this database", rates.commits);
    line("transactions that write", rates.writes);
    line("WAL flushes", rates.flushes);
    line("WAL, in bytes", rates.wal_bytes);
    if let Some(flushes) = rates.flushes_per_write {
        text.add(format_args!("  {:<34} {flushes:>12.2}", "flushes per writing transaction"));
    }
    if let Some(bytes) = rates.wal_bytes_per_write {
        text.add(format_args!("  {:<34} {:>12}", "bytes of WAL per such transaction", amount(bytes)));
    }
    if let Some(ms) = rates.flush_ms {
        text.add(format_args!("  {:<34} {ms:>12.2}", "time of a flush, in ms"));
    }
    for receiver in &report.replication {
        let behind = receiver.behind_bytes.map_or_else(|| "?".to_owned(), amount);
        text.add(format_args!(
            "  {} {} ({}): {behind} bytes behind",
            receiver.kind, receiver.name, receiver.state
        ));
    }
}

fn prediction(text: &mut Lines, report: &Report) {
    let prediction = &report.prediction;
    text.part(format_args!(
        "The gateway would give {:.1} to {:.1} times today's rate. Assumptions:",
        prediction.low, prediction.high
    ));
    for assumption in &prediction.assumptions {
        text.add(format_args!("  - {assumption}"));
    }
}
