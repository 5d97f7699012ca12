//! The report of a run, for people (Markdown) and for programs (JSON): versions, one line per suite, and every test
//! that fails only through the gateway.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use crate::compare::{Comparison, Difference};

/// The contents of the report.
#[derive(Debug, Serialize)]
pub struct Report {
    pub date: String,
    pub hotrow: &'static str,
    pub server: String,
    pub suites: Vec<Section>,
}

/// The part of one suite.
#[derive(Debug, Serialize)]
pub struct Section {
    pub name: String,
    pub what: String,
    #[serde(flatten)]
    pub comparison: Comparison,
}

impl Report {
    /// The report as Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!(
            "# Other people's tests, direct and through the gateway\n\n{}, Hotrow {}, {}\n\n",
            self.date, self.hotrow, self.server
        );
        out.push_str("| suite | tests | skipped | fail direct | fail through the gateway | only through it | unexplained |\n");
        out.push_str("|---|---|---|---|---|---|---|\n");
        for Section { what, comparison: c, .. } in &self.suites {
            let unexplained = c.differences.iter().filter(|difference| difference.reason.is_none()).count();
            let _ = writeln!(
                out,
                "| {what} | {} | {} | {} | {} | {} | {unexplained} |",
                c.tests,
                c.skipped,
                c.failed_direct,
                c.failed_through,
                c.differences.len(),
            );
        }
        for section in &self.suites {
            section.put(&mut out);
        }
        out
    }
}

impl Section {
    fn put(&self, out: &mut String) {
        let Comparison { differences, fickle, stale, .. } = &self.comparison;
        if differences.is_empty() && fickle.is_empty() && stale.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n## {}", self.name);
        let mut reasons: BTreeMap<Option<&str>, Vec<&Difference>> = BTreeMap::new();
        for difference in differences {
            reasons.entry(difference.reason.as_deref()).or_default().push(difference);
        }
        for (reason, differences) in reasons {
            let _ = writeln!(out, "\n{}\n", reason.unwrap_or("**Unexplained:**"));
            list(differences, out);
        }
        if !fickle.is_empty() {
            out.push_str("\nFailed once, and alone either passed or failed direct as well:\n\n");
            list(fickle, out);
        }
        if !stale.is_empty() {
            out.push_str("\nExceptions that are not needed any more:\n\n");
            stale.iter().for_each(|test| {
                let _ = writeln!(out, "- `{test}`");
            });
        }
    }
}

fn list<'a>(differences: impl IntoIterator<Item = &'a Difference>, out: &mut String) {
    for Difference { test, message, .. } in differences {
        let _ = writeln!(out, "- `{test}`: {}", message.lines().next().unwrap_or_default());
    }
}
