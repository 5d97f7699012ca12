//! The scenarios `queue-lease` and `queue-batch` with queues of other projects.

use crate::loads::{Kind, Peer};
use hotrow_bench::scenario::{Scenario, Technique, Through};
use hotrow_bench::scenarios::queue::{
    self, CHECKS, FAIR, FILL_HOTROW, HUNDRED_DIRECT, HUNDRED_HOTROW, LEASE, LEASE_DIRECT, LEASE_HOTROW,
    LEASE_HUNDRED, ONE_TRANSACTION, PGQ, SKIP_LOCKED, SKIP_LOCKED_HOTROW, SKIP_LOCKED_HUNDRED,
};
use hotrow_core::page;

/// One order per call, by the statements that applications send today, also through PgBouncer.
pub static QUEUE_HEAD: Scenario = Scenario {
    shows: "Orders taken by the statements that applications send today, directly, through PgBouncer and through Hotrow: orders \
            per second",
    techniques: &[
        SKIP_LOCKED,
        pooled("skip-locked-pgbouncer", Through::PgBouncer, SKIP_LOCKED),
        pooled("skip-locked-pgbouncer-4", Through::SmallPgBouncer, SKIP_LOCKED),
        SKIP_LOCKED_HOTROW,
        LEASE_AT_ONCE,
        pooled("lease-pgbouncer", Through::PgBouncer, LEASE_AT_ONCE),
        pooled("lease-pgbouncer-4", Through::SmallPgBouncer, LEASE_AT_ONCE),
        Technique { name: "lease-hotrow", through: Through::Hotrow, ..LEASE_AT_ONCE },
    ],
    ..queue::QUEUE_HEAD
};

const LEASE_AT_ONCE: Technique = Technique { name: "lease", against: "lease", ..LEASE };

/// The same requests through PgBouncer.
const fn pooled(name: &'static str, through: Through, technique: Technique) -> Technique {
    Technique { name, through, load_by: Kind::Pgbench.load(), ..technique }
}

/// One order per call, taken in one transaction and completed in another.
pub static QUEUE_LEASE: Scenario = Scenario {
    techniques: &[LEASE, LEASE_DIRECT, LEASE_HOTROW, HOTROW_NODE, RIVER, GRAPHILE_WORKER, PG_BOSS],
    remarks: &[CHECKS, FAIR, SETTINGS],
    ..queue::QUEUE_LEASE
};

/// A hundred orders per call.
pub static QUEUE_BATCH: Scenario = Scenario {
    techniques: &[
        LEASE_HUNDRED,
        HUNDRED_DIRECT,
        HUNDRED_HOTROW,
        SKIP_LOCKED_HUNDRED,
        PGQ,
        HOTROW_NODE_BATCHED,
        RIVER,
        GRAPHILE_WORKER_BATCHED,
        PG_BOSS_BATCHED,
    ],
    remarks: &[CHECKS, FAIR, SETTINGS, ONE_TRANSACTION],
    ..queue::QUEUE_BATCH
};

const SETTINGS: &str = concat!(
    "River, graphile-worker and pg-boss run if `--peers` names their programs (",
    page!("queues.md"),
    "), each in one \
    process with all workers. Before a run, the number of orders for its length is enqueued, estimated from the warm-up. The time \
    counts from the start of the workers until the last order is recorded as completed, without latencies. Their tables do not \
    require unique order ids. graphile-worker deletes completed orders and keeps no record. A Node.js program uses one core: \
    `hotrow-node` is Hotrow from such a program."
);

const NODE: Technique = Technique { load_by: Kind::Peer(Peer::Node).load(), prepare: "", ..SKIP_LOCKED };

const RIVER: Technique = Technique {
    name: "river",
    about: "River (Go): its client fetches up to one job per free worker every millisecond, and completes jobs in batches",
    load_by: Kind::Peer(Peer::Go).load(),
    ..NODE
};

const GRAPHILE_WORKER: Technique = Technique {
    name: "graphile-worker",
    about: "graphile-worker (Node.js): its runner, which takes and completes one job at a time",
    ..NODE
};

const GRAPHILE_WORKER_BATCHED: Technique = Technique {
    name: "graphile-worker-batched",
    about: "graphile-worker (Node.js): its runner with a `localQueue` of 500 jobs, which completes jobs in batches",
    ..NODE
};

const PG_BOSS: Technique = Technique {
    name: "pg-boss",
    about: "pg-boss (Node.js): its `fetch` and `complete`, one job at a time",
    ..NODE
};

const PG_BOSS_BATCHED: Technique = Technique {
    name: "pg-boss-batched",
    about: "pg-boss (Node.js): its `fetch` and `complete`, a hundred jobs at a time",
    ..NODE
};

const HOTROW_NODE: Technique = Technique {
    name: "hotrow-node",
    about: "the hotrow schema's `take` and `complete`, through Hotrow, by a program of Node.js",
    prepare: FILL_HOTROW,
    through: Through::Hotrow,
    ..NODE
};

const HOTROW_NODE_BATCHED: Technique = Technique {
    name: "hotrow-node-batched",
    about: "the hotrow schema's `take` and `complete_all`, through Hotrow, by a program of Node.js",
    ..HOTROW_NODE
};
