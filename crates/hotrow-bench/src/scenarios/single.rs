//! The scenario `single`: one client alone; it holds no SQL and runs nothing.

use super::{
    INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_REFILL, INVENTORY_TABLES, SELL_DIRECT,
    SELL_HOTROW,
};
use crate::scenario::{Clients, Figure, Rows, Scenario, Technique, Through};

/// One client: what standing in between costs when there is nobody to share a commit with.
pub static SINGLE: Scenario = Scenario {
    name: "single",
    shows: "One client alone on the row: what a gateway costs when there is nothing to gain",
    set_up: INVENTORY,
    fill: INVENTORY_FILL,
    pack: false,
    takes_long: false,
    before_run: INVENTORY_REFILL,
    tables: INVENTORY_TABLES,
    reading: INVENTORY_READING,
    rows: Rows::One,
    clients: Clients::Always(&[1]),
    figure: Figure::Throughput,
    techniques: &[SELL_DIRECT, SELL_HOTROW, SELL_PGBOUNCER],
    remarks: &[],
};

const SELL_PGBOUNCER: Technique = Technique {
    name: "pgbouncer",
    about: "the plain statement, through PgBouncer, pooling by transaction",
    through: Through::PgBouncer,
    ..SELL_DIRECT
};
