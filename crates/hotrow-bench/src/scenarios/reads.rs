//! The scenario `reads`: statements that change nothing. Its SQL is in `sql/`.

use super::{INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_TABLES, SELECT_ONE, SELL_DIRECT};
use crate::scenario::{Clients, Figure, Rows, Scenario, Technique, Through, Worth};

/// Point reads and `select 1`: the gain or loss of reads through the gateway.
pub static READS: Scenario = Scenario {
    name: "reads",
    shows: "Point reads by primary key over a million rows, and `select 1`: cost of reads through the gateway",
    set_up: INVENTORY,
    fill: INVENTORY_FILL,
    pack: false,
    takes_long: false,
    before_run: "",
    tables: INVENTORY_TABLES,
    reading: INVENTORY_READING,
    rows: Rows::UpTo(1_000_000),
    clients: Clients::Usually(&[64]),
    figure: Figure::Throughput,
    techniques: &[
        POINT_READ,
        Technique {
            name: "hotrow",
            about: "a point read, through Hotrow",
            through: Through::Hotrow,
            ..POINT_READ
        },
        Technique { against: "select-1", ..SELECT_ONE },
        Technique {
            name: "select-1-hotrow",
            about: "`select 1`, through Hotrow",
            through: Through::Hotrow,
            against: "select-1",
            ..SELECT_ONE
        },
    ],
    remarks: &["During the warm-up of each run, every answer is compared with the requested row."],
};

const POINT_READ: Technique = Technique {
    about: "a point read, directly to the server",
    script: include_str!("../../sql/pgbench/read.sql"),
    warm_up: include_str!("../../sql/pgbench/read_checked.sql"),
    worth: Worth::Read,
    ..SELL_DIRECT
};
