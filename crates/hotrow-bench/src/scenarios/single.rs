//! The scenario `single`: one client alone. Its SQL is in `sql/`.

use super::{
    INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_REFILL, INVENTORY_TABLES, SELL_DIRECT,
    SELL_HOTROW,
};
use crate::scenario::{Clients, Figure, Rows, Scenario, Technique, Through};

/// One client: the cost of a gateway if no other client can share a commit.
pub static SINGLE: Scenario = Scenario {
    name: "single",
    shows: "One client alone on the row: cost of a gateway without any gain",
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
    about: "the plain statement, through PgBouncer with transaction pooling",
    through: Through::PgBouncer,
    ..SELL_DIRECT
};
