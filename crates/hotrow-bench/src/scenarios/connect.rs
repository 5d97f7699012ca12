//! The scenario `connect`: clients that only come and go. Its SQL is in `sql/`.

use super::{INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_TABLES, SELL_DIRECT};
use crate::scenario::{Clients, Figure, LoadBy, Rows, Scenario, Technique, Through, Worth};

/// The cost of a connection, which an application without a pool pays each time.
pub static CONNECT: Scenario = Scenario {
    name: "connect",
    shows: "Clients that connect, log in and disconnect: connections per second",
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
            about: "log in at PgBouncer and disconnect",
            through: Through::PgBouncer,
            ..VISIT
        },
        Technique {
            name: "hotrow",
            about: "log in at Hotrow and disconnect",
            through: Through::Hotrow,
            ..VISIT
        },
    ],
    remarks: &[
        "Log-ins need no password. The clients are tasks of one thread, which has its own core if there are enough cores. A \
         latency is the time from the first packet to the end of the log-in.",
    ],
};

const VISIT: Technique = Technique {
    about: "log in at the server and disconnect",
    load_by: LoadBy::Connections,
    script: "",
    warm_up: "",
    worth: Worth::Read,
    ..SELL_DIRECT
};
