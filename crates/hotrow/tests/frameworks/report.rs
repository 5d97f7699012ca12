//! The report: a line for each variant when it is measured, then a table as in docs/frameworks/README.md.

#![expect(clippy::print_stdout, reason = "the table is what `make frameworks` is for")]

use std::collections::BTreeMap;

use crate::counts::{Counted, Shape};
use crate::framework::Variant;

/// The smallest part of a framework's autocommit updates that must be packed or merged.
pub const SHARE_MIN: f64 = 0.95;
/// Statements that are rarer than this among all do not need an explanation: they are sent once per connection.
const RARE: f64 = 0.01;

/// A variant of a framework, measured.
pub struct Line {
    /// The framework.
    pub name: &'static str,
    /// The form of its update.
    pub variant: Variant,
    /// Updates per second directly, by round.
    pub direct: Vec<f64>,
    /// Updates per second through the gateway, by round.
    pub through: Vec<f64>,
    /// What the gateway counted in the last round.
    pub counts: Counted,
}

impl Line {
    /// A line without figures.
    pub fn new(name: &'static str, variant: Variant) -> Self {
        Self { name, variant, direct: Vec::new(), through: Vec::new(), counts: Counted::default() }
    }

    fn cells(&self) -> [String; 13] {
        let (direct, through) = (median(&self.direct), median(&self.through));
        let figure =
            |value: Option<f64>, digits| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        let packed = self.counts.sum(|shape| shape.packed);
        let merged = self.counts.sum(|shape| shape.merged);
        let all = self.counts.sum(|shape| shape.runs);
        [
            self.name.to_owned(),
            self.variant.name().to_owned(),
            all.to_string(),
            packed.to_string(),
            merged.to_string(),
            (all - packed - merged).to_string(),
            self.counts.pinned.values().sum::<usize>().to_string(),
            why(&self.counts),
            format!("{:.1} %", self.counts.share() * 100.0),
            figure(direct, 0),
            figure(through, 0),
            figure(direct.zip(through).map(|(direct, through)| through / direct), 1),
            // A run whose check fails ends the measurement.
            (self.direct.len() + self.through.len()).to_string(),
        ]
    }
}

/// Why statements were not packed, with the number of each reason, and why clients were pinned.
pub fn why(counts: &Counted) -> String {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in counts.shapes.iter().flat_map(|shape| &shape.others) {
        *reasons.entry(reason).or_default() += count;
    }
    let mut all: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {}", reason.replace('_', " "))).collect();
    all.extend(counts.pinned.keys().map(|why| format!("pinned: {why}")));
    if all.is_empty() { "-".to_owned() } else { all.join("; ") }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// The statements that the gateway did not pack and their causes, without those sent once per connection.
pub fn causes(counts: &Counted) -> Vec<String> {
    let all = counts.sum(|shape| shape.runs) as f64;
    let unpacked = |shape: &Shape| shape.runs - shape.packed - shape.merged;
    let mut causes: Vec<String> = counts
        .shapes
        .iter()
        .filter(|shape| unpacked(shape) as f64 > all * RARE)
        .map(|shape| format!("{} x `{}`: {:?}; {}", unpacked(shape), shape.sql, shape.others, shape.reason))
        .collect();
    causes.extend(counts.pinned.iter().map(|(why, count)| format!("{count} clients pinned: {why}")));
    causes
}

/// Prints one line with its causes.
pub fn print(line: &Line) {
    println!("{}", line.cells().join("  "));
    for cause in causes(&line.counts) {
        println!("    {cause}");
    }
}

/// Prints all lines as a table in Markdown, after a line about the server's flushes.
pub fn print_table(lines: &[Line], flushes: &str) {
    let titles = [
        "framework",
        "update",
        "statements",
        "packed",
        "merged",
        "passed through",
        "pinned clients",
        "why",
        "share of the updates",
        "direct/s",
        "through/s",
        "ratio",
        "checks passed",
    ];
    println!("\n{flushes}\n\n| {} |\n|{}", titles.join(" | "), "---|".repeat(titles.len()));
    for line in lines {
        println!("| {} |", line.cells().join(" | "));
    }
}
