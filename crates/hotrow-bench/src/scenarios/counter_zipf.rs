//! The scenario `counter-zipf`: ten thousand counters, few of them hot; it holds no SQL and runs nothing.

use super::counter::{BY_HAND, COUNTER, HOTROW, PACK_DIRECT};
use crate::scenario::{Rows, Scenario, Technique};

/// Some are hot, most are not: the shape of real traffic.
pub static COUNTER_ZIPF: Scenario = Scenario {
    name: "counter-zipf",
    shows: "Increments of 10,000 counters, drawn as Zipf's law has it: how many a second, by technique",
    before_run: include_str!("../../sql/counter_zipf_before_run.sql"),
    rows: Rows::UpTo(10_000),
    techniques: &[
        Technique {
            script: include_str!("../../sql/pgbench/increment_zipf_by_hand.sql"),
            warm_up: include_str!("../../sql/pgbench/increment_zipf_by_hand_checked.sql"),
            ..BY_HAND
        },
        Technique { about: "the schema pack's `increment`, straight to the server", ..ZIPF_PACK },
        Technique {
            name: HOTROW.name,
            about: "the schema pack's `increment`, through Hotrow",
            through: HOTROW.through,
            ..ZIPF_PACK
        },
    ],
    remarks: &[
        "Counter k is drawn with a probability of very nearly 1/k (exponent 1.0), by a formula that costs pgbench next to \
         nothing: the first one gets 11.1 % of all increments instead of Zipf's 10.2 %, the second 5.16 % instead of 5.11 %, \
         every other at most 1.2 % less than it should. pgbench's own `random_zipfian` begins at 1.001, where it needs a \
         hundred tries for a number.",
        "After each run, every entry of every history must follow from the one before it, versions without a gap, counters \
         must stand where their history ends, and there must be as many commands as were acknowledged. In the warm-up each \
         answer's value is checked too.",
    ],
    ..COUNTER
};

const ZIPF_PACK: Technique = Technique {
    script: include_str!("../../sql/pgbench/increment_zipf.sql"),
    warm_up: include_str!("../../sql/pgbench/increment_zipf_checked.sql"),
    ..PACK_DIRECT
};
