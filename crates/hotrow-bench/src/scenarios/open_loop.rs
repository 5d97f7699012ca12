//! The scenario `open-loop`: the hot row under a constant arrival rate. Its SQL is in `sql/`.

use super::{
    INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_REFILL, INVENTORY_TABLES, SELL_DIRECT,
    SELL_HOTROW,
};
use crate::scenario::{Arrivals, Clients, Figure, Rows, Scenario, Technique};

/// Requests at a constant rate: the latency of each.
pub static OPEN_LOOP: Scenario = Scenario {
    name: "open-loop",
    shows: "Updates of one row that arrive at a constant rate: latency from the time each was due",
    set_up: INVENTORY,
    fill: INVENTORY_FILL,
    pack: false,
    takes_long: false,
    before_run: INVENTORY_REFILL,
    tables: INVENTORY_TABLES,
    reading: INVENTORY_READING,
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    figure: Figure::Latency,
    techniques: &[
        Technique {
            about: "directly to the server, at half of its maximum rate",
            arrivals: Arrivals::OfClosed { percent: 50 },
            ..SELL_DIRECT
        },
        Technique {
            name: "hotrow-same-rate",
            about: "through Hotrow, at the same rate as `direct`",
            arrivals: Arrivals::OfClosed { percent: 50 },
            ..SELL_HOTROW
        },
        Technique {
            about: "through Hotrow, at the rate of --rate",
            arrivals: Arrivals::Planned { usually: 20_000 },
            ..SELL_HOTROW
        },
    ],
    remarks: &[
        "Arrivals are random around the stated rate (pgbench's `--rate`). A latency counts from the time the request \
         was due and includes the wait for a free client.",
    ],
};
