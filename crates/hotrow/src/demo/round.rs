//! One round of the sale on one side: a fresh stock, the buyers, the figures, the check. Never a word to the user.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::buyers::{Answers, Buyers, Demand};
use super::error::Error;
use super::sale::Stocktaking;
use super::stage::Stage;
use super::view::View;

/// How often the live view is given new figures.
const TICK: Duration = Duration::from_millis(250);

/// The way to the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Straight to the server.
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

/// What is to happen in a round.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The round's number; none for the rush.
    pub number: Option<u32>,
    /// Which way the buyers go.
    pub side: Side,
    /// On the shelf before it.
    pub stock: i32,
    /// Connections.
    pub buyers: usize,
    /// How long, or how many.
    pub demand: Demand,
}

/// What happened in it.
pub struct Round {
    /// Its number; none for the rush.
    pub number: Option<u32>,
    /// Which way the buyers went.
    pub side: Side,
    /// The shelf against the answers.
    pub stocktaking: Stocktaking,
    /// What the buyers were told.
    pub answers: Answers,
    /// From the first purchase to the last answer.
    pub took: Duration,
    /// Writing transactions that the server committed meanwhile.
    pub commits: u64,
}

impl Round {
    /// Holds the round, and tells the view how it goes.
    pub async fn hold(stage: &Stage, plan: Plan, view: &mut View) -> Result<Self, Error> {
        stage.sale.restock(plan.stock).await?;
        let before = stage.sale.transactions().await?;
        let target = stage.target(plan.side);
        let address = target.address();
        view.round_begins(&plan);

        let mut buyers = Buyers::send(target, plan.buyers, plan.demand)?;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let took = loop {
            tokio::select! {
                took = buyers.finished() => break took?,
                _ = tick.tick() => {
                    let commits = stage.sale.transactions().await?.saturating_sub(before);
                    view.round_now(&plan, &buyers.so_far(), commits);
                }
            }
        };

        let commits = stage.sale.transactions().await?.saturating_sub(before);
        let answers = buyers.so_far();
        if answers.sold == 0 {
            let answer = answers.first_failure.unwrap_or_else(|| "each purchase was refused".to_owned());
            return Err(Error::NothingSold { address, answer });
        }
        let stocktaking = stage.sale.take_stock(plan.stock, answers.sold).await?;
        let round = Self { number: plan.number, side: plan.side, stocktaking, answers, took, commits };
        view.round_ends(&round)?;
        Ok(round)
    }

    /// Its figures.
    pub fn figures(&self) -> Figures {
        Figures::of(self.answers.sold as f64 / self.took.as_secs_f64(), &self.answers, self.commits)
    }
}

/// The figures that people compare.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// Acknowledged sales.
    pub sales_per_second: f64,
    /// Half of the buyers waited at most so long for their answer.
    pub p50_us: u64,
    /// 99 of 100 buyers did.
    pub p99_us: u64,
    /// How many sales shared a commit; none before the first one.
    pub sales_per_commit: Option<f64>,
}

impl Figures {
    /// From a rate, the answers and the commits behind them.
    pub fn of(sales_per_second: f64, answers: &Answers, commits: u64) -> Self {
        Self::new(sales_per_second, &answers.waits, answers.sold, commits)
    }

    /// The rounds of one side as one: the median of their rates, all their waits, all their commits.
    pub fn of_all(rounds: &[&Round]) -> Self {
        let mut rates: Vec<f64> = rounds.iter().map(|round| round.figures().sales_per_second).collect();
        let mut all = Answers::none();
        for round in rounds {
            all.sold += round.answers.sold;
            // Both histograms have the same bounds, so nothing is out of them.
            let _ = all.waits.add(&round.answers.waits);
        }
        let commits = rounds.iter().map(|round| round.commits).sum();
        Self::of(median(&mut rates), &all, commits)
    }

    fn new(sales_per_second: f64, waits: &Histogram<u64>, sold: u64, commits: u64) -> Self {
        Self {
            sales_per_second,
            p50_us: waits.value_at_quantile(0.50),
            p99_us: waits.value_at_quantile(0.99),
            sales_per_commit: (commits > 0).then(|| sold as f64 / commits as f64),
        }
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
