//! The report of a run, in Markdown.

use super::Args;
use super::check::Findings;
use super::history::{Level, Outcome};
use super::load::Records;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// More stories than these are not printed.
const STORIES_MAX: usize = 20;

pub struct Report<'r> {
    pub args: &'r Args,
    pub seed: u64,
    pub version: &'r str,
    pub faults: &'r BTreeMap<&'static str, usize>,
    pub metrics: &'r BTreeMap<&'static str, u64>,
    pub records: &'r Records,
    pub findings: &'r Findings,
    pub check_time: Duration,
}

impl Report<'_> {
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a String accepts all text");
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let Args { seconds, clients, .. } = self.args;
        writeln!(text, "# Histories of random transactions\n")?;
        writeln!(
            text,
            "{clients} clients for {seconds} seconds, seed {}, PostgreSQL {}. The checker found {} orders between {} transactions \
             in {:.1} s.\n",
            self.seed,
            self.version,
            self.findings.orders,
            self.records.history.len(),
            self.check_time.as_secs_f64()
        )?;
        self.write_verdict(text)?;
        self.write_transactions(text)?;
        self.write_faults(text)
    }

    fn write_verdict(&self, text: &mut String) -> std::fmt::Result {
        let found = &self.findings.forbidden;
        writeln!(text, "## Forbidden anomalies: {}\n", found.len())?;
        if found.is_empty() {
            writeln!(text, "No promise of an isolation level was broken.\n")?;
        }
        for anomaly in found.iter().take(STORIES_MAX) {
            let in_real_time = if anomaly.in_real_time { ", in real time" } else { "" };
            let (name, level, story) = (anomaly.name, anomaly.breaks, &anomaly.story);
            writeln!(text, "**{name}**{in_real_time}, which {level} forbids:\n\n```\n{story}\n```\n")?;
        }
        if !self.records.wrong.is_empty() {
            writeln!(text, "## Wrong answers: {}\n", self.records.wrong.len())?;
            for wrong in self.records.wrong.iter().take(STORIES_MAX) {
                writeln!(text, "- {wrong}")?;
            }
            writeln!(text)?;
        }
        writeln!(
            text,
            "## Anomalies that the levels allow\n\n| anomaly | weakest level in it | count |\n|---|---|---:|"
        )?;
        for ((name, level), count) in &self.findings.allowed {
            writeln!(text, "| {name} | {level} | {count} |")?;
        }
        writeln!(text)
    }

    fn write_transactions(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "## Transactions\n\n| clients | sent as | level | committed | failed | unknown |\n|---|---|---|---:|---:|---:|"
        )?;
        let mut rows: BTreeMap<(&str, &str, Level), [usize; 3]> = BTreeMap::new();
        for ((place, way, level, outcome), count) in &self.records.counts {
            rows.entry((place, way, *level)).or_default()[*outcome as usize] += count;
        }
        for ((place, way, level), [committed, failed, unknown]) in rows {
            writeln!(text, "| {place} | {way} | {level} | {committed} | {failed} | {unknown} |")?;
        }
        let [committed, failed, unknown] = [Outcome::Committed, Outcome::Failed, Outcome::Unknown]
            .map(|outcome| self.records.count(outcome));
        writeln!(text, "| all | | | {committed} | {failed} | {unknown} |\n")?;
        writeln!(
            text,
            "Of the transactions with an unknown outcome, {} were seen by others.\n",
            self.findings.seen_without_answer
        )
    }

    fn write_faults(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "## Faults\n\n| fault | count |\n|---|---:|")?;
        for (fault, count) in self.faults {
            writeln!(text, "| {fault} | {count} |")?;
        }
        writeln!(text, "\n## Errors\n\n| error | count |\n|---|---:|")?;
        for (error, count) in &self.records.errors {
            writeln!(text, "| {error} | {count} |")?;
        }
        writeln!(
            text,
            "\n## Gateways\n\nTheir metrics, without those that a gateway lost with its end.\n\n| metric | value |\n|---|---:|"
        )?;
        for (metric, value) in self.metrics {
            writeln!(text, "| `{metric}` | {value} |")?;
        }
        Ok(())
    }
}
