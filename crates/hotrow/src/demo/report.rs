//! What remains of a demo: the comparison and the check, for people and as JSON. Never a figure of a sale whose check
//! failed.

use std::fmt::Write as _;

use console::style;
use indicatif::HumanCount;
use serde::Serialize;

use super::figures::{Figures, Round, Side};
use super::sale::{ServerFacts, Stocktaking};
use super::story::{NEXT, story};
use super::view::{count, shared, wait};

/// A finished demo.
#[derive(Serialize)]
pub struct Report {
    hotrow: &'static str,
    server: ServerFacts,
    cores: usize,
    buyers: usize,
    check: Check,
    comparison: Option<Comparison>,
    rounds: Vec<Line>,
    rush: Line,
}

/// The shelf against the answers, over all rounds.
#[derive(Serialize)]
struct Check {
    passed: bool,
    rounds: usize,
    acknowledged: u64,
    sold: i64,
    /// Rounds in which the row and the answers name different numbers; two such rounds may hide in the totals.
    disagreeing_rounds: usize,
    oversold_rounds: usize,
    incomplete_rounds: usize,
}

/// The two sides over all rounds: median rate, all waits.
#[derive(Serialize)]
struct Comparison {
    direct: Figures,
    hotrow: Figures,
    ratio: f64,
}

/// One round for machines.
#[derive(Serialize)]
struct Line {
    round: Option<u32>,
    side: Side,
    seconds: f64,
    refused: u64,
    failed: u64,
    first_failure: Option<String>,
    commits: u64,
    stocktaking: Stocktaking,
    figures: Option<Figures>,
}

impl Report {
    /// Puts the rounds together.
    pub fn of(server: &ServerFacts, buyers: usize, rounds: &[Round], rush: &Round) -> Self {
        let check = Check::of(rounds.iter().chain([rush]));
        let side = |side| -> Vec<&Round> { rounds.iter().filter(|round| round.side == side).collect() };
        let comparison = check.passed.then(|| {
            let direct = Figures::of_all(&side(Side::Direct));
            let hotrow = Figures::of_all(&side(Side::Hotrow));
            Comparison { direct, hotrow, ratio: hotrow.sales_per_second / direct.sales_per_second }
        });
        Self {
            hotrow: env!("CARGO_PKG_VERSION"),
            server: server.clone(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            buyers,
            rounds: rounds.iter().map(|round| Line::of(round, check.passed)).collect(),
            rush: Line::of(rush, check.passed),
            check,
            comparison,
        }
    }

    /// Whether every row agrees with the answers.
    pub fn passed(&self) -> bool {
        self.check.passed
    }

    /// For machines.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("the report has no maps and no values that JSON lacks")
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string cannot fail");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        if let Some(comparison) = &self.comparison {
            self.rush.write_rush(out)?;
            comparison.write(out)?;
        }
        self.check.write(out)?;
        self.write_failures(out)?;
        if let Some(comparison) = &self.comparison {
            let story =
                story(comparison.ratio, comparison.hotrow.sales_per_commit.unwrap_or(1.0), self.buyers);
            write!(out, "\n{story}\n\n{NEXT}")?;
        }
        Ok(())
    }

    fn write_failures(&self, out: &mut String) -> std::fmt::Result {
        let lines = || self.rounds.iter().chain([&self.rush]);
        let failed: u64 = lines().map(|line| line.failed).sum();
        if let Some(words) = lines().find_map(|line| line.first_failure.as_ref()) {
            writeln!(out, "  {} purchases ended in an error, the first: {words}", HumanCount(failed))?;
        }
        Ok(())
    }
}

impl Check {
    fn of<'a>(rounds: impl Iterator<Item = &'a Round> + Clone) -> Self {
        let taken = || rounds.clone().map(|round| round.stocktaking);
        Self {
            passed: taken().all(|stock| stock.agrees()),
            rounds: taken().count(),
            acknowledged: taken().map(|stock| stock.acknowledged).sum(),
            sold: taken().map(|stock| stock.sold).sum(),
            disagreeing_rounds: taken().filter(|stock| !stock.acknowledged()).count(),
            oversold_rounds: taken().filter(Stocktaking::oversold).count(),
            incomplete_rounds: taken().filter(|stock| !stock.complete()).count(),
        }
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let (rounds, incomplete, over) = (self.rounds, self.incomplete_rounds, self.oversold_rounds);
        let mark = |good| if good { style("✓").green() } else { style("✗").red().bold() };
        let told = self.disagreeing_rounds == 0;
        let (acknowledged, sold) = (HumanCount(self.acknowledged), HumanCount(self.sold.unsigned_abs()));
        writeln!(out, "  {} {acknowledged} sales acknowledged, {sold} in the table", mark(told))?;
        match incomplete {
            0 => writeln!(out, "  {} stock + sold = initial stock, in all {rounds} rounds", mark(true))?,
            _ => writeln!(
                out,
                "  {} stock + sold is not the initial stock in {incomplete} rounds",
                mark(false)
            )?,
        }
        match over {
            0 => writeln!(out, "  {} nothing oversold", mark(true))?,
            _ => writeln!(out, "  {} oversold in {over} rounds", mark(false))?,
        }
        if !self.passed {
            writeln!(out, "\n  The check failed, so there is nothing to compare. Please report this.")?;
        }
        Ok(())
    }
}

impl Comparison {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let (direct, hotrow) = (&self.direct, &self.hotrow);
        let mut line = |what: &str, direct: String, hotrow: String, so: String| {
            let columns = format!("  {what:<34} {direct:>10} {:>10}  {so}", style(hotrow).bold());
            writeln!(out, "{}", columns.trim_end())
        };
        line("", "direct".into(), "Hotrow".into(), String::new())?;
        line(
            "sales a second (median of rounds)",
            count(direct.sales_per_second),
            count(hotrow.sales_per_second),
            times(self.ratio, "as many"),
        )?;
        for (what, direct, hotrow) in [
            ("wait of half of the buyers (p50)", direct.p50_us, hotrow.p50_us),
            ("wait of 99 of 100 buyers (p99)", direct.p99_us, hotrow.p99_us),
        ] {
            line(what, wait(direct), wait(hotrow), compared(direct, hotrow))?;
        }
        line(
            "sales per commit",
            shared(direct.sales_per_commit),
            shared(hotrow.sales_per_commit),
            String::new(),
        )?;
        writeln!(out)
    }
}

impl Line {
    fn of(round: &Round, passed: bool) -> Self {
        Self {
            round: round.number,
            side: round.side,
            seconds: round.took.as_secs_f64(),
            refused: round.answers.refused,
            failed: round.answers.failed,
            first_failure: round.answers.first_failure.clone(),
            commits: round.commits,
            stocktaking: round.stocktaking,
            figures: passed.then(|| round.figures()),
        }
    }

    fn write_rush(&self, out: &mut String) -> std::fmt::Result {
        let (sold, refused) = (HumanCount(self.stocktaking.acknowledged), HumanCount(self.refused));
        let came = HumanCount(self.stocktaking.acknowledged + self.refused + self.failed);
        writeln!(
            out,
            "   rush  {:<7} {came} buyers for {} items: {sold} sold, {refused} refused, {:.2} s\n",
            self.side,
            HumanCount(self.stocktaking.initial),
            self.seconds,
        )
    }
}

fn compared(direct_us: u64, hotrow_us: u64) -> String {
    let ratio = direct_us as f64 / hotrow_us as f64;
    match ratio {
        same if (0.95..1.05).contains(&same) => "about the same".to_owned(),
        less if less < 1.0 => times(less.recip(), "longer"),
        more => times(more, "shorter"),
    }
}

fn times(ratio: f64, what: &str) -> String {
    if ratio >= 10.0 { format!("{ratio:.0} times {what}") } else { format!("{ratio:.1} times {what}") }
}
