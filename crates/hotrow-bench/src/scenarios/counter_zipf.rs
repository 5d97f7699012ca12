//! The scenario `counter-zipf`: ten thousand counters, few of them hot. Its SQL is in `sql/`.

use super::counter::{BY_HAND, COUNTER, HOTROW, PACK_DIRECT};
use crate::scenario::{Rows, Scenario, Technique};

/// A few hot counters among many: the distribution of real traffic.
pub static COUNTER_ZIPF: Scenario = Scenario {
    name: "counter-zipf",
    shows: "Increments of 10,000 counters, distributed by Zipf's law: increments per second, by technique",
    before_run: include_str!("../../sql/counter_zipf_before_run.sql"),
    rows: Rows::UpTo(10_000),
    techniques: &[
        Technique {
            script: include_str!("../../sql/pgbench/increment_zipf_by_hand.sql"),
            warm_up: include_str!("../../sql/pgbench/increment_zipf_by_hand_checked.sql"),
            ..BY_HAND
        },
        Technique { about: "the schema pack's `increment`, directly to the server", ..ZIPF_PACK },
        Technique {
            name: HOTROW.name,
            about: "the schema pack's `increment`, through Hotrow",
            through: HOTROW.through,
            ..ZIPF_PACK
        },
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

const ZIPF_PACK: Technique = Technique {
    script: include_str!("../../sql/pgbench/increment_zipf.sql"),
    warm_up: include_str!("../../sql/pgbench/increment_zipf_checked.sql"),
    ..PACK_DIRECT
};
