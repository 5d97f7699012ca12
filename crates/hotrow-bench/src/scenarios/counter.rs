//! The scenarios `counter-...`: commands on counters, strictly ordered. Their SQL is in `sql/`.

use super::{SELL_DIRECT, USUAL};
use crate::scenario::{Rows, Scenario, Technique};

/// One counter, many callers: commands per second.
pub static COUNTER: Scenario = Scenario {
    name: "counter",
    shows: "Increments and drains of one counter, each with its history: commands per second, by technique",
    set_up: sql!("counter.sql"),
    pack: true,
    before_run: sql!("counter_before_run.sql"),
    tables: &["hotrow_bench.counter", "hotrow.counter"],
    reading: sql!("counter_reading.sql"),
    techniques: &[BY_HAND, PACK_DIRECT, HOTROW, HOTROW_LOG],
    remarks: &[MIX, CHECKS],
    ..USUAL
};

/// A few hot counters among many: the distribution of real traffic.
pub static COUNTER_ZIPF: Scenario = Scenario {
    name: "counter-zipf",
    shows: "Increments of 10,000 counters, distributed by Zipf's law: increments per second, by technique",
    before_run: sql!("counter_zipf_before_run.sql"),
    rows: Rows::UpTo(10_000),
    techniques: &[
        Technique {
            script: script!("pgbench/increment_zipf_by_hand.sql", answer checked by "pgbench/value_is_version.sql"),
            ..BY_HAND
        },
        Technique { about: "the hotrow schema's `increment`, directly to the server", ..ZIPF_PACK },
        ZIPF_PACK.through_hotrow("the hotrow schema's `increment`, through Hotrow"),
    ],
    remarks: &[
        "Counter k is chosen with a probability close to 1/k (exponent 1.0), by a formula that costs pgbench almost no time. The \
         first counter gets 11.1 % of all increments instead of 10.2 %, the second 5.16 % instead of 5.11 %, and each other \
         counter at most 1.2 % less than by Zipf's law. pgbench's `random_zipfian` needs an exponent of at least 1.001, and \
         then a hundred tries per number.",
        "After each run, every entry of every history must follow from the entry before it, versions must have no gaps, \
         counters must have the value at the end of their history, and the number of commands must be the number of \
         acknowledged ones. The warm-up also checks the value of each answer.",
    ],
    ..COUNTER
};

/// The commands of clients.
pub const MIX: &str = "One command in a thousand is a drain, all others are increments by one.";

/// What is checked after each run.
pub const CHECKS: &str = "After each run, every entry of every history must follow from the entry before it, versions must have no \
    gaps, counters must have the value at the end of their history, and the number of commands must be the number of \
    acknowledged ones. The warm-up, which only increments, also checks the value of each answer.";

/// A function as an application without the hotrow schema has it.
pub const BY_HAND: Technique = Technique {
    about: "a function that locks the counter's row, updates it and inserts a ledger entry, directly to the server",
    script: script!("pgbench/increment_by_hand.sql", "pgbench/increment_by_hand_checked.sql"),
    ..SELL_DIRECT
};

/// The hotrow schema's function.
pub const PACK_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the hotrow schema's `increment` and `drain`, directly to the server",
    script: script!("pgbench/increment.sql", "pgbench/increment_checked.sql"),
    ..BY_HAND
};

/// The same from clients of Hotrow.
pub const HOTROW: Technique = PACK_DIRECT.through_hotrow(
    "the hotrow schema's `increment` and `drain` on a counter of strategy ledger, through Hotrow",
);

/// The hotrow schema's counter of strategy log.
pub const HOTROW_LOG: Technique = Technique {
    name: "hotrow-log",
    about: "the hotrow schema's `increment` and `drain` on a counter of strategy log, through Hotrow",
    prepare: sql!("counter_log.sql"),
    ..HOTROW
};

/// The hotrow schema's increments of many counters.
pub const ZIPF_PACK: Technique = Technique {
    script: script!("pgbench/increment_zipf.sql", answer checked by "pgbench/value_is_version.sql"),
    ..PACK_DIRECT
};
