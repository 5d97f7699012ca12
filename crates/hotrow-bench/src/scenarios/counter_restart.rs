//! The scenario `counter-restart`: a long command log after all caches are lost. Its SQL is in `sql/`.

use super::SELL_DIRECT;
use crate::scenario::{Clients, Figure, LoadBy, Rows, Scenario, Technique, Through};

/// The time of the first answer after all caches are lost.
pub static COUNTER_RESTART: Scenario = Scenario {
    name: "counter-restart",
    shows: "A counter with 10 million commands in its log: time to the first answer of a new connection or gateway",
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
        "At the start of a run, the last snapshot is as old as possible (the setting `snapshot_every`, less one). Each call has \
         its own connection, and calls run one after another. The time of a call includes the start of the connection or of \
         the gateway. Each answer must have the value after that number of increments.",
    ],
};
