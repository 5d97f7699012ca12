//! Queues of other projects: techniques of the scenarios `queue-lease` and `queue-batch`.

use super::{FILL_HOTROW, SKIP_LOCKED};
use crate::scenario::{LoadBy, Peer, Technique, Through};

pub(super) const SETTINGS: &str = "River, graphile-worker and pg-boss run if `--peers` names their programs (docs/queues.md), each in one \
    process with all workers. Before a run, the number of orders for its length is enqueued, estimated from the warm-up. The time \
    counts from the start of the workers until the last order is recorded as completed, without latencies. Their tables do not \
    require unique order ids. graphile-worker deletes completed orders and keeps no record. A Node.js program uses one core: \
    `hotrow-node` is Hotrow from such a program.";

const NODE: Technique = Technique { load_by: LoadBy::Peer(Peer::Node), prepare: "", ..SKIP_LOCKED };

pub(super) const RIVER: Technique = Technique {
    name: "river",
    about: "River (Go): its client fetches up to one job per free worker every millisecond, and completes jobs in batches",
    load_by: LoadBy::Peer(Peer::Go),
    ..NODE
};

pub(super) const GRAPHILE_WORKER: Technique = Technique {
    name: "graphile-worker",
    about: "graphile-worker (Node.js): its runner, which takes and completes one job at a time",
    ..NODE
};

pub(super) const GRAPHILE_WORKER_BATCHED: Technique = Technique {
    name: "graphile-worker-batched",
    about: "graphile-worker (Node.js): its runner with a `localQueue` of 500 jobs, which completes jobs in batches",
    ..NODE
};

pub(super) const PG_BOSS: Technique = Technique {
    name: "pg-boss",
    about: "pg-boss (Node.js): its `fetch` and `complete`, one job at a time",
    ..NODE
};

pub(super) const PG_BOSS_BATCHED: Technique = Technique {
    name: "pg-boss-batched",
    about: "pg-boss (Node.js): its `fetch` and `complete`, a hundred jobs at a time",
    ..NODE
};

pub(super) const HOTROW_NODE: Technique = Technique {
    name: "hotrow-node",
    about: "the schema pack's `take` and `complete`, through Hotrow, by a program of Node.js",
    prepare: FILL_HOTROW,
    through: Through::Hotrow,
    ..NODE
};

pub(super) const HOTROW_NODE_BATCHED: Technique = Technique {
    name: "hotrow-node-batched",
    about: "the schema pack's `take` and `complete_all`, through Hotrow, by a program of Node.js",
    ..HOTROW_NODE
};
