//! What is simulated: machines and programs, who sends requests, and what was observed.

use super::costs::{Costs, Work};
use serde::Serialize;

/// The way of requests to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the server, or to the coordinator of a cluster.
    Direct,
    /// Through gateways. In a cluster, their lanes connect to the node that has the row.
    Gateways,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// By this number of clients, each after its last answer.
    Closed(usize),
    /// At random times, this number per second on average.
    Open(f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Machines {
    /// One machine with two cores for the load generator, one gateway and all servers, as in the measured runs.
    Shared,
    /// One for each gateway and each node. Clients cost nothing.
    Own {
        /// The cores of a gateway's machine. The gateway has as many threads.
        gateway_cores: usize,
        node_cores: usize,
        /// The time of a message from machine to machine, in microseconds.
        network: f64,
    },
}

/// A simulation to be made.
#[derive(Debug, Clone)]
pub struct World {
    /// The machine's constants.
    pub costs: Costs,
    pub machines: Machines,
    /// Number of servers with rows. If there are several, there is a coordinator too.
    pub nodes: usize,
    /// Whether requests that go directly to the server pass a coordinator.
    pub coordinator: bool,
    /// Number of gateways.
    pub gateways: usize,
    /// The way of the requests.
    pub way: Way,
    /// What they do.
    pub work: Work,
    /// Number of rows.
    pub rows: u32,
    /// The exponent of Zipf's law, or 0 for rows that are evenly used.
    pub zipf: f64,
    /// When they are sent.
    pub arrivals: Arrivals,
    /// Seconds of the simulation before the count begins.
    pub warm_up: f64,
    /// Seconds of the count.
    pub seconds: f64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// What a simulation has shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observed {
    /// Answered requests per second.
    pub per_second: f64,
    /// Requests that the gateway refused, per second.
    pub refused_per_second: f64,
    /// Median of the time from a request to its answer, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of that time.
    pub p99_ms: f64,
    /// Units in a batch, on average.
    pub batch: f64,
    /// The part of the time in which the busiest one of each kind of resource was busy.
    pub busy: Vec<(Resource, f64)>,
}

/// Something that can be busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Resource {
    /// The cores of a gateway's machine.
    Gateway,
    /// The cores of a node.
    Node,
    /// The cores of the coordinator.
    Coordinator,
    /// The WAL of a node.
    Log,
    /// The connection of a lane: its batch runs, waits for a lock or is committed.
    Lane,
    /// A row that transactions have locked.
    Row,
}

impl Resource {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gateway => "a gateway's cores",
            Self::Node => "a node's cores",
            Self::Coordinator => "the coordinator's cores",
            Self::Log => "a node's WAL",
            Self::Lane => "a lane",
            Self::Row => "a row",
        }
    }
}
