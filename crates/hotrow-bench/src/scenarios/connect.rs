//! The scenario `connect`: clients that only come and go; it holds no SQL and runs nothing.

use super::{INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_TABLES, SELL_DIRECT};
use crate::scenario::{Clients, Figure, LoadBy, Rows, Scenario, Technique, Through, Worth};

/// What an application without a pool pays each time.
pub static CONNECT: Scenario = Scenario {
    name: "connect",
    shows: "Clients that connect, log in and leave again: how many connections a second",
    set_up: INVENTORY,
    fill: INVENTORY_FILL,
    pack: false,
    takes_long: false,
    before_run: "",
    tables: INVENTORY_TABLES,
    reading: INVENTORY_READING,
    rows: Rows::One,
    clients: Clients::Usually(&[16]),
    figure: Figure::Throughput,
    techniques: &[
        VISIT,
        Technique {
            name: "pgbouncer",
            about: "log in at PgBouncer and leave",
            through: Through::PgBouncer,
            ..VISIT
        },
        Technique { name: "hotrow", about: "log in at Hotrow and leave", through: Through::Hotrow, ..VISIT },
    ],
    remarks: &[
        "Nobody is asked for a password. The clients are tasks of one thread, which has a core to itself where there are \
         enough; a latency is the time from the first packet until the client is let in.",
    ],
};

const VISIT: Technique = Technique {
    about: "log in at the server and leave",
    load_by: LoadBy::Connections,
    script: "",
    warm_up: "",
    worth: Worth::Read,
    ..SELL_DIRECT
};
