//! The scenario `transaction`: whole transactions on one hot row. Its SQL is in `sql/`.

use super::SELL_DIRECT;
use crate::scenario::{Clients, Figure, Rows, Scenario, Technique, Through};

/// pgbench's transaction, whose last update is of the same row for every client.
pub static TRANSACTION: Scenario = Scenario {
    name: "transaction",
    shows: "Transactions of five statements that share one row (TPC-B-like, scale 1): transactions per second, by technique",
    set_up: include_str!("../../sql/tpcb.sql"),
    fill: "",
    pack: false,
    takes_long: false,
    before_run: include_str!("../../sql/tpcb_before_run.sql"),
    tables: &["hotrow_bench.branch", "hotrow_bench.teller", "hotrow_bench.account"],
    reading: include_str!("../../sql/tpcb_reading.sql"),
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    figure: Figure::Throughput,
    techniques: &[
        PIPELINE,
        Technique {
            name: "round-trips",
            about: "BEGIN, five statements, END, each sent after the answer before it, directly to the server",
            script: ROUND_TRIPS_SCRIPT,
            warm_up: ROUND_TRIPS_SCRIPT,
            ..PIPELINE
        },
        Technique {
            name: "hotrow",
            about: "the same in one pipeline, through Hotrow",
            through: Through::Hotrow,
            ..PIPELINE
        },
    ],
    remarks: &[
        "After each run, the history must have one entry per acknowledged transaction, and the sums of accounts, tellers and \
         branch must agree with it.",
    ],
};

const ROUND_TRIPS_SCRIPT: &str =
    concat!(include_str!("../../sql/pgbench/tpcb_values.sql"), include_str!("../../sql/pgbench/tpcb.sql"),);

const PIPELINE_SCRIPT: &str = concat!(
    include_str!("../../sql/pgbench/tpcb_values.sql"),
    "\\startpipeline\n",
    include_str!("../../sql/pgbench/tpcb.sql"),
    "\\endpipeline\n",
);

const PIPELINE: Technique = Technique {
    about: "BEGIN, five statements, END in one pipeline, directly to the server",
    script: PIPELINE_SCRIPT,
    warm_up: PIPELINE_SCRIPT,
    ..SELL_DIRECT
};
