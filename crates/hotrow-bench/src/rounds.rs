//! The order of runs: numbers of clients, rounds, techniques in turn. It neither makes runs nor interprets figures.

use crate::error::Error;
use crate::gains::gains;
use crate::gathering::{Gathering, Trouble};
use crate::load::{Failure, NoFigure, Run};
use crate::measure::measure;
use crate::novelty::novelties;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::results::{Cell, ScenarioResult, TechniqueResult};
use crate::scenario::{Arrivals, Scenario, Technique};
use crate::testbed::Testbed;

/// Runs a scenario whose rows are set up.
pub async fn run(
    plan: &Plan,
    testbed: &mut Testbed,
    scenario: &'static Scenario,
    progress: &Progress,
) -> Result<ScenarioResult, Error> {
    let techniques = plan.techniques(scenario);
    let mut results: Vec<_> = techniques.iter().map(|technique| empty_result(testbed, technique)).collect();
    for clients in plan.clients(scenario) {
        let best = closed(plan, testbed, scenario, &techniques, clients, progress).await?;
        let mut gathered: Vec<_> =
            techniques.iter().map(|technique| prepare(plan, testbed, technique, clients, &best)).collect();
        for round in 0..plan.rounds {
            for turn in turns(techniques.len(), round) {
                let gathering = &mut gathered[turn];
                let run = Run { scenario, technique: techniques[turn], clients, rate: gathering.rate };
                progress.begin(run, round);
                if gathering.is_open() {
                    match measure(plan, testbed, run).await {
                        Ok(measured) => gathering.add(measured),
                        Err(NoFigure::Failed(Failure(reason))) => gathering.fail(reason),
                        Err(NoFigure::Error(error)) => return Err(error),
                    }
                }
                progress.end(run, round, gathering.last());
            }
        }
        for (result, gathering) in results.iter_mut().zip(gathered) {
            result.cells.push(Cell { clients, outcome: gathering.outcome() });
        }
    }
    Ok(ScenarioResult {
        gains: gains(scenario, &results),
        novelties: novelties(scenario, &results),
        name: scenario.name,
        shows: scenario.shows,
        figure: scenario.figure,
        rows: plan.rows(scenario),
        remarks: remarks(testbed, scenario, &techniques),
        techniques: results,
    })
}

/// Each round begins with another technique, so that none is always the first after a pause or the last before one.
fn turns(techniques: usize, round: u32) -> impl Iterator<Item = usize> {
    (0..techniques).map(move |turn| (turn + round as usize) % techniques)
}

/// Determines whether a technique can be run with this number of clients, and at which rate.
fn prepare(
    plan: &Plan,
    testbed: &Testbed,
    technique: &Technique,
    clients: u32,
    closed: &Result<f64, Trouble>,
) -> Gathering {
    if let Err(Failure(reason)) = testbed.can_be_reached(technique, clients) {
        return Gathering::without_rounds(Trouble::Skipped(reason));
    }
    match (technique.arrivals, closed) {
        (Arrivals::Closed, _) => Gathering::new(None),
        (Arrivals::Planned { usually }, _) => Gathering::new(Some(plan.rate(usually))),
        (Arrivals::OfClosed { percent }, Ok(best)) => {
            Gathering::new(Some(((best * f64::from(percent) / 100.0) as u32).max(1)))
        }
        (Arrivals::OfClosed { .. }, Err(trouble)) => Gathering::without_rounds(trouble.clone()),
    }
}

/// The maximum of the baseline with this number of clients, measured once for all techniques that need it.
async fn closed(
    plan: &Plan,
    testbed: &mut Testbed,
    scenario: &'static Scenario,
    techniques: &[&'static Technique],
    clients: u32,
    progress: &Progress,
) -> Result<Result<f64, Trouble>, Error> {
    let asks = |technique: &&&'static Technique| matches!(technique.arrivals, Arrivals::OfClosed { .. });
    let Some(baseline) = techniques.iter().find(asks).and_then(|asking| scenario.technique(asking.against))
    else {
        return Ok(Err(Trouble::Skipped("no technique needs the rate of a baseline".into())));
    };
    if let Err(Failure(reason)) = testbed.can_be_reached(baseline, clients) {
        return Ok(Err(Trouble::Skipped(reason)));
    }
    progress.note(&format!("{}: measuring the maximum of `{}`", scenario.name, baseline.name));
    let run = Run { scenario, technique: baseline, clients, rate: None };
    match measure(plan, testbed, run).await.map_err(|failure| failure.of("cannot determine a rate")) {
        Ok(best) => Ok(Ok(best.round.per_second)),
        Err(NoFigure::Failed(Failure(reason))) => Ok(Err(Trouble::Failed(reason))),
        Err(NoFigure::Error(error)) => Err(error),
    }
}

fn empty_result(testbed: &Testbed, technique: &'static Technique) -> TechniqueResult {
    TechniqueResult {
        name: technique.name,
        about: technique.about,
        through: technique.through,
        protocol: testbed.protocol(technique),
        against: technique.against,
        cells: Vec::new(),
    }
}

/// The remarks of the scenario, and special conditions on this machine.
fn remarks(testbed: &Testbed, scenario: &Scenario, techniques: &[&'static Technique]) -> Vec<String> {
    let of_others = techniques.iter().filter_map(|technique| testbed.others.as_ref()?.remark(technique));
    scenario.remarks.iter().map(|remark| (*remark).to_owned()).chain(of_others).collect()
}

#[cfg(test)]
mod tests {
    use super::turns;

    #[test]
    fn every_round_runs_all_and_begins_with_another() {
        let order: Vec<Vec<usize>> = (0..4).map(|round| turns(3, round).collect()).collect();
        assert_eq!(order, [vec![0, 1, 2], vec![1, 2, 0], vec![2, 0, 1], vec![0, 1, 2]]);
    }
}
