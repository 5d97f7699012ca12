//! Measured runs beside simulated ones, and the search for constants with which they agree. The runs and the constants are in
//! `calibration.json`. Runs that are held out have no part in the search.

use super::costs::{Costs, Work};
use super::simulation::simulate;
use super::world::{Arrivals, Machines, Way, World};
use serde::{Deserialize, Serialize};

/// All machines on which runs were measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Calibration {
    pub machines: Vec<Machine>,
}

/// A machine, and the runs that were measured there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    pub name: String,
    /// The page of `docs` with the measured figures.
    pub source: String,
    /// Its constants.
    pub costs: Costs,
    /// The names of constants that were measured by themselves. The search does not change them.
    pub measured: Vec<String>,
    pub runs: Vec<Run>,
}

/// A measured run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// What the requests do.
    pub work: Work,
    /// Through Hotrow, or directly to the server or the coordinator.
    pub through_hotrow: bool,
    /// The number of clients.
    pub clients: usize,
    /// Microseconds that each WAL flush took longer than on the machine's own disk.
    #[serde(default)]
    pub flush_added: f64,
    /// Workers of a cluster, or 0 for one server.
    #[serde(default)]
    pub workers: usize,
    /// Gateways, if the requests go through Hotrow. The clients are divided evenly.
    #[serde(default = "one")]
    pub gateways: usize,
    /// Requests per second.
    pub per_second: f64,
    /// Whether the run only tests the constants.
    #[serde(default)]
    pub held_out: bool,
}

fn one() -> usize {
    1
}

/// A run with its simulated figure.
#[derive(Debug, Clone)]
pub struct Compared {
    pub run: Run,
    /// The simulated requests per second.
    pub simulated: f64,
}

impl Compared {
    /// The relative error of the simulated figure.
    pub fn error(&self) -> f64 {
        self.simulated / self.run.per_second - 1.0
    }
}

impl Calibration {
    /// The one of this project.
    pub fn own() -> Self {
        serde_json::from_str(include_str!("calibration.json")).expect("the file is part of the program")
    }

    /// Simulates the runs of all machines.
    pub fn compare(&self) -> Vec<Vec<Compared>> {
        self.machines.iter().map(Machine::compare).collect()
    }
}

impl Machine {
    /// Simulates all runs.
    fn compare(&self) -> Vec<Compared> {
        self.runs
            .iter()
            .map(|run| Compared { run: run.clone(), simulated: simulated(&self.costs, run) })
            .collect()
    }

    /// Changes one constant after the other as long as the runs that are not held out agree better.
    pub fn fit(&mut self) {
        let mut best = self.misfit();
        for step in [1.5, 1.2, 1.1, 1.04] {
            for _ in 0..ROUNDS {
                let before = best;
                for (place, name) in Costs::NAMES.iter().enumerate() {
                    if self.measured.iter().any(|measured| measured == name) {
                        continue;
                    }
                    for factor in [step, 1.0 / step] {
                        let old = *self.costs.at(place);
                        *self.costs.at(place) = (old * factor * 100.0).round().max(1.0) / 100.0;
                        let misfit = self.misfit();
                        if misfit < best {
                            best = misfit;
                        } else {
                            *self.costs.at(place) = old;
                        }
                    }
                }
                if best > before * 0.999 {
                    break;
                }
            }
        }
    }

    fn misfit(&self) -> f64 {
        let fitted = self.runs.iter().filter(|run| !run.held_out);
        fitted.map(|run| (simulated(&self.costs, run) / run.per_second).ln().abs().powi(6)).sum()
    }
}

/// Rounds over all constants with one size of the steps.
const ROUNDS: usize = 12;

fn simulated(costs: &Costs, run: &Run) -> f64 {
    let mut costs = costs.clone();
    costs.flush += run.flush_added;
    let way = if run.through_hotrow { Way::Gateways } else { Way::Direct };
    // Enough time for some hundred batches or for some answers of each client.
    let seconds = (4.0 * run.clients as f64 / run.per_second).clamp(0.05, 2.0);
    let world = World {
        costs,
        machines: Machines::Shared,
        nodes: run.workers.max(1),
        coordinator: run.workers > 0,
        gateways: run.gateways,
        way,
        work: run.work,
        rows: if run.work == Work::Hot { 1 } else { 1_000_000 },
        zipf: 0.0,
        arrivals: Arrivals::Closed(run.clients),
        warm_up: seconds / 2.0,
        seconds,
        seed: 1,
    };
    simulate(&world).per_second
}
