//! The scenario `transaction`: whole transactions on one hot row. Its SQL is in `sql/`.

use super::{SELL_DIRECT, USUAL};
use crate::scenario::{Scenario, Script, Technique};

/// pgbench's transaction, whose last update is of the same row for every client.
pub static TRANSACTION: Scenario = Scenario {
    name: "transaction",
    shows: "Transactions of five statements that share one row (TPC-B-like, scale 1): transactions per second, by technique",
    set_up: sql!("tpcb.sql"),
    before_run: sql!("tpcb_before_run.sql"),
    tables: &["hotrow_bench.branch", "hotrow_bench.teller", "hotrow_bench.account"],
    reading: sql!("tpcb_reading.sql"),
    techniques: &[
        PIPELINE,
        ROUND_TRIPS,
        PIPELINE.through_hotrow("the same in one pipeline, through Hotrow"),
        Technique {
            name: "hotrow-round-trips",
            ..ROUND_TRIPS.through_hotrow("each statement sent after the answer before it, through Hotrow")
        },
        ROUND_TRIPS.deferred("the same, through Hotrow with `pack = \"deferred\"`"),
    ],
    remarks: &[
        "After each run, the history must have one entry per acknowledged transaction, and the sums of accounts, tellers and \
         branch must agree with it.",
    ],
    ..USUAL
};

const PIPELINE_SCRIPT: &str = concat!(
    sql!("pgbench/tpcb_values.sql"),
    "\\startpipeline\n",
    sql!("pgbench/tpcb.sql"),
    "\\endpipeline\n",
);

/// The transaction in one pipeline.
pub const PIPELINE: Technique = Technique {
    about: "BEGIN, five statements, END in one pipeline, directly to the server",
    script: Script::same(PIPELINE_SCRIPT),
    ..SELL_DIRECT
};

/// The same with a round trip for each statement.
pub const ROUND_TRIPS: Technique = Technique {
    name: "round-trips",
    about: "BEGIN, five statements, END, each sent after the answer before it, directly to the server",
    script: script!("pgbench/tpcb_values.sql" "pgbench/tpcb.sql"),
    ..PIPELINE
};
