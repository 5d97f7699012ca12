//! The scenarios `single`, `fleet`, `platform`, `pass-through` and `connect`: one table of items, with other poolers, several
//! gateways or millions of rows.

use super::through_pgbouncer;
use crate::loads::Kind;
use hotrow_bench::scenario::{Clients, Rows, Scenario, Script, Technique, Through, Worth};
use hotrow_bench::scenarios::SELL_DIRECT;
use hotrow_bench::scenarios::inventory::{
    self, BACKEND_PID, BACKEND_PID_HOTROW, INVENTORY, REFILLED, SELL_ANY, SELL_HOTROW,
};
use hotrow_bench::script;

/// One client: the cost of a gateway if no other client can share a commit.
pub static SINGLE: Scenario = Scenario {
    techniques: &[
        SELL_DIRECT,
        SELL_HOTROW,
        through_pgbouncer(SELL_DIRECT, "the plain statement, through PgBouncer with transaction pooling"),
    ],
    ..inventory::SINGLE
};

/// A statement that Hotrow passes through unchanged: the cost of the gateway.
pub static PASS_THROUGH: Scenario = Scenario {
    techniques: &[
        BACKEND_PID,
        through_pgbouncer(
            BACKEND_PID,
            "`select pg_backend_pid()`, through PgBouncer with transaction pooling",
        ),
        BACKEND_PID_HOTROW,
    ],
    ..inventory::PASS_THROUGH
};

/// One row, whose clients use one gateway or several: the cost of batches that wait for each other at the row.
pub static FLEET: Scenario = Scenario {
    name: "fleet",
    shows: "Updates of one row by the clients of one gateway, or of three gateways: updates per second",
    takes_long: true,
    clients: Clients::Usually(&[63, 192]),
    techniques: &[
        Technique {
            name: "one-gateway",
            about: "through one gateway",
            through: Through::Hotrow,
            load_by: Kind::Fleet { own_gateways: false }.load(),
            against: "one-gateway",
            ..SELL_DIRECT
        },
        Technique {
            name: "three-gateways",
            about: "through three gateways, each with a third of the clients",
            through: Through::Hotrow,
            load_by: Kind::Fleet { own_gateways: true }.load(),
            against: "one-gateway",
            ..SELL_DIRECT
        },
    ],
    remarks: &[
        "Three processes of pgbench make the load in both cases. A gateway of three has a third of the clients, so its batches \
         are smaller until there are enough clients for full batches in each.",
    ],
    ..REFILLED
};

/// Ten million items: the effect of the gateway on a shop without a hot item.
pub static PLATFORM: Scenario = Scenario {
    name: "platform",
    shows: "Sales of one of 10 million items at random: those that succeed per second, by technique",
    takes_long: true,
    rows: Rows::UpTo(10_000_000),
    techniques: &[
        SELL_ANY,
        Technique {
            name: "try-lock",
            about: "the statement `... and pg_try_advisory_xact_lock(id)`: a client that does not get the lock is rejected",
            script: script!("pgbench/sell_any_try_lock.sql"),
            worth: Worth::SoldOrTurnedAway,
            ..SELL_DIRECT
        },
        SELL_ANY.through_hotrow(SELL_HOTROW.about),
    ],
    ..INVENTORY
};

/// The cost of a connection, which an application without a pool pays each time.
pub static CONNECT: Scenario = Scenario {
    name: "connect",
    shows: "Clients that connect, log in and disconnect: connections per second",
    clients: Clients::Usually(&[16]),
    techniques: &[
        LOGIN,
        through_pgbouncer(LOGIN, "log in at PgBouncer and disconnect"),
        LOGIN.through_hotrow("log in at Hotrow and disconnect"),
    ],
    remarks: &[
        "Logins need no password. The clients are tasks of one thread, which has its own core if there are enough cores. A \
         latency is the time from the first packet to the end of the login.",
    ],
    ..INVENTORY
};

const LOGIN: Technique = Technique {
    about: "log in at the server and disconnect",
    load_by: Kind::Connections.load(),
    script: Script::same(""),
    worth: Worth::Read,
    ..SELL_DIRECT
};
