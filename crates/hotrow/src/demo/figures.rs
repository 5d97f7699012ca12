//! The plan of a round, its result, and the figures for the comparison.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::buyers::{Answers, Demand};
use super::stocktaking::Stocktaking;

/// The way from the buyers to the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Directly to the server.
    Direct,
    /// Through the gateway.
    Hotrow,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Direct => "direct",
            Self::Hotrow => "Hotrow",
        })
    }
}

/// The plan of a round.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The round's number; none for the rush.
    pub number: Option<u32>,
    /// The buyers' way to the row.
    pub side: Side,
    /// The stock before it.
    pub stock: i32,
    /// Connections.
    pub buyers: usize,
    /// The end of the round: a time or a number of buyers.
    pub demand: Demand,
}

/// The result of a round.
pub struct Round {
    /// Its number; none for the rush.
    pub number: Option<u32>,
    /// The buyers' way to the row.
    pub side: Side,
    /// The row compared with the answers.
    pub stocktaking: Stocktaking,
    /// The buyers' answers.
    pub answers: Answers,
    /// The time from the first purchase to the last answer.
    pub took: Duration,
    /// Writing transactions that the server committed in this time.
    pub commits: u64,
}

impl Round {
    pub fn figures(&self) -> Figures {
        Figures::of(self.answers.sold as f64 / self.took.as_secs_f64(), &self.answers, self.commits)
    }
}

/// The figures for the comparison.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// Acknowledged sales per second.
    pub sales_per_second: f64,
    /// Longest wait of half the buyers, in microseconds.
    pub p50_us: u64,
    /// Longest wait of 99 % of the buyers, in microseconds.
    pub p99_us: u64,
    /// Sales per commit; none before the first commit.
    pub sales_per_commit: Option<f64>,
}

impl Figures {
    /// Figures from a rate, the answers and their number of commits.
    pub fn of(sales_per_second: f64, answers: &Answers, commits: u64) -> Self {
        Self {
            sales_per_second,
            p50_us: answers.waits.value_at_quantile(0.50),
            p99_us: answers.waits.value_at_quantile(0.99),
            sales_per_commit: (commits > 0).then(|| answers.sold as f64 / commits as f64),
        }
    }

    /// Figures of all rounds of one side: the median of the rates, all waits, all commits.
    pub fn of_all(rounds: &[&Round]) -> Self {
        let mut rates: Vec<f64> = rounds.iter().map(|round| round.figures().sales_per_second).collect();
        let mut all = Answers::none();
        for round in rounds {
            all.sold += round.answers.sold;
            // Both histograms have the same bounds, so no value is out of bounds.
            let _ = all.waits.add(&round.answers.waits);
        }
        let commits = rounds.iter().map(|round| round.commits).sum();
        Self::of(median(&mut rates), &all, commits)
    }
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    let middle = rates.len() / 2;
    match rates.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => rates[middle],
        _ => f64::midpoint(rates[middle - 1], rates[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
