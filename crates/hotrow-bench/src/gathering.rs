//! Collects the rounds of one technique with one number of clients and computes their figures. It runs nothing.

use crate::measure::Measured;
use crate::results::{CellOutcome, Figures, Round};
use crate::statistics::{Latencies, Spread};

/// The rounds so far.
#[derive(Debug)]
pub struct Gathering {
    /// The rate of the open loop.
    pub rate: Option<u32>,
    rounds: Vec<Round>,
    latencies: Latencies,
    trouble: Option<Trouble>,
}

/// The reason why there is no figure.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// A run had no answer, or the rows contradict its answers.
    Failed(String),
    /// The technique cannot be run here.
    Skipped(String),
}

impl Gathering {
    /// Without rounds. The loop is open if it has a rate.
    pub fn new(rate: Option<u32>) -> Self {
        Self { rate, rounds: Vec::new(), latencies: Latencies::new(), trouble: None }
    }

    /// Without rounds, and none will be run.
    pub fn without_rounds(trouble: Trouble) -> Self {
        Self { trouble: Some(trouble), ..Self::new(None) }
    }

    /// Whether further runs make sense.
    pub fn is_open(&self) -> bool {
        self.trouble.is_none()
    }

    /// Adds a run whose check passed.
    pub fn add(&mut self, measured: Measured) {
        self.rounds.push(measured.round);
        self.latencies.add(&measured.latencies);
    }

    /// Records a failed run.
    pub fn fail(&mut self, reason: String) {
        self.trouble = Some(Trouble::Failed(reason));
    }

    /// The last round, for the progress display.
    pub fn last(&self) -> Result<&Round, &str> {
        match (&self.trouble, self.rounds.last()) {
            (Some(Trouble::Failed(reason) | Trouble::Skipped(reason)), _) => Err(reason),
            (None, Some(round)) => Ok(round),
            (None, None) => Err("not run yet"),
        }
    }

    /// The result. If one round failed, there is no figure, regardless of the others.
    pub fn outcome(self) -> CellOutcome {
        match self.trouble {
            Some(Trouble::Failed(reason)) => CellOutcome::Failed { reason },
            Some(Trouble::Skipped(reason)) => CellOutcome::Skipped { reason },
            None => self.figures(),
        }
    }

    fn figures(self) -> CellOutcome {
        let spread =
            |figure: fn(&Round) -> f64| Spread::of(&self.rounds.iter().map(figure).collect::<Vec<_>>());
        let figures = (
            spread(|round| round.per_second),
            spread(|round| round.turned_away_per_second),
            spread(|round| round.wal_bytes_each),
        );
        match figures {
            (Some(per_second), Some(turned_away_per_second), Some(wal_bytes_each)) => {
                CellOutcome::Measured(Figures {
                    per_second,
                    turned_away_per_second,
                    wal_bytes_each,
                    due_per_second: self.rate,
                    latency: self.latencies.quantiles(),
                    rounds: self.rounds,
                })
            }
            _ => CellOutcome::Skipped { reason: "no round was run".into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Gathering;
    use crate::measure::Measured;
    use crate::results::{CellOutcome, Round};
    use crate::statistics::Latencies;

    fn measured(per_second: f64, latency_us: u64) -> Measured {
        let mut latencies = Latencies::new();
        latencies.record(latency_us);
        let round = Round {
            per_second,
            turned_away_per_second: 1.0,
            done: 10,
            turned_away: 1,
            wal_bytes_each: 100.0,
            latency: latencies.quantiles(),
            pace: None,
            server: None,
            gateway: None,
            prediction: None,
        };
        Measured { round, latencies }
    }

    #[test]
    fn the_figures_are_the_median_round_and_the_requests_of_all() {
        let mut gathering = Gathering::new(None);
        for (per_second, latency_us) in [(30.0, 100), (10.0, 200), (20.0, 300)] {
            gathering.add(measured(per_second, latency_us));
        }
        let CellOutcome::Measured(figures) = gathering.outcome() else { panic!("no figures") };
        assert_eq!(
            (figures.per_second.median, figures.per_second.min, figures.per_second.max),
            (20.0, 10.0, 30.0)
        );
        assert_eq!(figures.latency.unwrap().samples, 3);
    }

    #[test]
    fn one_failed_round_removes_all_figures() {
        let mut gathering = Gathering::new(None);
        gathering.add(measured(10.0, 100));
        assert!(gathering.is_open() && gathering.last().is_ok());
        gathering.fail("a sale was lost".into());
        assert!(!gathering.is_open());
        assert_eq!(gathering.last().unwrap_err(), "a sale was lost");
        assert!(matches!(gathering.outcome(), CellOutcome::Failed { reason } if reason == "a sale was lost"));
    }
}
