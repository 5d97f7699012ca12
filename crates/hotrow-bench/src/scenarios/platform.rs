//! The scenario `platform`: many items, none of them hot. Its SQL is in `sql/`.

use super::spread::{SELL_ANY_DIRECT, SPREAD};
use crate::scenario::{Rows, Scenario, Technique, Through, Worth};

/// Ten million items: the effect of the gateway on a shop without a hot item.
pub static PLATFORM: Scenario = Scenario {
    name: "platform",
    shows: "Sales of one of 10 million items at random: those that succeed per second, by technique",
    takes_long: true,
    rows: Rows::UpTo(10_000_000),
    techniques: &[
        SELL_ANY_DIRECT,
        Technique {
            name: "try-lock",
            about: "the statement `... and pg_try_advisory_xact_lock(id)`: a client that does not get the lock is rejected",
            script: include_str!("../../sql/pgbench/sell_any_try_lock.sql"),
            warm_up: include_str!("../../sql/pgbench/sell_any_try_lock.sql"),
            worth: Worth::SoldOrTurnedAway,
            ..SELL_ANY_DIRECT
        },
        Technique {
            name: "hotrow",
            about: "the plain statement, through Hotrow",
            through: Through::Hotrow,
            ..SELL_ANY_DIRECT
        },
    ],
    remarks: &[],
    ..SPREAD
};
