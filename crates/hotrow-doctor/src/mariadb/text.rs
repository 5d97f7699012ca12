//! The report about a MariaDB server for a terminal.

use crate::diagnosis::findings::Severity;
use crate::diagnosis::summary::amount;
use crate::mariadb::report::Report;
use crate::mariadb::summary::does;
use crate::report::text::Lines;

/// Rows of each table.
const ROWS: usize = 10;

/// The report as lines.
pub fn text(report: &Report) -> String {
    let mut text = Lines::default();
    report.summary.iter().for_each(|line| text.add(line));
    findings(&mut text, report);
    text.part(format_args!(
        "Sessions over {:.0} seconds, on average by what they do ({} samples)",
        report.seconds, report.samples
    ));
    for (class, sessions) in report.sessions.by_class.iter().filter(|(_, sessions)| **sessions >= 0.005) {
        text.add(format_args!("  {sessions:>8.2}  {}", does(*class, *sessions)));
    }
    rows(&mut text, report);
    statements(&mut text, report);
    throughput(&mut text, report);
    let server = &report.server;
    let log = server.binlog_format.as_ref().map_or_else(
        || "without a binary log".to_owned(),
        |format| format!("with a binary log in {format} format"),
    );
    text.part(format_args!(
        "MariaDB {}, {log}. The doctor's queries took {:.1} % of one core.",
        server.version,
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

fn rows(text: &mut Lines, report: &Report) {
    if report.hot_rows.is_empty() {
        return;
    }
    text.part("Rows that sessions wait for");
    text.add("  waiting  share  holders  row");
    for row in report.hot_rows.iter().take(ROWS) {
        text.add(format_args!(
            "  {:>7.1}  {:>4.0}%  {:>7}  {}",
            row.waiting,
            row.share * 100.0,
            row.holders,
            row.name
        ));
    }
    if report.hot_rows.iter().any(|row| row.key.values().any(Option::is_none)) {
        text.add("  --show-keys shows the values of the keys.");
    }
}

fn statements(text: &mut Lines, report: &Report) {
    if report.statements.is_empty() {
        return;
    }
    text.part("Statements, with the gateway's verdict");
    for statement in report.statements.iter().take(ROWS) {
        text.add(format_args!(
            "  {:.1} sessions, of which {:.1} wait for a row: {}",
            statement.active, statement.waiting, statement.text
        ));
        text.add(format_args!("      {}: {}", statement.verdict.name(), statement.reason));
        if let Some(remedy) = &statement.remedy {
            text.add(format_args!("      next: {remedy}"));
        }
        if statement.in_transaction >= 0.05 {
            text.add(format_args!(
                "      {:.0} % of its calls are in transactions of several statements",
                statement.in_transaction * 100.0
            ));
        }
    }
}

fn throughput(text: &mut Lines, report: &Report) {
    let rates = &report.throughput;
    text.part("Work per second");
    let mut line = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            text.add(format_args!("  {name:<44} {:>10}", amount(value)));
        }
    };
    line("changes (INSERT, UPDATE, DELETE, REPLACE)", rates.changes);
    line("commits in the binary log", rates.commits);
    line("changes in each commit", rates.changes_per_commit);
    line("flushes of the binary log", rates.commit_groups);
    line("commits in each of these flushes", rates.commits_per_group);
    line("flushes of InnoDB's files", rates.flushes);
    line("waits for rows", rates.row_waits);
    line("time of such a wait, in ms", rates.row_wait_ms);
    line("sessions in such a wait, on average", rates.row_waiting);
    line("deadlocks", rates.deadlocks);
}
