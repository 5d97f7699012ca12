//! The report for a terminal.

use std::fmt::Write;

use crate::diagnosis::findings::Severity;
use crate::diagnosis::summary::amount;
use crate::report::{Report, chart};

/// Rows of each table.
const ROWS: usize = 10;

/// The report as text.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for line in &report.summary {
        let _ = writeln!(text, "{line}");
    }
    findings(&mut text, report);
    let _ = writeln!(
        text,
        "\nSessions over {:.0} seconds, on average by what they do ({} samples):\n",
        report.seconds, report.samples
    );
    text.push_str(&chart::terminal(&report.sessions.over_time));
    waits(&mut text, report);
    rows(&mut text, report);
    tree(&mut text, report);
    statements(&mut text, report);
    throughput(&mut text, report);
    prediction(&mut text, report);
    let server = &report.server;
    let _ = writeln!(
        text,
        "\nPostgreSQL {}, database {}. The doctor's statements took {:.1} % of one core.",
        server.version,
        server.database,
        report.cost * 100.0
    );
    text
}

fn findings(text: &mut String, report: &Report) {
    text.push_str("\nFindings\n");
    for finding in &report.findings {
        let mark = match finding.severity {
            Severity::Critical => "!!",
            Severity::Warning => "! ",
            Severity::Info => "- ",
        };
        let _ = writeln!(text, "  {mark} {}\n     next: {}", finding.text, finding.next);
    }
}

fn waits(text: &mut String, report: &Report) {
    let mut waits: Vec<_> = report.sessions.by_wait.iter().collect();
    waits.sort_by(|left, right| right.1.total_cmp(left.1));
    text.push_str("\nWaits, in average sessions\n");
    for (wait, sessions) in waits.into_iter().take(ROWS) {
        let _ = writeln!(text, "  {sessions:>8.2}  {wait}");
    }
}

fn rows(text: &mut String, report: &Report) {
    if report.hot_rows.is_empty() {
        return;
    }
    text.push_str("\nRows that sessions wait for\n  waiting  share  row\n");
    for row in report.hot_rows.iter().take(ROWS) {
        let key: Vec<String> = row
            .key
            .iter()
            .map(|(column, value)| format!("{column} = {}", value.as_deref().unwrap_or("?")))
            .collect();
        let key = if key.is_empty() { String::new() } else { format!(" ({})", key.join(", ")) };
        let _ = writeln!(
            text,
            "  {:>7.1}  {:>4.0}%  {}{key}, page {}",
            row.waiting,
            row.share * 100.0,
            row.table,
            row.page
        );
    }
    if report.hot_rows.iter().any(|row| row.key.values().any(Option::is_none)) {
        text.push_str("  --show-keys shows the values of the keys.\n");
    }
}

fn tree(text: &mut String, report: &Report) {
    if report.lock_tree.is_empty() {
        return;
    }
    text.push_str("\nLock tree at the worst moment: each session waits for the one above it\n");
    for line in report.lock_tree.iter().take(ROWS) {
        let pid = line.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let indent = "  ".repeat(line.depth.min(10));
        let statement: String = line.statement.chars().take(90).collect();
        let _ = writeln!(text, "  {indent}{pid} ({}) {statement}", line.does);
    }
    if report.lock_tree.len() > ROWS {
        let _ = writeln!(text, "  and {} more", report.lock_tree.len() - ROWS);
    }
}

fn statements(text: &mut String, report: &Report) {
    if report.statements.is_empty() {
        return;
    }
    text.push_str("\nStatements, with the gateway's verdict\n");
    for statement in report.statements.iter().take(ROWS) {
        let calls = if statement.counted { "calls" } else { "calls seen" };
        let waits = statement.waits.map_or_else(String::new, |waits| format!(", mostly {waits}"));
        let _ = writeln!(
            text,
            "  {:.1} sessions, {} {calls}{waits}: {}",
            statement.active,
            amount(statement.calls),
            statement.text
        );
        let _ = writeln!(text, "      {}: {}", statement.verdict, statement.reason);
        if let Some(remedy) = &statement.remedy {
            let _ = writeln!(text, "      instead: {remedy}");
        }
        if statement.interactive >= 0.05 {
            let _ = writeln!(
                text,
                "      {:.0} % of its calls sit in transactions that wait for their client",
                statement.interactive * 100.0
            );
        }
    }
}

fn throughput(text: &mut String, report: &Report) {
    let rates = &report.throughput;
    text.push_str("\nWork per second\n");
    let mut line = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:<34} {:>12}", amount(value));
        }
    };
    line("statements", rates.statements);
    line("commits in this database", rates.commits);
    line("transactions that write", rates.writes);
    line("log flushes", rates.flushes);
    line("log, in bytes", rates.wal_bytes);
    if let Some(flushes) = rates.flushes_per_write {
        let _ = writeln!(text, "  {:<34} {flushes:>12.2}", "flushes per writing transaction");
    }
    if let Some(bytes) = rates.wal_bytes_per_write {
        let _ = writeln!(text, "  {:<34} {:>12}", "bytes of log per such transaction", amount(bytes));
    }
    if let Some(ms) = rates.flush_ms {
        let _ = writeln!(text, "  {:<34} {ms:>12.2}", "time of a flush, in ms");
    }
    for receiver in &report.replication {
        let behind = receiver.behind_bytes.map_or_else(|| "?".to_owned(), amount);
        let _ = writeln!(
            text,
            "  {} {} ({}): {behind} bytes behind",
            receiver.kind, receiver.name, receiver.state
        );
    }
}

fn prediction(text: &mut String, report: &Report) {
    let prediction = &report.prediction;
    let _ = writeln!(
        text,
        "\nThe gateway would give {:.1} to {:.1} times today's rate. Assumptions:",
        prediction.low, prediction.high
    );
    for assumption in &prediction.assumptions {
        let _ = writeln!(text, "  - {assumption}");
    }
}
