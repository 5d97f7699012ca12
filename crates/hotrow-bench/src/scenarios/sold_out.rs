//! The scenario `sold-out`: everybody still wants what is gone; it holds no SQL and runs nothing.

use super::{SELECT_ONE, SELL_DIRECT};
use crate::scenario::{Clients, Figure, Rows, Scenario, Technique, Through, Worth};

/// The storm after the last unit: what a refusal costs.
pub static SOLD_OUT: Scenario = Scenario {
    name: "sold-out",
    shows: "Reservations of an item that is sold out: how many are answered a second, beside the cheapest request there is",
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
            about: "`select 1`, through PgBouncer, pooling by transaction",
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
        "The reservations carry no request id, since a refusal that is recorded for a retry must be written. During \
                the warm-up of each run every answer is checked.",
    ],
};

const PACK_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the schema pack's `reserve` on a sold-out item, straight to the server",
    script: include_str!("../../sql/pgbench/reserve_sold_out.sql"),
    warm_up: include_str!("../../sql/pgbench/reserve_sold_out_checked.sql"),
    worth: Worth::Read,
    against: "select-1-pgbouncer",
    ..SELL_DIRECT
};
