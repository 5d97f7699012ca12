//! The result of a demo: the comparison and the check, as text and as JSON. A sale whose check failed has no figures.

use std::fmt::Write as _;

use console::style;
use indicatif::HumanCount;
use serde::Serialize;

use super::facts::ServerFacts;
use super::figures::{Figures, Round, Side};
use super::layout::Layout;
use super::stocktaking::Stocktaking;
use super::story::story;
use super::view::{count, shared, wait};

/// The name of the profile that the program was built with.
pub const BUILD: &str = env!("BUILD_PROFILE");

/// A finished demo.
#[derive(Serialize)]
pub struct Report {
    hotrow: &'static str,
    /// The profile that the program was built with.
    build: &'static str,
    server: ServerFacts,
    cores: usize,
    buyers: usize,
    check: Check,
    comparison: Option<Comparison>,
    rounds: Vec<Line>,
    rush: Line,
}

/// The table's row compared with the answers, over all rounds.
#[derive(Serialize)]
struct Check {
    passed: bool,
    rounds: usize,
    acknowledged: u64,
    sold: i64,
    /// Rounds in which row and answers have different numbers. In the totals, two such rounds may cancel each other.
    disagreeing_rounds: usize,
    oversold_rounds: usize,
    incomplete_rounds: usize,
}

/// The two sides over all rounds: median of the rates, all latencies.
#[derive(Serialize)]
struct Comparison {
    direct: Figures,
    hotrow: Figures,
    ratio: f64,
}

/// One round in the JSON document.
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
    /// Combines the rounds.
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
            build: BUILD,
            server: server.clone(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            buyers,
            rounds: rounds.iter().map(|round| Line::of(round, check.passed)).collect(),
            rush: Line::of(rush, check.passed),
            check,
            comparison,
        }
    }

    /// Whether the row agrees with the answers in every round.
    pub fn passed(&self) -> bool {
        self.check.passed
    }

    /// The JSON document.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("the report has no maps and no values that JSON lacks")
    }

    /// The text for a terminal.
    pub fn text(&self, layout: Layout) -> String {
        let mut text = String::new();
        self.write(&mut text, layout).expect("writing to a string cannot fail");
        text
    }

    fn write(&self, out: &mut String, layout: Layout) -> std::fmt::Result {
        if let Some(comparison) = &self.comparison {
            self.rush.write_rush(out, layout)?;
            comparison.write(out, layout)?;
        }
        self.check.write(out, layout)?;
        self.write_failures(out, layout)?;
        if let Some(comparison) = &self.comparison {
            let share = comparison.hotrow.sales_per_commit.unwrap_or(1.0);
            let story = story(comparison.ratio, share, self.buyers, self.server.advice());
            write!(out, "\n{}\n\n{}", layout.wrapped(&story, 2), self.server.next())?;
        }
        Ok(())
    }

    fn write_failures(&self, out: &mut String, layout: Layout) -> std::fmt::Result {
        let lines = || self.rounds.iter().chain([&self.rush]);
        let failed: u64 = lines().map(|line| line.failed).sum();
        if let Some(words) = lines().find_map(|line| line.first_failure.as_ref()) {
            let line = format!("{} purchases ended in an error, the first: {words}", HumanCount(failed));
            writeln!(out, "{}", layout.wrapped(&line, 2))?;
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

    fn write(&self, out: &mut String, layout: Layout) -> std::fmt::Result {
        let (rounds, incomplete, over) = (self.rounds, self.incomplete_rounds, self.oversold_rounds);
        let mark = |good| if good { style("✓").green() } else { style("✗").red().bold() };
        let told = self.disagreeing_rounds == 0;
        let (acknowledged, sold) = (HumanCount(self.acknowledged), HumanCount(self.sold.unsigned_abs()));
        writeln!(out, "  {} {acknowledged} sales acknowledged, {sold} in the table", mark(told))?;
        match incomplete {
            0 => writeln!(
                out,
                "  {} stock + sold = initial stock, in all {rounds} rounds with the rush",
                mark(true)
            )?,
            _ => writeln!(
                out,
                "  {} stock + sold is not the initial stock in {incomplete} rounds",
                mark(false)
            )?,
        }
        match over {
            0 => writeln!(out, "  {} no round sold more than its stock", mark(true))?,
            _ => writeln!(out, "  {} more sold than in stock in {over} rounds", mark(false))?,
        }
        if !self.passed {
            let words = "The check failed: the row and the answers differ, so there are no figures. Please report this as a bug.";
            writeln!(out, "\n{}", layout.wrapped(words, 2))?;
        }
        Ok(())
    }
}

impl Comparison {
    fn write(&self, out: &mut String, layout: Layout) -> std::fmt::Result {
        let (direct, hotrow) = (&self.direct, &self.hotrow);
        let mut line = |what: [&str; 2], direct: String, hotrow: String, so: String| {
            writeln!(out, "{}", layout.comparison([what[0], what[1], &direct, &hotrow, &so]))
        };
        line(["", ""], "direct".into(), "Hotrow".into(), String::new())?;
        line(
            ["sales per second, median of rounds", "sales/s"],
            count(direct.sales_per_second),
            count(hotrow.sales_per_second),
            times(self.ratio, "as many"),
        )?;
        for (what, direct, hotrow) in [
            (["longest wait of half the buyers", "p50"], direct.p50_us, hotrow.p50_us),
            (["longest wait of 99 % of the buyers", "p99"], direct.p99_us, hotrow.p99_us),
        ] {
            line(what, wait(direct), wait(hotrow), compared(direct, hotrow))?;
        }
        line(
            ["sales per commit", "sales/commit"],
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

    fn write_rush(&self, out: &mut String, layout: Layout) -> std::fmt::Result {
        let (sold, refused) = (HumanCount(self.stocktaking.acknowledged), HumanCount(self.refused));
        let came = HumanCount(self.stocktaking.acknowledged + self.refused + self.failed);
        let line = format!(
            "rush {} {came} buyers for {} items: {sold} sold, {refused} refused, {:.2} s",
            self.side,
            HumanCount(self.stocktaking.initial),
            self.seconds,
        );
        writeln!(out, "{}\n", layout.wrapped(&line, 3))
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
