//! The beginning of a simulation: machines, programs and lanes.

use super::{Gateway, LaneOfGateway, Node, Simulation, Step, Time};
use crate::model::costs::Work;
use crate::model::keys::Keys;
use crate::model::processors::Processors;
use crate::model::world::{Arrivals, Machines, World};
use fastrand::Rng;
use hotrow_core::limits;
use hotrow_lane::affinity::Affinity;
use hotrow_lane::lane::{Lane, LaneKind};
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

impl<'a> Simulation<'a> {
    pub(super) fn new(world: &'a World) -> Self {
        let mut processors = Processors::new();
        let shared = match world.machines {
            Machines::Shared => Some(processors.machine(2)),
            Machines::Own { .. } => None,
        };
        let (gateway_cores, node_cores) = match world.machines {
            Machines::Shared => (1, 2),
            Machines::Own { gateway_cores, node_cores, .. } => (gateway_cores, node_cores),
        };
        let client = shared.map(|machine| processors.threads(machine, 1));
        let coordinator = world.coordinator.then(|| {
            let machine = shared.unwrap_or_else(|| processors.machine(node_cores));
            (machine, processors.threads(machine, usize::MAX))
        });
        let mut nodes = Vec::new();
        for _ in 0..world.nodes {
            let machine = shared.unwrap_or_else(|| processors.machine(node_cores));
            let sessions = processors.threads(machine, usize::MAX);
            nodes.push(Node { machine, sessions, ..Node::default() });
        }
        let (gateways, lanes) = gateways(world, shared, gateway_cores, &nodes, &mut processors);
        Self {
            world,
            now: 0,
            events: BinaryHeap::new(),
            steps: Vec::new(),
            free_steps: Vec::new(),
            order: 0,
            processors,
            random: Rng::with_seed(world.seed),
            keys: Keys::new(world.rows, world.zipf),
            requests: Vec::new(),
            free_requests: Vec::new(),
            running: Vec::new(),
            free_running: Vec::new(),
            nodes,
            gateways,
            lanes,
            client,
            coordinator,
            next_gateway: 0,
            counting_since: None,
            latencies: Vec::new(),
            refused: 0,
            batches: 0,
            units: 0,
        }
    }

    pub(super) fn begin(&mut self) {
        match self.world.arrivals {
            Arrivals::Closed(clients) => {
                for _ in 0..clients {
                    let gateway = self.choose_gateway();
                    self.ask(gateway);
                }
            }
            Arrivals::Open(_) => self.at(0, Step::Due),
        }
    }

    pub(super) fn start_counting(&mut self, now: Time) {
        self.counting_since = Some(now);
        self.processors.reset();
        for node in &mut self.nodes {
            (node.log_busy, node.first_row_busy) = (0, 0);
            node.first_row_since = node.first_row_since.map(|_| now);
        }
        for lane in &mut self.lanes {
            (lane.busy, lane.busy_since) = (0, now);
        }
        self.latencies.clear();
        (self.refused, self.batches, self.units) = (0, 0, 0);
    }
}

/// The gateways, and the lanes of each to each node.
fn gateways(
    world: &World,
    shared: Option<usize>,
    cores: usize,
    nodes: &[Node],
    processors: &mut Processors<Step>,
) -> (Vec<Gateway>, Vec<LaneOfGateway>) {
    let (mut gateways, mut lanes) = (Vec::new(), Vec::new());
    let kind = if world.work == Work::Read { LaneKind::Read } else { LaneKind::Write };
    for gateway in 0..world.gateways {
        let machine = shared.unwrap_or_else(|| processors.machine(cores));
        let threads = processors.threads(machine, cores);
        let affinities = (0..world.nodes).map(|_| Affinity::new(limits::LANES)).collect();
        gateways.push(Gateway { machine, threads, affinities });
        for (node, of_node) in nodes.iter().enumerate() {
            lanes.extend((0..limits::LANES).map(|place| LaneOfGateway {
                lane: patient_lane(kind),
                gateway,
                node,
                place,
                backend: processors.threads(of_node.machine, 1),
                arrived: VecDeque::new(),
                is_busy: false,
                busy_since: 0,
                busy: 0,
                identified: 0,
            }));
        }
    }
    (gateways, lanes)
}

/// A lane that refuses no unit because of its estimated wait: the simulation shows how long requests wait.
fn patient_lane<P>(kind: LaneKind) -> Lane<P> {
    let mut lane = Lane::new(kind);
    lane.set_queue_wait(Duration::MAX);
    lane
}
