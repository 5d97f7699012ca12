//! The scenario `hot-row`: all clients sell from one row; it holds no SQL and runs nothing.

use super::{
    INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_REFILL, INVENTORY_TABLES, SELECT_ONE,
    SELL_DIRECT, SELL_HOTROW,
};
use crate::scenario::{Clients, Figure, Rows, Scenario, Technique, Through, Worth};

/// One row, many clients: the case Hotrow is made for.
pub static HOT_ROW: Scenario = Scenario {
    name: "hot-row",
    shows: "Updates of one row: how many a second really happen, by technique and number of clients",
    set_up: INVENTORY,
    fill: INVENTORY_FILL,
    pack: false,
    takes_long: false,
    before_run: INVENTORY_REFILL,
    tables: INVENTORY_TABLES,
    reading: INVENTORY_READING,
    rows: Rows::One,
    clients: Clients::Usually(&[1, 8, 64, 512]),
    figure: Figure::Throughput,
    techniques: &[SELL_DIRECT, TRY_LOCK, NOWAIT, SELL_HOTROW, HOTROW_TLS, SELECT_ONE],
    remarks: &[
        "`try-lock` and `nowait` turn a client away when another one holds the lock. Only units that were really sold \
         count; attempts that were turned away stand in a column of their own, and the latencies are those of all \
         attempts, most of which sold nothing.",
        "`nowait` is measured generously: one function call takes the lock, updates and commits in one round trip, \
         where an application that opens a transaction needs four.",
        "With `hotrow-tls` the clients speak TLS with the gateway, and the gateway without it with the server; the load pays for \
         its half of the encryption on the same machine.",
    ],
};

const TRY_LOCK: Technique = Technique {
    name: "try-lock",
    about: "the statement `... and pg_try_advisory_xact_lock(1)`: whoever doesn't get the lock is turned away",
    script: include_str!("../../sql/pgbench/sell_try_lock.sql"),
    warm_up: include_str!("../../sql/pgbench/sell_try_lock.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..SELL_DIRECT
};

const HOTROW_TLS: Technique = Technique {
    name: "hotrow-tls",
    about: "the plain statement, through Hotrow, with TLS between client and gateway",
    through: Through::HotrowTls,
    ..SELL_HOTROW
};

const NOWAIT: Technique = Technique {
    name: "nowait",
    about: "`select for update nowait`, then the update, in one function call: likewise turned away",
    script: include_str!("../../sql/pgbench/sell_nowait.sql"),
    warm_up: include_str!("../../sql/pgbench/sell_nowait.sql"),
    worth: Worth::SoldOrTurnedAway,
    ..SELL_DIRECT
};
