//! The scenarios `queue-...`: orders that many workers take in the order of arrival. Their SQL is in `sql/`.

use super::{SELL_DIRECT, USUAL};
use crate::scenario::{
    Ageing, Beside, Clients, LoadBy, Protocol, Rows, Scenario, Script, SecondLoad, Steps, Technique, Through,
    Worth,
};

/// One order per call, taken and completed in one step.
pub static QUEUE_TAKE: Scenario = Scenario {
    name: "queue-take",
    shows: "Orders taken and completed in one step, one per call: orders per second, by technique and number of workers",
    set_up: sql!("queue/tables.sql"),
    pack: true,
    before_run: sql!("queue/before_run.sql"),
    tables: &[
        "hotrow_bench.waiting",
        "hotrow_bench.sharded",
        "hotrow_bench.leased",
        "hotrow_bench.processed",
        "hotrow.queue_order",
        "hotrow.processed_order",
        "hotrow.queue_lease",
        "hotrow.queue_head",
        "hotrow.queue_tail",
    ],
    reading: sql!("queue/reading.sql"),
    rows: Rows::UsedUp { per_second: 100_000, besides: 0, if_quick: 8_000 },
    clients: Clients::Usually(&[16, 64, 256]),
    techniques: &[SKIP_LOCKED, ADVISORY, FOR_UPDATE, SHARDS, PACK_DIRECT, HOTROW],
    remarks: &[
        CHECKS,
        FAIR,
        "With `advisory`, a snapshot can still show an order that another worker has just taken. Such a call takes nothing \
         and counts as rejected. `shards` keeps the order within each of 64 shards only.",
    ],
    ..USUAL
};

/// One order per call, by the statements that applications send today.
pub static QUEUE_HEAD: Scenario = Scenario {
    name: "queue-head",
    shows: "Orders taken by the statements that applications send today, directly and through Hotrow: orders per second",
    rows: Rows::UsedUp { per_second: 300_000, besides: 0, if_quick: 8_000 },
    clients: Clients::Usually(&[64, 256]),
    techniques: &[
        SKIP_LOCKED,
        SKIP_LOCKED_HOTROW,
        ADVISORY_ALONE,
        ADVISORY_HOTROW,
        Technique { name: "lease", against: "lease", ..LEASE },
        Technique { name: "lease-hotrow", through: Through::Hotrow, against: "lease", ..LEASE },
    ],
    remarks: &[
        CHECKS,
        "The statements are the same on both sides. `lease` takes an order by UPDATE ... FROM a query in WITH, as River, pg-boss \
         and graphile-worker do, and completes it in a second statement.",
    ],
    ..QUEUE_TAKE
};

/// The same while the table of waiting orders has few dead index entries.
pub static QUEUE_HEAD_VACUUMED: Scenario = Scenario {
    name: "queue-head-vacuumed",
    shows: "Orders taken by such statements from a table that is vacuumed twice a second: orders per second",
    techniques: &[
        vacuumed(SKIP_LOCKED),
        vacuumed(SKIP_LOCKED_HOTROW),
        vacuumed(ADVISORY_ALONE),
        vacuumed(ADVISORY_HOTROW),
    ],
    remarks: &[
        CHECKS,
        "A client beside the workers runs VACUUM. Without it, each statement reads the index entries of all orders that were taken \
         since the last VACUUM.",
    ],
    ..QUEUE_HEAD
};

/// The usual way through Hotrow.
pub const SKIP_LOCKED_HOTROW: Technique =
    Technique { name: "skip-locked-hotrow", through: Through::Hotrow, ..SKIP_LOCKED };
const ADVISORY_ALONE: Technique = Technique { against: "advisory", ..ADVISORY };
const ADVISORY_HOTROW: Technique =
    Technique { name: "advisory-hotrow", through: Through::Hotrow, ..ADVISORY_ALONE };

const fn vacuumed(technique: Technique) -> Technique {
    let does = Beside::Nothing(sql!("queue/pgbench/vacuum.sql"));
    Technique { beside: Some(SecondLoad { clients: 1, does }), ..technique }
}

/// One order per call, taken in one transaction and completed in another.
pub static QUEUE_LEASE: Scenario = Scenario {
    name: "queue-lease",
    shows: "Orders taken under a lease, then completed, one at a time: orders per second, by technique",
    clients: Clients::Usually(&[64]),
    techniques: &[LEASE, LEASE_DIRECT, LEASE_HOTROW],
    remarks: &[CHECKS, FAIR],
    ..QUEUE_TAKE
};

/// A hundred orders per call.
pub static QUEUE_BATCH: Scenario = Scenario {
    name: "queue-batch",
    shows: "Orders taken and completed a hundred at a time: orders per second, by technique",
    rows: Rows::UsedUp { per_second: 200_000, besides: 0, if_quick: 150_000 },
    clients: Clients::Usually(&[64]),
    techniques: &[LEASE_HUNDRED, HUNDRED_DIRECT, HUNDRED_HOTROW, SKIP_LOCKED_HUNDRED, PGQ],
    remarks: &[CHECKS, FAIR, ONE_TRANSACTION],
    ..QUEUE_TAKE
};

/// One order per call is enqueued.
pub static QUEUE_ENQUEUE: Scenario = Scenario {
    name: "queue-enqueue",
    shows: "Orders enqueued, one per call: orders per second, by technique",
    reading: sql!("queue/enqueue_reading.sql"),
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    techniques: &[INSERT, INSERT_LEAN, INSERT_PGQ, ENQUEUE_DIRECT, ENQUEUE_HOTROW],
    remarks: &[
        "All techniques except `pgq` reject an order id that exists already. They send text with values, because pgbench cannot \
         make a uuid for a prepared statement. After each run, the number of orders must be the number of acknowledged ones, \
         without duplicates.",
    ],
    ..QUEUE_TAKE
};

/// With an old snapshot, after a million orders were processed, and with a million orders waiting.
pub static QUEUE_HELD: Scenario = Scenario {
    name: "queue-held",
    shows: "Orders taken while a snapshot is two minutes old: a million orders done in this time, a million left",
    takes_long: true,
    reading: sql!("queue/held_reading.sql"),
    rows: Rows::UsedUp { per_second: 80_000, besides: 2_000_000, if_quick: 20_000 },
    clients: Clients::Usually(&[64]),
    techniques: &[
        WAITING,
        held("skip-locked-held", WAITING, WAITING.script),
        TAKEN,
        held("hotrow-held", TAKEN, TAKEN.script),
        LEASED,
        held("hotrow-lease-held", LEASED, LEASED.script),
        ENQUEUED,
        held("hotrow-enqueue-held", ENQUEUED, TAKEN.script),
    ],
    remarks: &[CHECKS, FAIR, HELD],
    ..QUEUE_TAKE
};

/// A hundred orders per call with such a snapshot.
pub static QUEUE_BATCH_HELD: Scenario = Scenario {
    name: "queue-batch-held",
    shows: "A hundred orders at a time while a snapshot is two minutes old: a million done in this time, a million left",
    rows: Rows::UsedUp { per_second: 200_000, besides: 2_000_000, if_quick: 150_000 },
    techniques: &[HUNDRED_TAKEN, held("hotrow-held", HUNDRED_TAKEN, TAKEN.script)],
    remarks: &[CHECKS, FAIR, HELD],
    ..QUEUE_HELD
};

const HELD: &str = "In the two minutes, up to 8,333 orders per second are taken, one at a time. The snapshot is released after the \
    measurement.";

/// The same technique after a snapshot was held for two minutes, while the warm-up of a script ran.
const fn held(name: &'static str, technique: Technique, meanwhile: Script) -> Technique {
    Technique {
        name,
        about: "the same while a snapshot is two minutes old",
        ageing: Some(Ageing { seconds: 120, rate: 8_333, script: meanwhile.warm_up }),
        ..technique
    }
}

// Baselines of the techniques with a held snapshot.
const WAITING: Technique = Technique { prepare: FILL_WAITING_ALL, ..SKIP_LOCKED };
const TAKEN: Technique = Technique { against: "hotrow", ..HOTROW };
const LEASED: Technique = Technique { name: "hotrow-lease", against: "hotrow-lease", ..LEASE_HOTROW };
const ENQUEUED: Technique =
    Technique { name: "hotrow-enqueue", prepare: FILL_HOTROW, against: "hotrow-enqueue", ..ENQUEUE_HOTROW };
const HUNDRED_TAKEN: Technique = Technique { against: "hotrow", ..HUNDRED_HOTROW };

/// What the faster techniques omit.
pub const ONE_TRANSACTION: &str = "`pgq` and `skip-locked-once` complete orders in the transaction that takes them. The others use a second transaction, \
    and a worker can fail between the two. PgQ (Debian's postgresql-15-pgq3) has no state per order and gives its \
    consumer one batch at a time: the workers take turns.";

/// What is checked after each run.
pub const CHECKS: &str = "After each run, every order must be either waiting or processed, no waiting order may be older than a processed \
    one, and the number of processed orders must be the number of acknowledged ones. In the warm-up, and always with batches, \
    each worker also checks that its orders arrive in order.";

/// What all techniques do.
pub const FAIR: &str = "All techniques do the same work: an order with a unique id and a small JSON document leaves the queue, and a row \
    with its times and status records it as processed. Each step is one statement in one round trip. An application that sends \
    BEGIN, SELECT, DELETE, INSERT and COMMIT one by one needs five.";

/// The usual way.
pub const SKIP_LOCKED: Technique = Technique {
    name: "skip-locked",
    about: "deletes the first order without a lock (`for update skip locked`)",
    prepare: sql!("queue/fill_waiting.sql"),
    script: script!("queue/pgbench/take_skip_locked.sql", answer checked by "queue/pgbench/in_order.sql"),
    against: "skip-locked",
    ..SELL_DIRECT
};

const ADVISORY: Technique = Technique {
    name: "advisory",
    about: "deletes the first order whose id it can lock with `pg_try_advisory_xact_lock`",
    script: script!("queue/pgbench/take_advisory.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..SKIP_LOCKED
};

const FOR_UPDATE: Technique = Technique {
    name: "for-update",
    about: "deletes the first order, and waits for its lock (`for update`)",
    script: script!("queue/pgbench/take_for_update.sql", answer checked by "queue/pgbench/in_order.sql"),
    ..SKIP_LOCKED
};

const SHARDS: Technique = Technique {
    name: "shards",
    about: "`skip-locked` in one of 64 shards (`id % 64`, indexed), one per connection",
    prepare: sql!("queue/fill_sharded.sql"),
    script: script!("queue/pgbench/take_shard.sql", answer checked by "queue/pgbench/in_order.sql"),
    ..SKIP_LOCKED
};

const PACK_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the hotrow schema's `take` without a lease, directly to the server",
    prepare: FILL_HOTROW,
    script: script!("queue/pgbench/take.sql", answer checked by "queue/pgbench/in_order.sql"),
    ..SKIP_LOCKED
};

const HOTROW: Technique =
    PACK_DIRECT.through_hotrow("the hotrow schema's `take` without a lease, through Hotrow");

/// The usual way with a lease.
pub const LEASE: Technique = Technique {
    about: "a column has the end of the lease; takes the first free order by `for update skip locked`; deletes it when completed",
    prepare: sql!("queue/fill_leased.sql"),
    script: script!("queue/pgbench/lease.sql", checked by "queue/pgbench/in_order.sql"),
    ..SKIP_LOCKED
};

/// The hotrow schema's functions.
pub const LEASE_DIRECT: Technique = Technique {
    about: "the hotrow schema's `take` and `complete`, directly to the server",
    script: script!("queue/pgbench/take_complete.sql", checked by "queue/pgbench/in_order.sql"),
    ..PACK_DIRECT
};

/// The same from clients of Hotrow.
pub const LEASE_HOTROW: Technique =
    LEASE_DIRECT.through_hotrow("the hotrow schema's `take` and `complete`, through Hotrow");

/// The same with a hundred orders per call.
pub const HUNDRED_DIRECT: Technique = Technique {
    about: "the hotrow schema's `take` and `complete_all`, directly to the server",
    load_by: LoadBy::Workers(Steps {
        take: sql!("queue/workers_take.sql"),
        complete: sql!("queue/workers_complete_all.sql"),
    }),
    ..PACK_DIRECT
};

/// The same from clients of Hotrow.
pub const HUNDRED_HOTROW: Technique =
    HUNDRED_DIRECT.through_hotrow("the hotrow schema's `take` and `complete_all`, through Hotrow");

/// The usual way with a hundred orders per call.
pub const LEASE_HUNDRED: Technique = Technique {
    prepare: sql!("queue/fill_leased_all.sql"),
    load_by: LoadBy::Workers(Steps {
        take: sql!("queue/workers_lease.sql"),
        complete: sql!("queue/workers_delete.sql"),
    }),
    ..LEASE
};

/// The same in one step.
pub const SKIP_LOCKED_HUNDRED: Technique = Technique {
    name: "skip-locked-once",
    prepare: FILL_WAITING_ALL,
    about: "deletes the first hundred orders without a lock, in one step",
    script: script!("queue/pgbench/take_hundred.sql"),
    worth: Worth::Each(100),
    ..SKIP_LOCKED
};

/// Fills the hotrow schema's queue.
pub const FILL_HOTROW: &str = sql!("queue/fill_hotrow.sql");

const FILL_WAITING_ALL: &str = sql!("queue/fill_waiting_all.sql");

/// PgQ, an extension of the server.
pub const PGQ: Technique = Technique {
    name: "pgq",
    about: "PgQ's `next_batch`, `get_batch_events` and `finish_batch` in one transaction, with a tick every hundred orders",
    extension: Some("pgq"),
    prepare: sql!("queue/fill_pgq.sql"),
    script: script!("queue/pgbench/take_pgq.sql"),
    worth: Worth::Each(100),
    ..SKIP_LOCKED
};

const INSERT: Technique = Technique {
    name: "insert",
    about: "a plain insert into a table with the columns and indexes of Hotrow's",
    script: script!("pgbench/id.sql" "queue/pgbench/insert_same.sql"),
    protocol: Protocol::Simple,
    against: "insert",
    ..SELL_DIRECT
};

const INSERT_LEAN: Technique = Technique {
    name: "insert-lean",
    about: "a plain insert into the table of the other techniques: four columns, two indexes",
    script: script!("pgbench/id.sql" "queue/pgbench/insert.sql"),
    ..INSERT
};

const ENQUEUE_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the hotrow schema's `enqueue`, directly to the server",
    prepare: sql!("queue/create_queue.sql"),
    script: script!("pgbench/id.sql" "queue/pgbench/enqueue.sql"),
    ..INSERT
};

const ENQUEUE_HOTROW: Technique =
    ENQUEUE_DIRECT.through_hotrow("the hotrow schema's `enqueue`, through Hotrow");

const INSERT_PGQ: Technique = Technique {
    name: "pgq",
    about: "PgQ's `insert_event`",
    extension: Some("pgq"),
    prepare: sql!("queue/enqueue_pgq.sql"),
    script: script!("pgbench/id.sql" "queue/pgbench/insert_pgq.sql"),
    ..INSERT
};
