//! The output while the demo runs: a table with one row per round, and on a terminal a live row below it. The comparison
//! and the check are in `report`.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::{Duration, Instant};

use console::style;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::buyers::{Answers, Demand};
use super::error::Error;
use super::figures::{Figures, Plan, Round, Side};
use super::layout::Layout;

/// Plain lines on standard output, and the live row on standard error if both are terminals. For JSON there are no lines.
pub struct View {
    bar: ProgressBar,
    lines: bool,
    layout: Layout,
    done: Duration,
    last: (Instant, u64),
}

impl View {
    /// For a person, or for a program that reads JSON.
    pub fn new(json: bool) -> Self {
        let live = stderr().is_terminal() && (json || stdout().is_terminal());
        let target = if live { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Self {
            bar,
            lines: !json,
            layout: Layout::of_terminal(),
            done: Duration::ZERO,
            last: (Instant::now(), 0),
        }
    }

    /// The width of the lines.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Prints lines, unless the output is JSON.
    pub fn say(&self, lines: &str) -> Result<(), Error> {
        if !self.lines {
            return Ok(());
        }
        self.print(lines)
    }

    /// Prints the JSON document or the last lines.
    pub fn print(&self, text: &str) -> Result<(), Error> {
        self.bar.suspend(|| writeln!(stdout(), "{text}")).map_err(Error::Print)
    }

    /// Shows that something takes a moment.
    pub fn busy(&self, what: &str) {
        self.bar.set_style(template("  {spinner:.cyan} {msg:.dim}"));
        self.bar.set_message(what.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// Changes that message from another thread.
    pub fn note(&self) -> impl Fn(String) + Send + 'static {
        let bar = self.bar.clone();
        move |what| bar.set_message(what)
    }

    pub fn table_begins(&mut self, rounds: &[Plan]) -> Result<(), Error> {
        let head = ["round", "through", "sales/s", "p50", "p99", "sales/commit", "refused"];
        self.say(&format!("{}", style(self.layout.row(head)).dim()))?;
        let whole: Duration = rounds.iter().map(lasts).sum();
        self.bar.disable_steady_tick();
        let bar = format!("{{msg}}\n\n  {{bar:{}.cyan/dim}} {{prefix:.dim}}", self.layout.bar());
        self.bar.set_style(template(&bar).progress_chars("━╸─"));
        self.bar.set_length(u64::try_from(whole.as_millis()).unwrap_or(u64::MAX));
        Ok(())
    }

    pub fn round_begins(&mut self, plan: &Plan) {
        self.last = (Instant::now(), 0);
        let cells = [&label(plan.number), &plan.side.to_string(), "", "", "", "", ""];
        self.bar.set_message(self.layout.row(cells));
    }

    /// Shows the figures of the round up to now.
    pub fn round_now(&mut self, plan: &Plan, answers: &Answers, commits: u64) {
        let now = Instant::now();
        let (then, sold) = std::mem::replace(&mut self.last, (now, answers.sold));
        let rate = (answers.sold - sold) as f64 / now.duration_since(then).as_secs_f64();
        let going = answers.since.map_or(Duration::ZERO, |since| now.duration_since(since)).min(lasts(plan));
        let position = u64::try_from((self.done + going).as_millis()).unwrap_or(u64::MAX);
        self.bar.set_position(position);
        let left = self.bar.length().unwrap_or(position).saturating_sub(position).div_ceil(1000);
        self.bar.set_prefix(format!("{left} s left"));
        if answers.total() > 0 {
            let figures = Figures::of(rate, answers, commits);
            self.bar.set_message(self.figures(plan.number, plan.side, &figures, answers));
        }
    }

    /// The round is over: prints its row.
    pub fn round_ends(&mut self, round: &Round) -> Result<(), Error> {
        if let Some(number) = round.number {
            self.say(&if round.stocktaking.agrees() {
                self.figures(Some(number), round.side, &round.figures(), &round.answers)
            } else {
                format!("  {number:>5}  {:<7} no figures: row and answers differ", round.side)
            })?;
            self.done += round.took;
        }
        Ok(())
    }

    /// Removes the live row.
    pub fn ends(&self) {
        self.bar.finish_and_clear();
    }

    fn figures(&self, number: Option<u32>, side: Side, figures: &Figures, answers: &Answers) -> String {
        self.layout.row([
            &label(number),
            &side.to_string(),
            &count(figures.sales_per_second),
            &wait(figures.p50_us),
            &wait(figures.p99_us),
            &shared(figures.sales_per_commit),
            &HumanCount(answers.refused).to_string(),
        ])
    }
}

/// A rate or a count with separators.
pub fn count(number: f64) -> String {
    HumanCount(number.round() as u64).to_string()
}

/// A wait with three significant digits.
pub fn wait(us: u64) -> String {
    match us as f64 / 1000.0 {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 100.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1000.0),
    }
}

pub fn shared(sales_per_commit: Option<f64>) -> String {
    sales_per_commit.map_or("-".to_owned(), |sales| format!("{sales:.1}"))
}

fn label(number: Option<u32>) -> String {
    number.map_or("rush".to_owned(), |number| number.to_string())
}

/// The length of a round. The rush ends when all buyers have an answer, and counts as nothing.
fn lasts(plan: &Plan) -> Duration {
    match plan.demand {
        Demand::For(time) => time,
        Demand::Buyers(_) => Duration::ZERO,
    }
}

fn template(text: &str) -> ProgressStyle {
    ProgressStyle::with_template(text).expect("the templates in this file are constants and well-formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_three_digits() {
        let shown = [7, 870, 17_950, 138_900, 2_345_000].map(wait);
        assert_eq!(shown, ["0.01 ms", "0.87 ms", "17.9 ms", "139 ms", "2.35 s"]);
    }
}
