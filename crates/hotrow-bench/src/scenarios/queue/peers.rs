//! Queues that others wrote, beside Hotrow's: techniques of the scenarios `queue-lease` and `queue-batch`.

use super::{FILL_HOTROW, SKIP_LOCKED};
use crate::scenario::{LoadBy, Peer, Technique, Through};

pub(super) const SETTINGS: &str = "River, graphile-worker and pg-boss are run if `--peers` names their programs (docs/queues.md), each in \
    one process with all workers. First the orders are put in, as many as a run of this length takes after what the warm-up did; \
    the time counts from the workers' start until the last order is recorded as completed, and no latency is taken. They have \
    tables of their own, where an order id is not unique; graphile-worker deletes what is completed and keeps no record. A program of \
    Node.js has one core: `hotrow-node` is Hotrow from such a one.";

const NODE: Technique = Technique { load_by: LoadBy::Peer(Peer::Node), prepare: "", ..SKIP_LOCKED };

pub(super) const RIVER: Technique = Technique {
    name: "river",
    about: "River (Go): its client fetches up to a job for each free worker every millisecond, and completes many at once",
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
    about: "graphile-worker (Node.js): its runner with a `localQueue` of 500 jobs, completing many at once",
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
