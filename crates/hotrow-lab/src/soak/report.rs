//! The report of a run as Markdown, and its pictures. No I/O.

use super::samples::Samples;
use super::series::{Series, all};
use super::verdict::{RULE, Verdict, quarters};
use crate::billion::report::{count, duration};
use crate::billion::totals::Totals;
use hotrow_bench::machine::Machine;
use hotrow_bench::report::numbers::whole;
use hotrow_bench::report::svg::Timeline;

/// All facts of a report.
#[derive(Debug)]
pub struct Report<'a> {
    pub date: String,
    pub machine: &'a Machine,
    /// The version of the server. Empty if it was not started.
    pub server: &'a str,
    pub totals: &'a Totals,
    pub samples: &'a Samples,
    /// The time for which the run is to last.
    pub seconds: u64,
}

impl Report<'_> {
    /// The Markdown, and the names and texts of the pictures.
    pub fn render(&self) -> (String, Vec<(String, String)>) {
        let series = all(self.samples);
        let judged: Vec<_> = series.iter().map(|series| (series, series.judged())).collect();
        let ran = duration(self.samples.ran_ms as f64 / 1_000.0);
        let mut text = format!("# What grows in {ran}\n\n{}\n\n{RULE}\n\n", self.verdict(&series));
        text += "The first round of each start does not count. Figures of gateways, of connections and per second are compared within \
                 the start that has the most samples, because each start has new gateways. Tables are made or emptied anew in each \
                 round. Their sizes at the ends of rounds, and the log of each round, are compared over all starts.\n\n| | |\n|---|---|\n";
        self.facts().iter().for_each(|(name, fact)| text += &format!("| {name} | {fact} |\n"));
        text += "\n## Series\n\n| series | unit | median of the second quarter | median of the last quarter | tolerance | verdict |\n\
                 |---|---|---:|---:|---:|---|\n";
        for (series, judged) in &judged {
            let [second, last] =
                judged.medians.map_or(["-".into(), "-".into()], |medians| medians.map(number));
            let Series { name, unit, tolerance, .. } = series;
            let (tolerance, verdict) = (number(*tolerance), judged.verdict.name());
            text += &format!("| {name} | {unit} | {second} | {last} | {tolerance} | {verdict} |\n");
        }
        text += "\n## Plots\n\nA dashed line is the median of the second or of the last quarter.\n\n";
        series.iter().for_each(|series| text += &format!("![{}]({})\n", series.name, series.file()));
        (text, series.iter().map(|series| (series.file(), picture(series))).collect())
    }

    fn verdict(&self, series: &[Series]) -> String {
        if let Some(fault) = &self.totals.fault {
            return format!("**The run stopped at a contradiction:** {fault}");
        }
        let changed = series.iter().filter(|series| matches!(series.judged().verdict, Verdict::Changed(_)));
        let changed: Vec<_> = changed.map(|series| series.name.as_str()).collect();
        let finished = if self.samples.ran_ms >= 1_000 * self.seconds {
            String::new()
        } else {
            format!("The run is not finished: it is to last {}. ", duration(self.seconds as f64))
        };
        match changed.as_slice() {
            _ if series.iter().any(|series| series.judged().verdict == Verdict::TooShort) => {
                format!("{finished}The run is too short for all verdicts.")
            }
            [] => format!("{finished}**All series are flat.**"),
            names => format!("{finished}**These series are not flat:** {}.", names.join("; ")),
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let Self { date, machine, server, totals, samples, .. } = self;
        let memory = machine.memory_bytes.map_or("unknown".into(), |bytes| format!("{} GB", bytes >> 30));
        vec![
            ("acknowledged statements, all checked", count(totals.acknowledged())),
            ("rounds checked", count(totals.rounds)),
            ("faults", u8::from(totals.fault.is_some()).to_string()),
            ("samples", count(samples.samples.len() as u64)),
            ("starts of this program", count(totals.starts)),
            ("connections of clients", count(totals.connections)),
            ("first and last day", format!("{}, {date}", totals.began)),
            ("versions", format!("Hotrow {}, PostgreSQL {server}", totals.version)),
            (
                "machine",
                format!("{} cores, {}, {memory}, {}", machine.cores, machine.processor, machine.system),
            ),
        ]
    }
}

/// Small numbers with one or two digits after the point.
fn number(value: f64) -> String {
    match value {
        value if value.fract() == 0.0 || value >= 1_000.0 => whole(value),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn picture(series: &Series) -> String {
    let longest_ms = series.points.iter().map(|point| point.at_ms).max().unwrap_or_default();
    let (unit, unit_ms) = match longest_ms {
        0..600_000 => ("seconds", 1_000.0),
        600_000..36_000_000 => ("minutes", 60_000.0),
        _ => ("hours", 3_600_000.0),
    };
    let lines = series.points.chunk_by(|before, after| before.start == after.start);
    let lines =
        lines.map(|line| line.iter().map(|point| (point.at_ms as f64 / unit_ms, point.value)).collect());
    let judged: Vec<_> = series.points.iter().filter(|point| point.is_judged).collect();
    let levels = series.judged().medians.into_iter().flat_map(|medians| {
        let level = |(quarter, median): (std::ops::Range<usize>, f64)| {
            let at = |place: usize| judged[place].at_ms as f64 / unit_ms;
            (at(quarter.start), at(quarter.end - 1), median)
        };
        quarters(judged.len()).into_iter().zip(medians).map(level).collect::<Vec<_>>()
    });
    let axes = [unit.to_owned(), series.unit.to_owned()];
    Timeline { title: series.name.clone(), axes, lines: lines.collect(), levels: levels.collect() }.render()
}
