//! The scenario `open-loop`: the hot row under a constant arrival rate; it holds no SQL and runs nothing.

use super::{
    INVENTORY, INVENTORY_FILL, INVENTORY_READING, INVENTORY_REFILL, INVENTORY_TABLES, SELL_DIRECT,
    SELL_HOTROW,
};
use crate::scenario::{Arrivals, Clients, Figure, Rows, Scenario, Technique};

/// Requests that come when they come: how long each waits for its answer.
pub static OPEN_LOOP: Scenario = Scenario {
    name: "open-loop",
    shows: "Updates of one row that arrive at a constant rate: how long each waits, from the moment it was due",
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
            about: "straight to the server, at half of the rate it can do at best",
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
            about: "through Hotrow, at the rate asked for with --rate",
            arrivals: Arrivals::Planned { usually: 20_000 },
            ..SELL_HOTROW
        },
    ],
    remarks: &[
        "Arrivals are random around the stated rate (pgbench's `--rate`). A latency counts from the time the request \
         was due, so that a request that waits for a free client is not forgotten.",
    ],
};
