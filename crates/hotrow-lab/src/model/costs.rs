//! The constants of a machine, and the work that is simulated on it. They come from `machines.json`.

use serde::{Deserialize, Serialize};

/// Times in microseconds: CPU time, unless the field says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// The load generator's work for one request and its answer.
    pub client: f64,
    /// The gateway reads a request, finds its lane, and sends the answer.
    pub gateway_unit: f64,
    /// The gateway writes a batch and reads its answers.
    pub gateway_batch: f64,
    /// A message to another process of the same machine: a time, without CPU time.
    pub hop: f64,
    /// A WAL flush of the server: a time.
    pub flush: f64,
    /// A session that waits for the WAL is woken, and begins the next flush.
    pub wake: f64,
    /// A transaction gets a row's lock from the one before it.
    pub hand_over: f64,
    /// The same, for each further transaction that waits for the row.
    pub hand_over_each: f64,
    /// The server's work for a batch, with its commit.
    pub batch: f64,
    /// An update of a hot row in a batch.
    pub hot_unit: f64,
    /// An update of any of many rows in a batch.
    pub spread_unit: f64,
    /// A read by key in a batch.
    pub read_unit: f64,
    /// An update that a client sends by itself, with its commit.
    pub hot_direct: f64,
    /// The same of any of many rows.
    pub spread_direct: f64,
    /// A read by key that a client sends by itself.
    pub read_direct: f64,
    /// The coordinator of a cluster plans a statement and sends it to a node.
    pub coordinator: f64,
}

/// What requests do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// They update one row, or few.
    Hot,
    /// They update one of many rows.
    Spread,
    /// They read one of many rows.
    Read,
}

impl Costs {
    /// The names of the constants, for the search of their values.
    pub const NAMES: [&str; 16] = [
        "client",
        "gateway_unit",
        "gateway_batch",
        "hop",
        "flush",
        "wake",
        "hand_over",
        "hand_over_each",
        "batch",
        "hot_unit",
        "spread_unit",
        "read_unit",
        "hot_direct",
        "spread_direct",
        "read_direct",
        "coordinator",
    ];

    /// The constant with this place in [`NAMES`](Self::NAMES).
    pub fn at(&mut self, place: usize) -> &mut f64 {
        match place {
            0 => &mut self.client,
            1 => &mut self.gateway_unit,
            2 => &mut self.gateway_batch,
            3 => &mut self.hop,
            4 => &mut self.flush,
            5 => &mut self.wake,
            6 => &mut self.hand_over,
            7 => &mut self.hand_over_each,
            8 => &mut self.batch,
            9 => &mut self.hot_unit,
            10 => &mut self.spread_unit,
            11 => &mut self.read_unit,
            12 => &mut self.hot_direct,
            13 => &mut self.spread_direct,
            14 => &mut self.read_direct,
            _ => &mut self.coordinator,
        }
    }

    /// A unit in a batch.
    pub fn unit(&self, work: Work) -> f64 {
        match work {
            Work::Hot => self.hot_unit,
            Work::Spread => self.spread_unit,
            Work::Read => self.read_unit,
        }
    }

    /// A statement of a client.
    pub fn direct(&self, work: Work) -> f64 {
        match work {
            Work::Hot => self.hot_direct,
            Work::Spread => self.spread_direct,
            Work::Read => self.read_direct,
        }
    }
}
