//! The progress display: a bar on a terminal, plain lines elsewhere. It does not write the report.

use crate::load::Run;
use crate::plan::Plan;
use crate::report::numbers::{milliseconds, whole};
use crate::results::Round;
use crate::scenario::Figure;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// The progress of a benchmark, on standard error.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// For all runs of a plan.
    pub fn new(plan: &Plan) -> Self {
        let runs =
            |scenario| plan.clients(scenario).len() * plan.techniques(scenario).len() * plan.rounds as usize;
        let total: usize = plan.scenarios.iter().map(|scenario| runs(scenario)).sum();
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  about {eta} left  {wide_msg}")
            .expect("the template is a constant and its fields exist");
        let bar = ProgressBar::new(total as u64).with_style(style);
        bar.enable_steady_tick(Duration::from_secs(1));
        Self { bar }
    }

    /// Shows an action that is not a run.
    pub fn note(&self, note: &str) {
        self.bar.set_message(note.to_owned());
        if self.bar.is_hidden() {
            eprintln!("{note}");
        }
    }

    /// Shows that a run begins.
    pub fn begin(&self, run: Run, round: u32) {
        self.bar.set_message(name(run, round));
    }

    /// Shows that the run has ended, with or without a figure.
    pub fn end(&self, run: Run, round: u32, last: Result<&Round, &str>) {
        let text = match last {
            Ok(measured) => figure(run.scenario.figure, measured),
            Err(reason) => format!("no figure: {reason}"),
        };
        let line = format!("{:<52} {text}", name(run, round));
        if self.bar.is_hidden() {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
        self.bar.inc(1);
    }

    /// Ends the display.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn name(run: Run, round: u32) -> String {
    let clients = if run.clients == 1 { "client" } else { "clients" };
    let (scenario, technique) = (run.scenario.name, run.technique.name);
    format!("{scenario}, {} {clients}, round {}, {technique}", run.clients, round + 1)
}

fn figure(figure: Figure, round: &Round) -> String {
    let mut text = format!("{:>9}/s", whole(round.per_second));
    if let (Figure::Latency, Some(latency)) = (figure, &round.latency) {
        text.push_str(&format!(
            ", p50 {}, p99 {}",
            milliseconds(latency.p50_us),
            milliseconds(latency.p99_us)
        ));
    }
    if round.turned_away > 0 {
        text.push_str(&format!(" ({}/s rejected)", whole(round.turned_away_per_second)));
    }
    text
}
