//! The scenario `sale`: reservations of one item with plenty of stock. Its SQL is in `sql/`.

use super::SELL_DIRECT;
use crate::scenario::{Clients, Figure, LoadBy, Protocol, Rows, Scenario, Technique, Through, Worth};

/// One item that all buyers want: successful reservations per second.
pub static SALE: Scenario = Scenario {
    name: "sale",
    shows: "Reservations of one item, with request id, limit per buyer and a row each: successful ones per second, by technique",
    set_up: include_str!("../../sql/sale.sql"),
    fill: "",
    pack: true,
    takes_long: false,
    before_run: include_str!("../../sql/sale_before_run.sql"),
    tables: &["hotrow_bench.item", "hotrow.sale"],
    reading: include_str!("../../sql/sale_reading.sql"),
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    figure: Figure::Throughput,
    techniques: &[CONDITIONAL_UPDATE, NOWAIT, TRY_LOCK, UNITS, PACK_DIRECT, HOTROW, REDIS],
    remarks: &[
        "All techniques do the same work: a request id that counts once, a limit for each of 100,000 buyers, a record of \
         each reservation, and the stock. The techniques in SQL are one function call in one round trip. An application that \
         sends its statements one by one needs five or more round trips. The statements are text with values, because \
         pgbench cannot make a uuid for a prepared statement.",
        "`nowait` and `try-lock` reject a buyer if another one holds the lock. Only successful reservations count. Rejected \
         attempts have their own column. The latencies are those of all attempts, most of which reserved nothing.",
        "`units` needs one row per unit before the sale, and does not return the remaining stock as the others do.",
        "`redis` flushes its log before it answers (`appendfsync always`), as PostgreSQL does. Its load comes from \
         redis-benchmark, whose latencies are in steps. It holds reservations only: orders and payments are in another \
         database.",
        "After each run, stock, reservations, buyers and requests must agree, no buyer may exceed the limit, and the number of \
         reservations must be the number of acknowledged ones.",
    ],
};

const CONDITIONAL_UPDATE: Technique = Technique {
    name: "conditional-update",
    about: "`update ... where remaining >= 1` at the end of a function that does the other steps, directly to the server",
    script: include_str!("../../sql/pgbench/reserve_update.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_update.sql"),
    protocol: Protocol::Simple,
    against: "conditional-update",
    ..SELL_DIRECT
};

const NOWAIT: Technique = Technique {
    name: "nowait",
    about: "`select for update nowait`, then the same: a client that does not get the lock is rejected",
    script: include_str!("../../sql/pgbench/reserve_nowait.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_nowait.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..CONDITIONAL_UPDATE
};

const TRY_LOCK: Technique = Technique {
    name: "try-lock",
    about: "`pg_try_advisory_xact_lock`, then the same: a client that does not get the lock is rejected",
    script: include_str!("../../sql/pgbench/reserve_try_lock.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_try_lock.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..CONDITIONAL_UPDATE
};

const UNITS: Technique = Technique {
    name: "units",
    about: "a row for each of 300,000 units: the first one without a lock, by `for update skip locked`",
    prepare: include_str!("../../sql/sale_units.sql"),
    script: include_str!("../../sql/pgbench/reserve_unit.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_unit.sql"),
    ..CONDITIONAL_UPDATE
};

const PACK_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the schema pack's `reserve`, directly to the server",
    script: include_str!("../../sql/pgbench/reserve.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve.sql"),
    ..CONDITIONAL_UPDATE
};

const HOTROW: Technique = Technique {
    name: "hotrow",
    about: "the schema pack's `reserve`, through Hotrow",
    through: Through::Hotrow,
    ..PACK_DIRECT
};

const REDIS: Technique = Technique {
    name: "redis",
    about: "a Lua script in Redis, which flushes each command to the disk before its answer",
    load_by: LoadBy::RedisBenchmark,
    through: Through::Redis,
    ..CONDITIONAL_UPDATE
};
