//! Compares what new traffic costs through Hotrow with what it costs directly. It measures nothing.

use crate::gateway::Footprint;
use crate::results::{FirstUse, GatewayWork, Novelty, Round, TechniqueResult};
use crate::scenario::{Figure, Scenario};
use crate::statistics::Spread;

/// The techniques: without anything new and with it, directly and through Hotrow.
const COMPARED: [&str; 4] = ["direct", "direct-new", "hotrow", "hotrow-new"];

/// The name of a technique that Hotrow passes through, whose latency limits what a first execution may cost.
pub const PASSED_THROUGH: &str = "round-trip";

/// The smallest acceptable share: a tenth is the noise of short runs.
pub const SHARE_MIN: f64 = 0.9;

/// The largest acceptable number of rounds of questions to the catalog for each statement.
pub const QUESTIONS_MAX: f64 = 0.01;

/// Whether a scenario compares new traffic with other traffic.
pub fn is_about(scenario: &Scenario) -> bool {
    scenario.technique(COMPARED[3]).is_some()
}

/// The work of a gateway between two footprints, in which it answered these statements, some of them in the second load.
pub fn gateway_work(before: Footprint, after: Footprint, statements: u64, beside: u64) -> GatewayWork {
    GatewayWork {
        questions: after.questions.saturating_sub(before.questions),
        statements: statements + beside,
        beside,
        cpu_us: after.cpu_us.saturating_sub(before.cpu_us),
        bytes_before: before.bytes,
        bytes_after: after.bytes,
    }
}

/// The comparisons of a scenario, one for each number of clients with figures.
pub fn novelties(scenario: &Scenario, results: &[TechniqueResult]) -> Vec<Novelty> {
    let named = |name: &str| results.iter().find(|result| result.name == name);
    let [Some(direct), Some(direct_new), Some(hotrow), Some(hotrow_new)] = COMPARED.map(named) else {
        return Vec::new();
    };
    let compared = |clients: u32| {
        let figures = |result: &'static str| named(result)?.figures(clients);
        let rounds = |result: &TechniqueResult| Some(result.figures(clients)?.rounds.clone());
        let all = [rounds(direct)?, rounds(direct_new)?, rounds(hotrow)?, rounds(hotrow_new)?];
        let share = share(scenario.figure, &all)?;
        let through_by_direct = Spread::of(&ratios(scenario.figure, &all[3], &all[1])?)?.median;
        let p50_us = |name| Some(figures(name)?.latency?.p50_us);
        let first_use = p50_us(PASSED_THROUGH).zip(p50_us(COMPARED[1]).zip(p50_us(COMPARED[3])));
        let first_use = first_use.map(|(round_trip_us, (direct_us, hotrow_us))| FirstUse {
            direct_us,
            hotrow_us,
            round_trip_us,
        });
        let work =
            |rounds: &[Round]| rounds.iter().filter_map(|round| round.gateway).reduce(GatewayWork::and);
        let (gateway_without, gateway) = (work(&all[2]), work(&all[3]));
        let asks_rarely = gateway.is_none_or(|work| work.questions_per_statement() <= QUESTIONS_MAX);
        let is_within = match &first_use {
            Some(first_use) => first_use.hotrow_us <= first_use.direct_us + first_use.round_trip_us,
            None => share.median >= SHARE_MIN && asks_rarely,
        };
        Some(Novelty { clients, share, through_by_direct, is_within, first_use, gateway_without, gateway })
    };
    direct.cells.iter().filter_map(|cell| compared(cell.clients)).collect()
}

/// The share of Hotrow's speed that remains, divided by the share of the direct speed that remains. The runs of a round follow
/// each other closely, so each round is compared with itself.
fn share(figure: Figure, [direct, direct_new, hotrow, hotrow_new]: &[Vec<Round>; 4]) -> Option<Spread> {
    let (new, other) = (ratios(figure, hotrow_new, direct_new)?, ratios(figure, hotrow, direct)?);
    let shares: Vec<f64> = new.iter().zip(other).map(|(new, other)| new / other).collect();
    Spread::of(&shares).filter(|spread| spread.max.is_finite())
}

/// The speeds of a technique divided by those of another one, for each round.
fn ratios(figure: Figure, one: &[Round], other: &[Round]) -> Option<Vec<f64>> {
    let speed = |round: &Round| match figure {
        Figure::Throughput => Some(round.per_second),
        Figure::Latency => Some(1.0 / round.latency?.p50_us as f64),
    };
    one.iter().zip(other).map(|(one, other)| Some(speed(one)? / speed(other)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::novelties;
    use crate::results::{Cell, CellOutcome, Figures, GatewayWork, Novelty, Round, TechniqueResult};
    use crate::scenario::{Figure, Protocol, Scenario, Through};
    use crate::scenarios::USUAL;
    use crate::statistics::{Latencies, Quantiles, Spread};

    fn quantiles(p50_us: u64) -> Option<Quantiles> {
        let mut latencies = Latencies::new();
        latencies.record(p50_us);
        latencies.quantiles()
    }

    /// A technique with these rates, whose median latency is that of a closed loop.
    fn technique(name: &'static str, rates: &[f64]) -> TechniqueResult {
        let gateway = Some(GatewayWork {
            questions: 1,
            statements: 100,
            beside: 10,
            cpu_us: 500,
            bytes_before: 1,
            bytes_after: 9,
        });
        let round = |rate: &f64| Round {
            per_second: *rate,
            turned_away_per_second: 0.0,
            done: 0,
            turned_away: 0,
            wal_bytes_each: 0.0,
            latency: quantiles((1e6 / rate) as u64),
            pace: None,
            server: None,
            gateway,
            prediction: None,
        };
        let figures = Figures {
            per_second: Spread::of(rates).unwrap(),
            turned_away_per_second: Spread::of(&[0.0]).unwrap(),
            wal_bytes_each: Spread::of(&[0.0]).unwrap(),
            due_per_second: None,
            latency: quantiles((1e6 / rates[0]) as u64),
            rounds: rates.iter().map(round).collect(),
        };
        TechniqueResult {
            name,
            about: "",
            through: Through::Hotrow,
            protocol: Protocol::Extended,
            against: "direct",
            cells: vec![Cell { clients: 8, outcome: CellOutcome::Measured(figures) }],
        }
    }

    fn compared(figure: Figure, results: &[(&'static str, &[f64])]) -> Option<Novelty> {
        let results: Vec<_> = results.iter().map(|(name, rates)| technique(name, rates)).collect();
        novelties(&Scenario { figure, ..USUAL }, &results).pop()
    }

    #[test]
    fn the_share_compares_each_round_with_itself() {
        let novelty = compared(
            Figure::Throughput,
            &[
                ("direct", &[100.0, 1000.0, 200.0]),
                ("direct-new", &[50.0, 500.0, 100.0]),
                ("hotrow", &[1000.0, 10_000.0, 2000.0]),
                ("hotrow-new", &[100.0, 5_000.0, 1200.0]),
            ],
        );
        let novelty = novelty.unwrap();
        assert_eq!(novelty.share, Spread { median: 1.0, min: 0.2, max: 1.2 });
        assert_eq!(novelty.through_by_direct, 10.0);
        assert!(novelty.is_within);
        let gateway = novelty.gateway.unwrap();
        assert_eq!((gateway.questions, gateway.statements, gateway.beside), (3, 300, 30));
        assert_eq!(gateway.cpu_us_per_statement(), 5.0);
        assert_eq!((gateway.bytes_before, gateway.bytes_after), (1, 9));
    }

    #[test]
    fn a_first_use_may_take_one_round_trip_longer() {
        let within = |hotrow_new: f64| {
            let results: [(&str, &[f64]); 5] = [
                ("direct", &[1000.0]),
                ("direct-new", &[500.0]),
                ("hotrow", &[1000.0]),
                ("hotrow-new", &[hotrow_new]),
                ("round-trip", &[1000.0]),
            ];
            compared(Figure::Latency, &results).unwrap().is_within
        };
        assert!(within(333.4) && !within(332.0), "2 ms directly, and 1 ms for a round trip");
    }

    #[test]
    fn other_scenarios_have_no_comparison() {
        assert!(compared(Figure::Throughput, &[("direct", &[1.0]), ("hotrow", &[1.0])]).is_none());
    }
}
