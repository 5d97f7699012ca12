//! The scenarios `counter` and `counter-open-loop`: commands on one counter, strictly ordered. Their SQL is in `sql/`.

use super::SELL_DIRECT;
use crate::scenario::{Arrivals, Batching, Clients, Figure, LoadBy, Rows, Scenario, Technique, Through};

/// One counter, many callers: commands per second.
pub static COUNTER: Scenario = Scenario {
    name: "counter",
    shows: "Increments and drains of one counter, each with its history: commands per second, by technique",
    set_up: include_str!("../../sql/counter.sql"),
    fill: "",
    pack: true,
    takes_long: false,
    before_run: include_str!("../../sql/counter_before_run.sql"),
    tables: &["hotrow_bench.counter", "hotrow.counter"],
    reading: include_str!("../../sql/counter_reading.sql"),
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    figure: Figure::Throughput,
    techniques: &[
        BY_HAND,
        PACK_DIRECT,
        HOTROW,
        Technique {
            name: "hotrow-log",
            about: "the schema pack's `increment` and `drain` on a counter of strategy log, through Hotrow",
            prepare: LOG,
            ..HOTROW
        },
        APP_BATCHING,
        APP_BATCHING_LOG,
    ],
    remarks: &[MIX, CHECKS, APPLICATIONS],
};

/// The same at a constant arrival rate.
pub static COUNTER_OPEN_LOOP: Scenario = Scenario {
    name: "counter-open-loop",
    shows: "Commands on one counter at a constant rate, half of the maximum of `app-batching`: latency from the time each was due",
    figure: Figure::Latency,
    techniques: &[
        Technique { arrivals: Arrivals::OfClosed { percent: 50 }, against: "app-batching", ..APP_BATCHING },
        Technique {
            arrivals: Arrivals::OfClosed { percent: 50 },
            against: "app-batching",
            ..APP_BATCHING_LOG
        },
        Technique { arrivals: Arrivals::OfClosed { percent: 50 }, against: "app-batching", ..HOTROW },
    ],
    remarks: &[
        MIX,
        CHECKS,
        APPLICATIONS,
        "Arrivals are random around the same rate for all: half of the rate of `app-batching` in a closed loop directly before. \
         A latency counts from the time the request was due and includes the wait for a free caller.",
    ],
    ..COUNTER
};

pub(super) const MIX: &str = "One command in a thousand is a drain, all others are increments by one.";

pub(super) const CHECKS: &str = "After each run, every entry of every history must follow from the entry before it, versions must have no \
    gaps, counters must have the value at the end of their history, and the number of commands must be the number of \
    acknowledged ones. The warm-up, which only increments, also checks the value of each answer.";

const APPLICATIONS: &str = "`app-batching` and `app-batching-log` are the design of the article \"Solving High Data \
    Contention Problems with a Typical Web Stack\" (2021), implemented again for this benchmark: two applications, each with \
    half of the callers, gather commands for a fixed window of 5 ms (ledger) or 10 ms (command log), take \
    `pg_advisory_xact_lock`, and run the batch in one transaction. Applications and callers are tasks of the \
    benchmark's process. Their calls need no network, unlike those of all other techniques.";

const LOG: &str = include_str!("../../sql/counter_log.sql");

pub(super) const BY_HAND: Technique = Technique {
    about: "a function that locks the counter's row, updates it and inserts a ledger entry, directly to the server",
    script: include_str!("../../sql/pgbench/increment_by_hand.sql"),
    warm_up: include_str!("../../sql/pgbench/increment_by_hand_checked.sql"),
    ..SELL_DIRECT
};

pub(super) const PACK_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the schema pack's `increment` and `drain`, directly to the server",
    script: include_str!("../../sql/pgbench/increment.sql"),
    warm_up: include_str!("../../sql/pgbench/increment_checked.sql"),
    ..BY_HAND
};

pub(super) const HOTROW: Technique = Technique {
    name: "hotrow",
    about: "the schema pack's `increment` and `drain` on a counter of strategy ledger, through Hotrow",
    through: Through::Hotrow,
    ..PACK_DIRECT
};

const APP_BATCHING: Technique = Technique {
    name: "app-batching",
    about: "two applications that batch their callers' commands in windows of 5 ms and keep a ledger",
    load_by: LoadBy::Applications(Batching::Ledger),
    through: Through::Application,
    ..BY_HAND
};

const APP_BATCHING_LOG: Technique = Technique {
    name: "app-batching-log",
    about: "two applications that batch their callers' commands in windows of 10 ms, keep a log, and fold it in memory",
    load_by: LoadBy::Applications(Batching::CommandLog),
    ..APP_BATCHING
};
