//! The scenario `spread`: updates without a hot row. Its SQL is in `sql/`.

use super::{INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_TABLES, SELL_DIRECT, SELL_HOTROW};
use crate::scenario::{Clients, Figure, Rows, Scenario, Technique};

/// Many rows: the gain of packing without contention.
pub static SPREAD: Scenario = Scenario {
    name: "spread",
    shows: "Updates spread evenly over a million rows: effect of packing without a hot row",
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
    techniques: &[SELL_ANY_DIRECT, Technique { script: SELL_ANY, warm_up: SELL_ANY, ..SELL_HOTROW }],
    remarks: &[],
};

pub(super) const SELL_ANY_DIRECT: Technique =
    Technique { script: SELL_ANY, warm_up: SELL_ANY, ..SELL_DIRECT };

const SELL_ANY: &str = include_str!("../../sql/pgbench/sell_any.sql");
