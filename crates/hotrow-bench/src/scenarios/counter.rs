//! The scenarios `counter-...`: commands on counters, strictly ordered. Their SQL is in `sql/`.

use super::{SELL_DIRECT, USUAL};
use crate::scenario::{Arrivals, Batching, Clients, Figure, LoadBy, Rows, Scenario, Technique, Through};

/// One counter, many callers: commands per second.
pub static COUNTER: Scenario = Scenario {
    name: "counter",
    shows: "Increments and drains of one counter, each with its history: commands per second, by technique",
    set_up: sql!("counter.sql"),
    pack: true,
    before_run: sql!("counter_before_run.sql"),
    tables: &["hotrow_bench.counter", "hotrow.counter"],
    reading: sql!("counter_reading.sql"),
    techniques: &[
        BY_HAND,
        PACK_DIRECT,
        HOTROW,
        Technique {
            name: "hotrow-log",
            about: "the schema pack's `increment` and `drain` on a counter of strategy log, through Hotrow",
            prepare: sql!("counter_log.sql"),
            ..HOTROW
        },
        APP_BATCHING,
        APP_BATCHING_LOG,
    ],
    remarks: &[MIX, CHECKS, APPLICATIONS],
    ..USUAL
};

/// The same at a constant arrival rate.
pub static COUNTER_OPEN_LOOP: Scenario = Scenario {
    name: "counter-open-loop",
    shows: "Commands on one counter at a constant rate, half of the maximum of `app-batching`: latency from the time each was due",
    figure: Figure::Latency,
    techniques: &[at_half_rate(APP_BATCHING), at_half_rate(APP_BATCHING_LOG), at_half_rate(HOTROW)],
    remarks: &[
        MIX,
        CHECKS,
        APPLICATIONS,
        "Arrivals are random around the same rate for all: half of the rate of `app-batching` in a closed loop directly before. \
         A latency counts from the time the request was due and includes the wait for a free caller.",
    ],
    ..COUNTER
};

/// The goal of an article about this problem: 10,000 requests per second over HTTP.
pub static COUNTER_HTTP: Scenario = Scenario {
    name: "counter-http",
    shows: "Commands on one counter as JSON over HTTP to two gateways, at a constant rate: latency from when each was due",
    figure: Figure::Latency,
    techniques: &[Technique {
        name: "hotrow",
        about: "`POST /v1/counters/{counter}/increment` and `/drain` on a counter of strategy ledger, half to each of two \
                gateways in front of one server, at 10,000 per second or the rate of --rate",
        load_by: LoadBy::Http,
        through: Through::HotrowHttp,
        arrivals: Arrivals::Planned { usually: 10_000 },
        against: "hotrow",
        ..SELL_DIRECT
    }],
    remarks: &[
        MIX,
        CHECKS,
        "The goal to compare with is that of the article \"Solving High Data Contention Problems with a Typical Web Stack\" \
         (2021): 10,000 requests per second, 90 % of them answered within 50 ms.",
        "Clients are persistent HTTP/1.1 connections of the benchmark's process. Arrivals are random around the stated rate. \
         Requests use the connections in turn, and each connection has a queue. A latency counts from the time the request \
         was due. Requests that are rejected because too many are under way (429, 503) are counted and have no latency. If \
         any other request fails, there is no figure.",
    ],
    ..COUNTER
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
        Technique { about: "the schema pack's `increment`, directly to the server", ..ZIPF_PACK },
        ZIPF_PACK.through_hotrow("the schema pack's `increment`, through Hotrow"),
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

/// The time of the first answer after all caches are lost.
pub static COUNTER_RESTART: Scenario = Scenario {
    name: "counter-restart",
    shows: "A counter with 10 million commands in its log: time to the first answer of a new connection or gateway",
    set_up: sql!("restart.sql"),
    fill: sql!("restart_fill.sql"),
    pack: true,
    takes_long: true,
    before_run: sql!("restart_before_run.sql"),
    tables: &["hotrow.log_entry", "hotrow.counter"],
    reading: sql!("restart_reading.sql"),
    rows: Rows::UpTo(10_000_000),
    clients: Clients::Always(&[1]),
    figure: Figure::Latency,
    techniques: &[FIRST_ANSWER, FIRST_ANSWER.through_hotrow("start Hotrow, connect to it and `increment`")],
    remarks: &[
        "At the start of a run, the last snapshot is as old as possible (the setting `snapshot_every`, less one). Each call has \
         its own connection, and calls run one after another. The time of a call includes the start of the connection or of \
         the gateway. Each answer must have the value after that number of increments.",
    ],
    ..USUAL
};

const MIX: &str = "One command in a thousand is a drain, all others are increments by one.";

const CHECKS: &str = "After each run, every entry of every history must follow from the entry before it, versions must have no \
    gaps, counters must have the value at the end of their history, and the number of commands must be the number of \
    acknowledged ones. The warm-up, which only increments, also checks the value of each answer.";

const APPLICATIONS: &str = "`app-batching` and `app-batching-log` are the design of the article \"Solving High Data \
    Contention Problems with a Typical Web Stack\" (2021), implemented again for this benchmark: two applications, each with \
    half of the callers, gather commands for a fixed window of 5 ms (ledger) or 10 ms (command log), take \
    `pg_advisory_xact_lock`, and run the batch in one transaction. Applications and callers are tasks of the \
    benchmark's process. Their calls need no network, unlike those of all other techniques.";

const BY_HAND: Technique = Technique {
    about: "a function that locks the counter's row, updates it and inserts a ledger entry, directly to the server",
    script: script!("pgbench/increment_by_hand.sql", "pgbench/increment_by_hand_checked.sql"),
    ..SELL_DIRECT
};

const PACK_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the schema pack's `increment` and `drain`, directly to the server",
    script: script!("pgbench/increment.sql", "pgbench/increment_checked.sql"),
    ..BY_HAND
};

const HOTROW: Technique = PACK_DIRECT.through_hotrow(
    "the schema pack's `increment` and `drain` on a counter of strategy ledger, through Hotrow",
);

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

pub(super) const ZIPF_PACK: Technique = Technique {
    script: script!("pgbench/increment_zipf.sql", answer checked by "pgbench/value_is_version.sql"),
    ..PACK_DIRECT
};

const FIRST_ANSWER: Technique = Technique {
    about: "connect to the server and `increment`",
    load_by: LoadBy::FreshConnections,
    ..SELL_DIRECT
};

/// The same technique at half of the maximum rate of `app-batching`.
const fn at_half_rate(technique: Technique) -> Technique {
    Technique { arrivals: Arrivals::OfClosed { percent: 50 }, against: APP_BATCHING.name, ..technique }
}
