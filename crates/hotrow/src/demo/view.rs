//! What is seen while the demo runs: a table that grows by a row a round, on a terminal with a live row below it.
//! Never a judgement: the comparison and the check are the report's.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::{Duration, Instant};

use console::style;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::buyers::{Answers, Demand};
use super::error::Error;
use super::figures::{Figures, Plan, Round, Side};

/// Plain lines to stdout, the live row to stderr if both are terminals; for JSON no lines at all.
pub struct View {
    bar: ProgressBar,
    lines: bool,
    done: Duration,
    last: (Instant, u64),
}

impl View {
    /// For people, or for machines.
    pub fn new(json: bool) -> Self {
        let live = stderr().is_terminal() && (json || stdout().is_terminal());
        let target = if live { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar, lines: !json, done: Duration::ZERO, last: (Instant::now(), 0) }
    }

    /// Prints lines for people.
    pub fn say(&self, lines: &str) -> Result<(), Error> {
        if !self.lines {
            return Ok(());
        }
        self.print(lines)
    }

    /// Prints the one document for machines, or the last lines for people.
    pub fn print(&self, text: &str) -> Result<(), Error> {
        self.bar.suspend(|| writeln!(stdout(), "{text}")).map_err(Error::Print)
    }

    /// Something takes a moment.
    pub fn busy(&self, what: &str) {
        self.bar.set_style(template("  {spinner:.cyan} {msg:.dim}"));
        self.bar.set_message(what.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// For work in another thread: changes the words of what takes a moment.
    pub fn note(&self) -> impl Fn(String) + Send + 'static {
        let bar = self.bar.clone();
        move |what| bar.set_message(what)
    }

    /// The rounds begin; together they take about so long.
    pub fn table_begins(&mut self, rounds: &[Plan]) -> Result<(), Error> {
        let head = row("round", "through", "sales/s", "p50", "p99", "sales/commit", "refused");
        self.say(&format!("{}", style(head).dim()))?;
        let whole: Duration = rounds.iter().map(lasts).sum();
        self.bar.disable_steady_tick();
        self.bar.set_style(template("{msg}\n\n  {bar:62.cyan/dim} {prefix:.dim}").progress_chars("━╸─"));
        self.bar.set_length(u64::try_from(whole.as_millis()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// A round begins.
    pub fn round_begins(&mut self, plan: &Plan) {
        self.last = (Instant::now(), 0);
        self.bar.set_message(row(&label(plan.number), &plan.side.to_string(), "", "", "", "", ""));
    }

    /// How the round goes.
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
            self.bar.set_message(figures(
                plan.number,
                plan.side,
                &Figures::of(rate, answers, commits),
                answers,
            ));
        }
    }

    /// The round is over: its row stays.
    pub fn round_ends(&mut self, round: &Round) -> Result<(), Error> {
        if let Some(number) = round.number {
            self.say(&if round.stocktaking.agrees() {
                figures(Some(number), round.side, &round.figures(), &round.answers)
            } else {
                format!("  {number:>5}  {:<7} no figures: the row and the answers disagree", round.side)
            })?;
            self.done += round.took;
        }
        Ok(())
    }

    /// No more live row.
    pub fn ends(&self) {
        self.bar.finish_and_clear();
    }
}

/// A rate or a count, for people.
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

/// How many sales shared a commit.
pub fn shared(sales_per_commit: Option<f64>) -> String {
    sales_per_commit.map_or("-".to_owned(), |sales| format!("{sales:.1}"))
}

fn figures(number: Option<u32>, side: Side, figures: &Figures, answers: &Answers) -> String {
    row(
        &label(number),
        &side.to_string(),
        &count(figures.sales_per_second),
        &wait(figures.p50_us),
        &wait(figures.p99_us),
        &shared(figures.sales_per_commit),
        &HumanCount(answers.refused).to_string(),
    )
}

fn label(number: Option<u32>) -> String {
    number.map_or("rush".to_owned(), |number| number.to_string())
}

fn row(round: &str, side: &str, rate: &str, p50: &str, p99: &str, shared: &str, refused: &str) -> String {
    format!("  {round:>5}  {side:<7} {rate:>10} {p50:>10} {p99:>10} {shared:>14} {refused:>9}")
}

/// The rush ends when all have been served, so it is not counted.
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

    #[test]
    fn a_row_fits_a_narrow_terminal() {
        let row = row("round", "through", "sales/s", "p50", "p99", "sales/commit", "refused");
        assert!(row.len() <= 79, "{} columns", row.len());
    }
}
