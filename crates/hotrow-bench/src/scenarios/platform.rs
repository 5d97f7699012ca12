//! The scenario `platform`: a whole shop of items, none of them hot; it holds no SQL and runs nothing.

use super::spread::{SELL_ANY_DIRECT, SPREAD};
use crate::scenario::{Rows, Scenario, Technique, Through, Worth};

/// Ten million items: what the gateway does to the rest of the shop.
pub static PLATFORM: Scenario = Scenario {
    name: "platform",
    shows: "Sales of one of 10 million items at random: how many really happen a second, by technique",
    takes_long: true,
    rows: Rows::UpTo(10_000_000),
    techniques: &[
        SELL_ANY_DIRECT,
        Technique {
            name: "try-lock",
            about: "the statement `... and pg_try_advisory_xact_lock(id)`: whoever doesn't get the lock is turned away",
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
