//! Compares the gain that the doctor predicts with the measured one. It measures nothing.

use crate::doctor_report::{Examined, Range};
use crate::results::{Gain, TechniqueResult};
use crate::scenario::{Prediction, Scenario};
use crate::statistics::Spread;

/// The gains of a scenario's last technique, for each number of clients with figures.
pub fn gains(scenario: &Scenario, results: &[TechniqueResult]) -> Vec<Gain> {
    let Some(through) = results.last().filter(|last| last.against != last.name) else { return Vec::new() };
    let Some(direct) = results.iter().find(|result| result.name == through.against) else {
        return Vec::new();
    };
    let gain = |clients: u32| {
        let (before, after) = (direct.figures(clients)?, through.figures(clients)?);
        let examined: Vec<&Examined> =
            before.rounds.iter().filter_map(|round| round.prediction.as_ref()).collect();
        let predicted = match scenario.prediction {
            Prediction::None => return None,
            Prediction::Examined => median(&examined)?,
            Prediction::Reported { low, high } => Range { low, high },
        };
        let measured = after.per_second.median / before.per_second.median;
        Some(Gain {
            clients,
            predicted,
            findings: examined.iter().map(|examined| examined.finding.clone()).collect(),
            measured,
            is_within: (predicted.low..=predicted.high).contains(&measured),
        })
    };
    through.cells.iter().filter_map(|cell| gain(cell.clients)).collect()
}

fn median(examined: &[&Examined]) -> Option<Range> {
    let end = |of: fn(&Range) -> f64| {
        let ends: Vec<f64> = examined.iter().map(|examined| of(&examined.range)).collect();
        Spread::of(&ends).map(|spread| spread.median)
    };
    Some(Range { low: end(|range| range.low)?, high: end(|range| range.high)? })
}

#[cfg(test)]
mod tests {
    use super::median;
    use crate::doctor_report::{Examined, Range};

    #[test]
    fn the_range_of_several_rounds_is_the_median_of_each_end() {
        let examined =
            |low: f64, high: f64| Examined { range: Range { low, high }, finding: "hot_row".into() };
        let rounds = [examined(1.0, 30.0), examined(3.0, 10.0), examined(2.0, 20.0)];
        let all: Vec<&Examined> = rounds.iter().collect();
        assert_eq!(median(&all), Some(Range { low: 2.0, high: 20.0 }));
        assert_eq!(median(&[]), None);
    }
}
