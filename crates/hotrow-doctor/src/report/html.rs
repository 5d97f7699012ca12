//! The report as one HTML page, which loads nothing and runs nothing.

use std::fmt::Write;

use crate::diagnosis::findings::Severity;
use crate::diagnosis::summary::amount;
use crate::report::{Report, chart, escape};

const PAGE: &str = include_str!("../../page.html");

/// The page.
pub fn html(report: &Report) -> String {
    let mut body = String::from("<div class=\"summary\">");
    for line in &report.summary {
        let _ = write!(body, "<p>{}</p>", escape(line));
    }
    body.push_str("</div>\n");
    findings(&mut body, report);
    let _ = writeln!(
        body,
        "<h2>Sessions over time, by what they do</h2>\n{}\n<h2>Sessions over time, by wait event</h2>\n{}",
        chart::svg(&report.sessions.over_time, report.seconds),
        chart::waits_svg(&report.sessions, report.seconds)
    );
    waits(&mut body, report);
    rows(&mut body, report);
    tree(&mut body, report);
    statements(&mut body, report);
    work(&mut body, report);
    let prediction = &report.prediction;
    let _ = writeln!(
        body,
        "<h2>Through the gateway</h2><p>{:.1} to {:.1} times today's rate. Assumptions:</p><ul>",
        prediction.low, prediction.high
    );
    for assumption in &prediction.assumptions {
        let _ = writeln!(body, "<li>{}</li>", escape(assumption));
    }
    let _ = writeln!(
        body,
        "</ul>\n<p>PostgreSQL {}, database {}, {} samples in {:.0} seconds. The doctor's statements took {:.1} % of one core.</p>",
        escape(&report.server.version),
        escape(&report.server.database),
        report.samples,
        report.seconds,
        report.cost * 100.0
    );
    PAGE.replace("BODY", &body)
}

fn findings(body: &mut String, report: &Report) {
    body.push_str("<h2>Findings</h2>\n<table><tr><th>Severity</th><th>Finding</th><th>Next</th></tr>\n");
    for finding in &report.findings {
        let class = match finding.severity {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        let _ = writeln!(
            body,
            "<tr><td class=\"{class}\">{class}</td><td>{}</td><td>{}</td></tr>",
            escape(&finding.text),
            escape(&finding.next)
        );
    }
    body.push_str("</table>\n");
}

fn waits(body: &mut String, report: &Report) {
    let mut waits: Vec<_> = report.sessions.by_wait.iter().collect();
    waits.sort_by(|left, right| right.1.total_cmp(left.1));
    body.push_str("<h2>Waits</h2>\n<table><tr><th class=\"n\">Average sessions</th><th>Wait</th></tr>\n");
    for (wait, sessions) in waits {
        let _ = writeln!(body, "<tr><td class=\"n\">{sessions:.2}</td><td>{}</td></tr>", escape(wait));
    }
    body.push_str("</table>\n");
}

fn rows(body: &mut String, report: &Report) {
    if report.hot_rows.is_empty() {
        return;
    }
    body.push_str("<h2>Rows that sessions wait for</h2>\n<table><tr><th class=\"n\">Waiting sessions</th><th class=\"n\">Share, %</th><th>Row</th><th class=\"n\">Page</th></tr>\n");
    for row in &report.hot_rows {
        let key: Vec<String> = row
            .key
            .iter()
            .map(|(column, value)| format!("{column} = {}", value.as_deref().unwrap_or("?")))
            .collect();
        let _ = writeln!(
            body,
            "<tr><td class=\"n\">{:.1}</td><td class=\"n\">{:.0}</td><td>{} ({})</td><td class=\"n\">{}</td></tr>",
            row.waiting,
            row.share * 100.0,
            escape(&row.table),
            escape(&key.join(", ")),
            row.page
        );
    }
    body.push_str("</table>\n");
}

fn tree(body: &mut String, report: &Report) {
    if report.lock_tree.is_empty() {
        return;
    }
    body.push_str("<h2>Lock tree at the worst moment</h2>\n<pre>");
    for line in &report.lock_tree {
        let pid = line.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let _ = writeln!(
            body,
            "{}{pid} ({}) {}",
            "  ".repeat(line.depth.min(20)),
            escape(&line.does),
            escape(&line.statement)
        );
    }
    body.push_str("</pre>\n");
}

fn statements(body: &mut String, report: &Report) {
    body.push_str("<h2>Statements</h2>\n<table><tr><th class=\"n\">Average sessions</th><th class=\"n\">Calls</th><th>Statement and verdict</th></tr>\n");
    for statement in &report.statements {
        let remedy = statement
            .remedy
            .as_ref()
            .map_or_else(String::new, |remedy| format!("<br>instead: {}", escape(remedy)));
        let waits = statement.waits.map_or_else(String::new, |waits| format!("; mostly {waits}"));
        let _ = writeln!(
            body,
            "<tr><td class=\"n\">{:.2}</td><td class=\"n\">{}{}</td><td><code>{}</code><br>{}: {}{waits}{remedy}</td></tr>",
            statement.active,
            amount(statement.calls),
            if statement.counted { "" } else { " seen" },
            escape(&statement.text),
            escape(&statement.verdict),
            escape(&statement.reason)
        );
    }
    body.push_str("</table>\n");
}

fn work(body: &mut String, report: &Report) {
    let rates = &report.throughput;
    body.push_str("<h2>Work</h2>\n<table><tr><th>Measure</th><th class=\"n\">Value</th></tr>\n");
    for (name, value) in [
        ("statements per second", rates.statements),
        ("commits per second in this database", rates.commits),
        ("transactions that write, per second", rates.writes),
        ("WAL flushes per second", rates.flushes),
        ("WAL flushes per writing transaction", rates.flushes_per_write),
        ("time of a flush, in ms", rates.flush_ms),
        ("bytes of WAL per second", rates.wal_bytes),
        ("bytes of WAL per writing transaction", rates.wal_bytes_per_write),
    ] {
        if let Some(value) = value {
            let _ = writeln!(body, "<tr><td>{name}</td><td class=\"n\">{}</td></tr>", amount(value));
        }
    }
    for receiver in &report.replication {
        let behind = receiver.behind_bytes.map_or_else(|| "?".to_owned(), amount);
        let _ = writeln!(
            body,
            "<tr><td>bytes behind: {} {} ({})</td><td class=\"n\">{behind}</td></tr>",
            receiver.kind,
            escape(&receiver.name),
            escape(&receiver.state)
        );
    }
    body.push_str("</table>\n");
}
