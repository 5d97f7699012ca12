//! The questions that the simulation answers: a cluster with so many nodes and gateways, and so many requests per second.

use super::calibration::Calibration;
use super::costs::{Costs, Work};
use super::world::{Arrivals, Machines, Way, World};

/// Cores of a gateway's machine, and of a node.
pub const GATEWAY_CORES: usize = 8;
pub const NODE_CORES: usize = 16;
/// The time of a message between machines, and of a WAL flush, in microseconds.
pub const NETWORK: f64 = 100.0;
pub const FLUSH: f64 = 500.0;
/// The number of rows.
pub const ROWS: u32 = 1_000_000;
/// Requests in a simulation, before and during the count.
const REQUESTS: f64 = 60_000.0;

/// One question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The number of nodes. One node is a PostgreSQL server, several are a Citus cluster.
    pub nodes: usize,
    /// The number of gateways.
    pub gateways: usize,
    /// The exponent of Zipf's law, or 0.
    pub zipf: f64,
    /// Requests per second.
    pub rate: f64,
    /// Directly or through gateways.
    pub way: Way,
}

/// The world of a question. The constants are those of the first machine. The servers of a cluster have those of the machine
/// with Citus.
pub fn world(calibration: &Calibration, point: Point) -> World {
    let seconds = (REQUESTS / point.rate).clamp(0.1, 1.0);
    World {
        costs: costs(calibration, point.nodes > 1),
        machines: Machines::Own { gateway_cores: GATEWAY_CORES, node_cores: NODE_CORES, network: NETWORK },
        nodes: point.nodes,
        coordinator: point.nodes > 1 && point.way == Way::Direct,
        gateways: point.gateways,
        way: point.way,
        work: Work::Spread,
        rows: ROWS,
        zipf: point.zipf,
        arrivals: Arrivals::Open(point.rate),
        warm_up: seconds,
        seconds,
        seed: 1,
    }
}

fn costs(calibration: &Calibration, is_cluster: bool) -> Costs {
    let (server, citus) = (&calibration.machines[0].costs, &calibration.machines[3].costs);
    let costs = Costs { flush: FLUSH, ..server.clone() };
    if !is_cluster {
        return costs;
    }
    Costs {
        hot_unit: citus.hot_unit,
        spread_unit: citus.spread_unit,
        hot_direct: citus.hot_direct,
        spread_direct: citus.spread_direct,
        coordinator: citus.coordinator,
        ..costs
    }
}
