//! The scenarios `sale` and `sold-out`: reservations of one item with plenty of stock, or with none. Their SQL is in `sql/`.

use super::{SELECT_ONE, SELL_DIRECT, USUAL};
use crate::scenario::{Protocol, Scenario, Technique, Worth};

/// One item that all buyers want: successful reservations per second.
pub static SALE: Scenario = Scenario {
    name: "sale",
    shows: "Reservations of one item, with request id, limit per buyer and a row each: successful ones per second, by technique",
    set_up: sql!("sale.sql"),
    pack: true,
    before_run: sql!("sale_before_run.sql"),
    tables: &["hotrow_bench.item", "hotrow.sale"],
    reading: sql!("sale_reading.sql"),
    techniques: &[CONDITIONAL_UPDATE, NOWAIT, TRY_LOCK, UNITS, PACK_DIRECT, HOTROW],
    remarks: &[SAME_WORK, REJECTED, UNITS_FIRST, BOOKS],
    ..USUAL
};

/// Requests after the last unit: the cost of a refusal.
pub static SOLD_OUT: Scenario = Scenario {
    name: "sold-out",
    shows: "Reservations of a sold-out item: answers per second, compared with the cheapest request",
    set_up: sql!("sold_out.sql"),
    pack: true,
    before_run: sql!("sold_out_before_run.sql"),
    tables: &["hotrow.sale"],
    reading: sql!("sold_out_reading.sql"),
    techniques: &[Technique { against: "select-1", ..SELECT_ONE }, SOLD_OUT_DIRECT, SOLD_OUT_HOTROW],
    remarks: &[
        "The reservations have no request id, because a refusal with a request id is recorded for a retry. The warm-up \
                of each run checks every answer.",
    ],
    ..USUAL
};

/// What all techniques do.
pub const SAME_WORK: &str = "All techniques do the same work: a request id that counts once, a limit for each of 100,000 buyers, a record of \
    each reservation, and the stock. The techniques in SQL are one function call in one round trip. An application that \
    sends its statements one by one needs five or more round trips. The statements are text with values, because \
    pgbench cannot make a uuid for a prepared statement.";

/// What their rejections mean.
pub const REJECTED: &str = "`nowait` and `try-lock` reject a buyer if another one holds the lock. Only successful reservations count. Rejected \
    attempts have their own column. The latencies are those of all attempts, most of which reserved nothing.";

/// What `units` needs.
pub const UNITS_FIRST: &str = "`units` needs one row per unit before the sale, and does not return the remaining stock as the others do.";

/// What is checked after each run.
pub const BOOKS: &str = "After each run, stock, reservations, buyers and requests must agree, no buyer may exceed the limit, and the number of \
    reservations must be the number of acknowledged ones.";

/// The usual way.
pub const CONDITIONAL_UPDATE: Technique = Technique {
    name: "conditional-update",
    about: "`update ... where remaining >= 1` at the end of a function that does the other steps, directly to the server",
    script: script!("pgbench/buyer.sql" "pgbench/id.sql" "pgbench/reserve_update.sql"),
    protocol: Protocol::Simple,
    against: "conditional-update",
    ..SELL_DIRECT
};

/// A buyer who finds the lock taken is rejected.
pub const NOWAIT: Technique = Technique {
    name: "nowait",
    about: "`select for update nowait`, then the same: a client that does not get the lock is rejected",
    script: script!("pgbench/buyer.sql" "pgbench/id.sql" "pgbench/reserve_nowait.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..CONDITIONAL_UPDATE
};

/// The same with an advisory lock.
pub const TRY_LOCK: Technique = Technique {
    name: "try-lock",
    about: "`pg_try_advisory_xact_lock`, then the same: a client that does not get the lock is rejected",
    script: script!("pgbench/buyer.sql" "pgbench/id.sql" "pgbench/reserve_try_lock.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..CONDITIONAL_UPDATE
};

/// A row for each unit.
pub const UNITS: Technique = Technique {
    name: "units",
    about: "a row for each of 300,000 units: the first one without a lock, by `for update skip locked`",
    prepare: sql!("sale_units.sql"),
    script: script!("pgbench/buyer.sql" "pgbench/id.sql" "pgbench/reserve_unit.sql"),
    ..CONDITIONAL_UPDATE
};

/// The hotrow schema's function.
pub const PACK_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the hotrow schema's `reserve`, directly to the server",
    script: script!("pgbench/buyer.sql" "pgbench/id.sql" "pgbench/reserve.sql"),
    ..CONDITIONAL_UPDATE
};

/// The same from clients of Hotrow.
pub const HOTROW: Technique = PACK_DIRECT.through_hotrow("the hotrow schema's `reserve`, through Hotrow");

/// The hotrow schema's refusal.
pub const SOLD_OUT_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the hotrow schema's `reserve` on a sold-out item, directly to the server",
    script: script!(
        "pgbench/buyer.sql" "pgbench/reserve_sold_out.sql",
        answer checked by "pgbench/nothing_remains.sql"
    ),
    worth: Worth::Read,
    against: "select-1",
    ..SELL_DIRECT
};

/// The same from clients of Hotrow.
pub const SOLD_OUT_HOTROW: Technique =
    SOLD_OUT_DIRECT.through_hotrow("the hotrow schema's `reserve` on a sold-out item, through Hotrow");
