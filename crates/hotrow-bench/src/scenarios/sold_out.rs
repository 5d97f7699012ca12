//! The scenario `sold-out`: reservations of an item without stock. Its SQL is in `sql/`.

use super::{SELECT_ONE, SELL_DIRECT};
use crate::scenario::{Clients, Figure, Rows, Scenario, Technique, Through, Worth};

/// Requests after the last unit: the cost of a refusal.
pub static SOLD_OUT: Scenario = Scenario {
    name: "sold-out",
    shows: "Reservations of a sold-out item: answers per second, compared with the cheapest request",
    set_up: include_str!("../../sql/sold_out.sql"),
    fill: "",
    pack: true,
    takes_long: false,
    before_run: include_str!("../../sql/sold_out_before_run.sql"),
    tables: &["hotrow.sale"],
    reading: include_str!("../../sql/sold_out_reading.sql"),
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    figure: Figure::Throughput,
    techniques: &[
        Technique {
            name: "select-1-pgbouncer",
            about: "`select 1`, through PgBouncer with transaction pooling",
            through: Through::PgBouncer,
            against: "select-1-pgbouncer",
            ..SELECT_ONE
        },
        Technique { against: "select-1-pgbouncer", ..SELECT_ONE },
        PACK_DIRECT,
        Technique {
            name: "hotrow",
            about: "the schema pack's `reserve` on a sold-out item, through Hotrow",
            through: Through::Hotrow,
            ..PACK_DIRECT
        },
    ],
    remarks: &[
        "The reservations have no request id, because a refusal with a request id is recorded for a retry. The warm-up \
                of each run checks every answer.",
    ],
};

const PACK_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the schema pack's `reserve` on a sold-out item, directly to the server",
    script: include_str!("../../sql/pgbench/reserve_sold_out.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_sold_out_checked.sql"),
    worth: Worth::Read,
    against: "select-1-pgbouncer",
    ..SELL_DIRECT
};
