//! The scenario `counter-restart`: a long command log and nobody who remembers it; it holds no SQL and runs nothing.

use super::SELL_DIRECT;
use crate::scenario::{Clients, Figure, LoadBy, Rows, Scenario, Technique, Through};

/// How long the first answer takes when all memory is gone.
pub static COUNTER_RESTART: Scenario = Scenario {
    name: "counter-restart",
    shows: "A counter with 10 million commands in its log: how long a fresh connection, or a fresh gateway, takes to its \
            first answer",
    set_up: include_str!("../../sql/restart.sql"),
    fill: include_str!("../../sql/restart_fill.sql"),
    pack: true,
    takes_long: true,
    before_run: include_str!("../../sql/restart_before_run.sql"),
    tables: &["hotrow.log_entry", "hotrow.counter"],
    reading: include_str!("../../sql/restart_reading.sql"),
    rows: Rows::UpTo(10_000_000),
    clients: Clients::Always(&[1]),
    figure: Figure::Latency,
    techniques: &[
        Technique {
            about: "connect to the server and `increment`",
            load_by: LoadBy::FreshConnections,
            ..SELL_DIRECT
        },
        Technique {
            name: "hotrow",
            about: "start Hotrow, connect to it and `increment`",
            load_by: LoadBy::FreshConnections,
            through: Through::Hotrow,
            ..SELL_DIRECT
        },
    ],
    remarks: &[
        "When a run begins, the snapshot is as far behind as it may be (the setting `snapshot_every`, less one). Calls are \
         made one after the other, each by a connection of its own; a call counts from the start of the connection, or of \
         the gateway. Each answer's value must be what so many increments by one come to.",
    ],
};
