//! The scenario `pass-through`: a statement that is never packed. Its SQL is in `sql/`.

use super::{INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_TABLES, SELL_DIRECT};
use crate::scenario::{Clients, Figure, Protocol, Rows, Scenario, Technique, Through, Worth};

/// A statement that Hotrow passes through unchanged: the cost of the gateway.
pub static PASS_THROUGH: Scenario = Scenario {
    name: "pass-through",
    shows: "A statement that cannot be packed (`select pg_backend_pid()`): cost of passing it through",
    set_up: INVENTORY,
    fill: INVENTORY_FILL,
    pack: false,
    takes_long: false,
    before_run: "",
    tables: INVENTORY_TABLES,
    reading: INVENTORY_READING,
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    figure: Figure::Throughput,
    techniques: &[
        BACKEND_PID,
        Technique {
            name: "pgbouncer",
            about: "`select pg_backend_pid()`, through PgBouncer with transaction pooling",
            through: Through::PgBouncer,
            ..BACKEND_PID
        },
        Technique {
            name: "hotrow",
            about: "`select pg_backend_pid()`, through Hotrow",
            through: Through::Hotrow,
            ..BACKEND_PID
        },
    ],
    remarks: &[
        "During the warm-up, each transaction runs the statement twice, and both answers must name the same server process.",
    ],
};

const BACKEND_PID: Technique = Technique {
    about: "`select pg_backend_pid()`, directly to the server",
    script: include_str!("../../sql/pgbench/backend_pid.sql"),
    warm_up: include_str!("../../sql/pgbench/backend_pid_checked.sql"),
    protocol: Protocol::Extended,
    worth: Worth::Read,
    ..SELL_DIRECT
};
