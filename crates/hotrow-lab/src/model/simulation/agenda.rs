//! What happens later: work on processors, and messages on their way.

use std::cmp::Reverse;

use super::{Simulation, Step, Time, nanoseconds};
use crate::model::processors::Started;
use crate::model::world::Machines;

impl Simulation<'_> {
    pub(super) fn at(&mut self, time: Time, step: Step) {
        let place = self.free_steps.pop().unwrap_or_else(|| {
            self.steps.push(None);
            self.steps.len() - 1
        });
        self.steps[place] = Some(step);
        self.order += 1;
        self.events.push(Reverse((time, self.order, place)));
    }

    pub(super) fn run(&mut self, threads: usize, microseconds: f64, step: Step) {
        let mut started = Vec::new();
        self.processors.queue(threads, nanoseconds(microseconds), step, &mut started);
        self.started(started);
    }

    pub(super) fn started(&mut self, started: Vec<Started<Step>>) {
        for Started { threads, cost, step } in started {
            self.at(self.now + cost, Step::Ends(threads, Box::new(step)));
        }
    }

    /// A message to another process, on the same machine or another one.
    pub(super) fn send(&mut self, step: Step) {
        let network = match self.world.machines {
            Machines::Shared => 0.0,
            Machines::Own { network, .. } => network,
        };
        self.at(self.now + nanoseconds(self.world.costs.hop + network), step);
    }
}
