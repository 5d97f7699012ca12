//! The scenarios `queue-...`: orders that many workers take in the order of arrival; they hold no SQL and run nothing.

use super::SELL_DIRECT;
use crate::scenario::{Clients, Figure, LoadBy, Protocol, Rows, Scenario, Steps, Technique, Worth};

/// One order a call, taken and completed in one.
pub static QUEUE_TAKE: Scenario = Scenario {
    name: "queue-take",
    shows: "Orders taken and completed in one step, one a call: how many a second, by technique and number of workers",
    set_up: include_str!("../../sql/queue/tables.sql"),
    fill: "",
    pack: true,
    takes_long: false,
    before_run: include_str!("../../sql/queue/before_run.sql"),
    tables: &[
        "hotrow_bench.waiting",
        "hotrow_bench.sharded",
        "hotrow_bench.leased",
        "hotrow_bench.processed",
    ],
    reading: include_str!("../../sql/queue/reading.sql"),
    rows: Rows::UsedUp { per_second: 100_000, besides: 0, in_a_hurry: 200_000 },
    clients: Clients::Usually(&[16, 64, 256]),
    figure: Figure::Throughput,
    techniques: &[SKIP_LOCKED, ADVISORY, FOR_UPDATE, SHARDS],
    remarks: &[
        CHECKS,
        FAIR,
        "`advisory` finds an order gone that its snapshot still shows when the worker before has just committed: such a call \
         takes nothing, and is counted as turned away. `shards` keeps the order in each of 64 shards only.",
    ],
};

/// One order a call, taken in one transaction and completed in another.
pub static QUEUE_LEASE: Scenario = Scenario {
    name: "queue-lease",
    shows: "Orders taken under a lease, then completed, one at a time: how many a second, by technique",
    clients: Clients::Usually(&[64]),
    techniques: &[LEASE],
    remarks: &[CHECKS, FAIR],
    ..QUEUE_TAKE
};

/// A hundred orders at a time.
pub static QUEUE_BATCH: Scenario = Scenario {
    name: "queue-batch",
    shows: "Orders taken and completed a hundred at a time: how many a second, by technique",
    rows: Rows::UsedUp { per_second: 200_000, besides: 0, in_a_hurry: 400_000 },
    clients: Clients::Usually(&[64]),
    techniques: &[LEASE_HUNDRED, SKIP_LOCKED_HUNDRED, PGQ],
    remarks: &[
        CHECKS,
        FAIR,
        "`pgq` and `skip-locked-once` complete what they take in the same transaction, the others in a second one, so that a \
         worker may die in between. PgQ keeps no state of an order, and hands its consumer one batch at a time: the workers \
         take turns.",
    ],
    ..QUEUE_TAKE
};

/// One order a call goes in.
pub static QUEUE_ENQUEUE: Scenario = Scenario {
    name: "queue-enqueue",
    shows: "Orders put into a queue, one a call: how many a second, by technique",
    reading: include_str!("../../sql/queue/enqueue_reading.sql"),
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    techniques: &[INSERT, INSERT_PGQ],
    remarks: &[
        "All but `pgq` refuse an order id that is there already. They send text with its values in it, as pgbench can't make a \
         uuid for a prepared statement. After each run there must be as many orders as were acknowledged, none of them twice.",
    ],
    ..QUEUE_TAKE
};

const CHECKS: &str = "After each run every order must be either waiting or processed, none both or neither, none may wait that \
    came before one that is processed, and as many must be processed as were acknowledged. In the warm-up, and always with \
    batches, each worker also sees that what it gets comes after what it got before.";

const FAIR: &str = "All techniques do the same work: an order with a unique id and a small JSON document leaves the queue, and a row \
    with its times and status says that it is processed. Each step is one statement, so one round trip, where an application that \
    sends BEGIN, SELECT, DELETE, INSERT and COMMIT one by one needs five.";

const SKIP_LOCKED: Technique = Technique {
    name: "skip-locked",
    about: "deletes the first order that nobody else has locked (`for update skip locked`)",
    prepare: include_str!("../../sql/queue/fill_waiting.sql"),
    script: include_str!("../../sql/queue/pgbench/take_skip_locked.sql"),
    warm_up: include_str!("../../sql/queue/pgbench/take_skip_locked_checked.sql"),
    against: "skip-locked",
    ..SELL_DIRECT
};

const ADVISORY: Technique = Technique {
    name: "advisory",
    about: "deletes the first order whose id `pg_try_advisory_xact_lock` gives it",
    script: include_str!("../../sql/queue/pgbench/take_advisory.sql"),
    warm_up: include_str!("../../sql/queue/pgbench/take_advisory.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..SKIP_LOCKED
};

const FOR_UPDATE: Technique = Technique {
    name: "for-update",
    about: "deletes the first order, and waits for whoever has it locked (`for update`)",
    script: include_str!("../../sql/queue/pgbench/take_for_update.sql"),
    warm_up: include_str!("../../sql/queue/pgbench/take_for_update_checked.sql"),
    ..SKIP_LOCKED
};

const SHARDS: Technique = Technique {
    name: "shards",
    about: "`skip-locked` in one of 64 shards (`id % 64`, indexed), which each connection has for its own",
    prepare: include_str!("../../sql/queue/fill_sharded.sql"),
    script: include_str!("../../sql/queue/pgbench/take_shard.sql"),
    warm_up: include_str!("../../sql/queue/pgbench/take_shard_checked.sql"),
    ..SKIP_LOCKED
};

const LEASE: Technique = Technique {
    about: "a column says until when an order is leased; the first free one, by `for update skip locked`; deleted when completed",
    prepare: include_str!("../../sql/queue/fill_leased.sql"),
    script: include_str!("../../sql/queue/pgbench/lease.sql"),
    warm_up: include_str!("../../sql/queue/pgbench/lease_checked.sql"),
    ..SKIP_LOCKED
};

const LEASE_HUNDRED: Technique = Technique {
    load_by: LoadBy::Workers(Steps {
        take: include_str!("../../sql/queue/workers_lease.sql"),
        complete: include_str!("../../sql/queue/workers_delete.sql"),
    }),
    ..LEASE
};

const SKIP_LOCKED_HUNDRED: Technique = Technique {
    name: "skip-locked-once",
    about: "deletes the first hundred orders that nobody else has locked, in one step",
    script: include_str!("../../sql/queue/pgbench/take_hundred.sql"),
    warm_up: include_str!("../../sql/queue/pgbench/take_hundred.sql"),
    worth: Worth::Each(100),
    ..SKIP_LOCKED
};

const PGQ: Technique = Technique {
    name: "pgq",
    about: "PgQ's `next_batch`, `get_batch_events` and `finish_batch` in one transaction, with a tick every hundred orders",
    extension: Some("pgq"),
    prepare: include_str!("../../sql/queue/fill_pgq.sql"),
    script: include_str!("../../sql/queue/pgbench/take_pgq.sql"),
    warm_up: include_str!("../../sql/queue/pgbench/take_pgq.sql"),
    worth: Worth::Each(100),
    ..SKIP_LOCKED
};

const INSERT: Technique = Technique {
    name: "insert",
    about: "the plain insert",
    script: include_str!("../../sql/queue/pgbench/insert.sql"),
    warm_up: include_str!("../../sql/queue/pgbench/insert.sql"),
    protocol: Protocol::Simple,
    against: "insert",
    ..SELL_DIRECT
};

const INSERT_PGQ: Technique = Technique {
    name: "pgq",
    about: "PgQ's `insert_event`",
    extension: Some("pgq"),
    prepare: include_str!("../../sql/queue/enqueue_pgq.sql"),
    script: include_str!("../../sql/queue/pgbench/insert_pgq.sql"),
    warm_up: include_str!("../../sql/queue/pgbench/insert_pgq.sql"),
    ..INSERT
};
