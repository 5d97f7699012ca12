//! The scenarios with one table of items: `hot-row`, `single`, `spread`, `bulk`, `reads`, `pass-through` and `open-loop`. Their
//! SQL is in `sql/`.

use super::{SELECT_ONE, SELL_DIRECT, USUAL};
use crate::scenario::{Arrivals, Clients, Figure, Protocol, Rows, Scenario, Technique, Through, Worth};

/// One row, many clients: the case that Hotrow is made for.
pub static HOT_ROW: Scenario = Scenario {
    name: "hot-row",
    shows: "Updates of one row: updates that succeed per second, by technique and number of clients",
    clients: Clients::Usually(&[1, 8, 64, 512]),
    techniques: &[SELL_DIRECT, TRY_LOCK, NOWAIT, SELL_HOTROW, HOTROW_TLS, SELECT_ONE],
    remarks: &[
        "`try-lock` and `nowait` reject a client if another one holds the lock. Only sold units count. Rejected attempts have \
         their own column. The latencies are those of all attempts, most of which sold nothing.",
        "`nowait` is measured at its best: one function call takes the lock, updates and commits in one round trip. An \
         application that opens a transaction needs four.",
        "With `hotrow-tls`, clients use TLS to the gateway, and the gateway uses none to the server. The clients' half of the \
         encryption uses processors of the same machine.",
    ],
    ..REFILLED
};

/// One client: the cost of a gateway if no other client can share a commit.
pub static SINGLE: Scenario = Scenario {
    name: "single",
    shows: "One client alone on the row: cost of a gateway without any gain",
    clients: Clients::Always(&[1]),
    techniques: &[SELL_DIRECT, SELL_HOTROW],
    ..REFILLED
};

/// Many rows: the gain of packing without contention.
pub static SPREAD: Scenario = Scenario {
    name: "spread",
    shows: "Updates spread evenly over a million rows: effect of packing without a hot row",
    rows: Rows::UpTo(1_000_000),
    techniques: &[SELL_ANY, SELL_ANY.through_hotrow(SELL_HOTROW.about)],
    ..INVENTORY
};

/// Statements of several rows: the gain on rows that all of them change.
pub static BULK: Scenario = Scenario {
    name: "bulk",
    shows: "INSERT of 20 rows with ON CONFLICT DO UPDATE, the same rows by all clients: rows changed per second",
    rows: Rows::UpTo(20),
    clients: Clients::Usually(&[20]),
    techniques: &[SELL_BULK, SELL_BULK.through_hotrow("the same statement, through Hotrow")],
    remarks: &["All statements name the rows in one order, so that direct clients do not deadlock."],
    ..INVENTORY
};

/// Point reads and `select 1`: the gain or loss of reads through the gateway.
pub static READS: Scenario = Scenario {
    name: "reads",
    shows: "Point reads by primary key over a million rows, and `select 1`: cost of reads through the gateway",
    rows: Rows::UpTo(1_000_000),
    techniques: &[
        POINT_READ,
        POINT_READ.through_hotrow("a point read, through Hotrow"),
        Technique { against: "select-1", ..SELECT_ONE },
        Technique {
            name: "select-1-hotrow",
            against: "select-1",
            ..SELECT_ONE.through_hotrow("`select 1`, through Hotrow")
        },
    ],
    remarks: &["During the warm-up of each run, every answer is compared with the requested row."],
    ..INVENTORY
};

/// A statement that Hotrow passes through unchanged: the cost of the gateway.
pub static PASS_THROUGH: Scenario = Scenario {
    name: "pass-through",
    shows: "A statement that cannot be packed (`select pg_backend_pid()`): cost of passing it through",
    techniques: &[BACKEND_PID, BACKEND_PID_HOTROW],
    remarks: &[
        "During the warm-up, each transaction runs the statement twice, and both answers must name the same server process.",
    ],
    ..INVENTORY
};

/// Requests at a constant rate: the latency of each.
pub static OPEN_LOOP: Scenario = Scenario {
    name: "open-loop",
    shows: "Updates of one row that arrive at a constant rate: latency from the time each was due",
    figure: Figure::Latency,
    techniques: &[
        Technique {
            about: "directly to the server, at half of its maximum rate",
            arrivals: Arrivals::OfClosed { percent: 50 },
            ..SELL_DIRECT
        },
        Technique {
            name: "hotrow-same-rate",
            about: "through Hotrow, at the same rate as `direct`",
            arrivals: Arrivals::OfClosed { percent: 50 },
            ..SELL_HOTROW
        },
        Technique {
            about: "through Hotrow, at the rate of --rate",
            arrivals: Arrivals::Planned { usually: 20_000 },
            ..SELL_HOTROW
        },
    ],
    remarks: &[
        "Arrivals are random around the stated rate (pgbench's `--rate`). A latency counts from the time the request \
         was due and includes the wait for a free client.",
    ],
    ..REFILLED
};

/// One item, or the number of items in a scenario.
pub const INVENTORY: Scenario = Scenario {
    set_up: sql!("inventory.sql"),
    fill: sql!("inventory_fill.sql"),
    tables: &["hotrow_bench.inv"],
    reading: sql!("inventory_reading.sql"),
    ..USUAL
};

/// The same with a full stock before each run.
pub const REFILLED: Scenario = Scenario { before_run: sql!("inventory_refill.sql"), ..INVENTORY };

/// The plain statement from the same clients, connected to Hotrow.
pub const SELL_HOTROW: Technique = SELL_DIRECT.through_hotrow("the plain statement, through Hotrow");

const TRY_LOCK: Technique = Technique {
    name: "try-lock",
    about: "the statement `... and pg_try_advisory_xact_lock(1)`: a client that does not get the lock is rejected",
    script: script!("pgbench/sell_try_lock.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..SELL_DIRECT
};

const HOTROW_TLS: Technique = Technique {
    name: "hotrow-tls",
    about: "the plain statement, through Hotrow, with TLS between client and gateway",
    through: Through::HotrowTls,
    ..SELL_DIRECT
};

const NOWAIT: Technique = Technique {
    name: "nowait",
    about: "`select for update nowait`, then the update, in one function call: a client that does not get the lock is rejected",
    script: script!("pgbench/sell_nowait.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..SELL_DIRECT
};

/// The same for an item at random.
pub const SELL_ANY: Technique = Technique { script: script!("pgbench/sell_any.sql"), ..SELL_DIRECT };

const SELL_BULK: Technique = Technique {
    about: "the statement, directly to the server",
    script: script!("pgbench/sell_bulk.sql"),
    worth: Worth::Each(20),
    ..SELL_DIRECT
};

/// A read by primary key.
pub const POINT_READ: Technique = Technique {
    about: "a point read, directly to the server",
    script: script!("pgbench/read.sql", answer checked by "pgbench/stock_is_right.sql"),
    worth: Worth::Read,
    ..SELL_DIRECT
};

/// A statement that cannot be packed.
pub const BACKEND_PID: Technique = Technique {
    about: "`select pg_backend_pid()`, directly to the server",
    script: script!("pgbench/backend_pid.sql", "pgbench/backend_pid_checked.sql"),
    protocol: Protocol::Extended,
    worth: Worth::Read,
    ..SELL_DIRECT
};

/// The same from clients of Hotrow.
pub const BACKEND_PID_HOTROW: Technique =
    BACKEND_PID.through_hotrow("`select pg_backend_pid()`, through Hotrow");
