//! The scenario `sale`: reservations of one item with plenty of stock; it holds no SQL and runs nothing.

use super::SELL_DIRECT;
use crate::scenario::{Clients, Figure, LoadBy, Protocol, Rows, Scenario, Technique, Through, Worth};

/// One item that everybody wants: real reservations a second.
pub static SALE: Scenario = Scenario {
    name: "sale",
    shows: "Reservations of one item, with request id, limit per buyer and a row for each: how many really happen a \
            second, by technique",
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
         each reservation, the stock. Those in SQL are one function call, so one round trip, where an application that \
         sends its statements one by one needs five or more. They send text with its values in it, as pgbench can't \
         make a uuid for a prepared statement.",
        "`nowait` and `try-lock` turn a buyer away when another one holds the lock. Only what was really reserved counts; \
         attempts that were turned away stand in a column of their own, and the latencies are those of all attempts, most \
         of which reserved nothing.",
        "`units` needs its rows before the sale, one for each unit, and can't say how many remain, as the others do.",
        "`redis` flushes its log before it answers (`appendfsync always`), as PostgreSQL does. Its load comes from \
         redis-benchmark, whose latencies are in steps, and it answers nothing but these reservations: orders and payments \
         are not in the same database.",
        "After each run stock, reservations, buyers and requests must agree, no buyer may be over his limit, and there must be \
         as many reservations as were acknowledged.",
    ],
};

const CONDITIONAL_UPDATE: Technique = Technique {
    name: "conditional-update",
    about: "`update ... where remaining >= 1` at the end of a function that does the rest, straight to the server",
    script: include_str!("../../sql/pgbench/reserve_update.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_update.sql"),
    protocol: Protocol::Simple,
    against: "conditional-update",
    ..SELL_DIRECT
};

const NOWAIT: Technique = Technique {
    name: "nowait",
    about: "`select for update nowait`, then the same: whoever doesn't get the lock is turned away",
    script: include_str!("../../sql/pgbench/reserve_nowait.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_nowait.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..CONDITIONAL_UPDATE
};

const TRY_LOCK: Technique = Technique {
    name: "try-lock",
    about: "`pg_try_advisory_xact_lock`, then the same: whoever doesn't get the lock is turned away",
    script: include_str!("../../sql/pgbench/reserve_try_lock.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_try_lock.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..CONDITIONAL_UPDATE
};

const UNITS: Technique = Technique {
    name: "units",
    about: "a row for each of 300,000 units: the first that nobody is taking, by `for update skip locked`",
    prepare: include_str!("../../sql/sale_units.sql"),
    script: include_str!("../../sql/pgbench/reserve_unit.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_unit.sql"),
    ..CONDITIONAL_UPDATE
};

const PACK_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the schema pack's `reserve`, straight to the server",
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
    about: "a Lua script in Redis that flushes each command to the disk before it answers",
    load_by: LoadBy::RedisBenchmark,
    through: Through::Redis,
    ..CONDITIONAL_UPDATE
};
