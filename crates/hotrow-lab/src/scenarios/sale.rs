//! The scenarios `sale` and `sold-out` with Redis and PgBouncer.

use super::through_pgbouncer;
use crate::loads::Kind;
use hotrow_bench::scenario::{Scenario, Technique, Through};
use hotrow_bench::scenarios::SELECT_ONE;
use hotrow_bench::scenarios::sale::{
    self, BOOKS, CONDITIONAL_UPDATE, HOTROW, NOWAIT, PACK_DIRECT, REJECTED, SAME_WORK, SOLD_OUT_DIRECT,
    SOLD_OUT_HOTROW, TRY_LOCK, UNITS, UNITS_FIRST,
};

/// One item that all buyers want: successful reservations per second.
pub static SALE: Scenario = Scenario {
    techniques: &[CONDITIONAL_UPDATE, NOWAIT, TRY_LOCK, UNITS, PACK_DIRECT, HOTROW, REDIS],
    remarks: &[
        SAME_WORK,
        REJECTED,
        UNITS_FIRST,
        "`redis` flushes its log before it answers (`appendfsync always`), as PostgreSQL does. Its load comes from \
         redis-benchmark, whose latencies are in steps. It holds reservations only: orders and payments are in another \
         database.",
        BOOKS,
    ],
    ..sale::SALE
};

/// Requests after the last unit: the cost of a refusal.
pub static SOLD_OUT: Scenario = Scenario {
    techniques: &[
        Technique {
            name: BASELINE,
            against: BASELINE,
            ..through_pgbouncer(SELECT_ONE, "`select 1`, through PgBouncer with transaction pooling")
        },
        Technique { against: BASELINE, ..SELECT_ONE },
        Technique { against: BASELINE, ..SOLD_OUT_DIRECT },
        Technique { against: BASELINE, ..SOLD_OUT_HOTROW },
    ],
    ..sale::SOLD_OUT
};

const BASELINE: &str = "select-1-pgbouncer";

const REDIS: Technique = Technique {
    name: "redis",
    about: "a Lua script in Redis, which flushes each command to the disk before its answer",
    load_by: Kind::Redis.load(),
    through: Through::Redis,
    ..CONDITIONAL_UPDATE
};
