//! The scenarios `counter` and `counter-...`: applications that batch commands themselves, commands over HTTP, and the first
//! answer after a restart.

use crate::loads::{Batching, Kind};
use hotrow_bench::scenario::{Arrivals, Clients, Figure, Rows, Scenario, Technique, Through};
use hotrow_bench::scenarios::counter::{BY_HAND, CHECKS, HOTROW, HOTROW_LOG, MIX, PACK_DIRECT};
use hotrow_bench::scenarios::{SELL_DIRECT, USUAL, counter};
use hotrow_bench::sql;

/// One counter, many callers: commands per second.
pub static COUNTER: Scenario = Scenario {
    techniques: &[BY_HAND, PACK_DIRECT, HOTROW, HOTROW_LOG, APP_BATCHING, APP_BATCHING_LOG],
    remarks: &[MIX, CHECKS, APPLICATIONS],
    ..counter::COUNTER
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
        load_by: Kind::Http.load(),
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

const APPLICATIONS: &str = "`app-batching` and `app-batching-log` are the design of the article \"Solving High Data \
    Contention Problems with a Typical Web Stack\" (2021), implemented again for this benchmark: two applications, each with \
    half of the callers, gather commands for a fixed window of 5 ms (ledger) or 10 ms (command log), take \
    `pg_advisory_xact_lock`, and run the batch in one transaction. Applications and callers are tasks of the \
    benchmark's process. Their calls need no network, unlike those of all other techniques.";

const APP_BATCHING: Technique = Technique {
    name: "app-batching",
    about: "two applications that batch their callers' commands in windows of 5 ms and keep a ledger",
    load_by: Kind::Applications(Batching::Ledger).load(),
    through: Through::Application,
    ..BY_HAND
};

const APP_BATCHING_LOG: Technique = Technique {
    name: "app-batching-log",
    about: "two applications that batch their callers' commands in windows of 10 ms, keep a log, and fold it in memory",
    load_by: Kind::Applications(Batching::CommandLog).load(),
    ..APP_BATCHING
};

const FIRST_ANSWER: Technique = Technique {
    about: "connect to the server and `increment`",
    load_by: Kind::FreshConnections.load(),
    ..SELL_DIRECT
};

/// The same technique at half of the maximum rate of `app-batching`.
const fn at_half_rate(technique: Technique) -> Technique {
    Technique { arrivals: Arrivals::OfClosed { percent: 50 }, against: APP_BATCHING.name, ..technique }
}
