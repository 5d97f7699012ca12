//! The scenario `hot-row`: all clients sell from one row. Its SQL is in `sql/`.

use super::{
    INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_REFILL, INVENTORY_TABLES, SELECT_ONE,
    SELL_DIRECT, SELL_HOTROW,
};
use crate::scenario::{Clients, Figure, Rows, Scenario, Technique, Through, Worth};

/// One row, many clients: the case that Hotrow is made for.
pub static HOT_ROW: Scenario = Scenario {
    name: "hot-row",
    shows: "Updates of one row: updates that succeed per second, by technique and number of clients",
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
        "`try-lock` and `nowait` reject a client if another one holds the lock. Only sold units count. Rejected attempts have \
         their own column. The latencies are those of all attempts, most of which sold nothing.",
        "`nowait` is measured at its best: one function call takes the lock, updates and commits in one round trip. An \
         application that opens a transaction needs four.",
        "With `hotrow-tls`, clients use TLS to the gateway, and the gateway uses none to the server. The clients' half of the \
         encryption uses processors of the same machine.",
    ],
};

const TRY_LOCK: Technique = Technique {
    name: "try-lock",
    about: "the statement `... and pg_try_advisory_xact_lock(1)`: a client that does not get the lock is rejected",
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
