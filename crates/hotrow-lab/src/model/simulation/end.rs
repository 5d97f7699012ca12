//! The end of a simulation: what was observed.

use super::{LaneOfGateway, Node, Simulation};
use crate::model::world::{Observed, Resource, Way};

impl Simulation<'_> {
    pub(super) fn observed(mut self) -> Observed {
        let since = self.counting_since.unwrap_or(0);
        let time = (self.now - since).max(1);
        let seconds = time as f64 / 1e9;
        self.latencies.sort_unstable();
        let quantile = |share: f64| {
            let place = (self.latencies.len() as f64 * share) as usize;
            self.latencies.get(place).map_or(0.0, |latency| *latency as f64 / 1e6)
        };
        let most = |shares: &mut dyn Iterator<Item = f64>| shares.fold(0.0, f64::max);
        let machine = |machine: usize| self.processors.machine_busy(machine, time);
        let row_busy = |node: &Node| {
            let current = node.first_row_since.map_or(0, |since| self.now - since);
            (node.first_row_busy + current) as f64 / time as f64
        };
        let mut busy = vec![
            (Resource::Row, most(&mut self.nodes.iter().map(row_busy))),
            (Resource::Node, most(&mut self.nodes.iter().map(|node| machine(node.machine)))),
            (Resource::Log, most(&mut self.nodes.iter().map(|node| node.log_busy as f64 / time as f64))),
        ];
        if self.world.way == Way::Gateways {
            let lane_busy = |lane: &LaneOfGateway| {
                let current = if lane.is_busy { self.now - lane.busy_since } else { 0 };
                (lane.busy + current) as f64 / time as f64
            };
            busy.push((Resource::Gateway, most(&mut self.gateways.iter().map(|one| machine(one.machine)))));
            busy.push((Resource::Lane, most(&mut self.lanes.iter().map(lane_busy))));
        }
        if let Some((own, _)) = self.coordinator {
            busy.push((Resource::Coordinator, machine(own)));
        }
        Observed {
            per_second: self.latencies.len() as f64 / seconds,
            refused_per_second: self.refused as f64 / seconds,
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            batch: self.units as f64 / self.batches.max(1) as f64,
            busy,
        }
    }
}
