//! The scenario `aurora`: a payment service on MariaDB that commits each of its statements.

use super::mariadb::COUNTED;
use crate::loads::{Kind, Request, Work};
use hotrow_bench::scenario::{Protocol, Scenario, Technique};
use hotrow_bench::scenarios::{SELL_DIRECT, USUAL};
use hotrow_bench::sql;

/// Payments per second, with the commits and the flushes of the binary log for each.
pub static AURORA: Scenario = Scenario {
    name: "aurora",
    shows: "Payments of ten statements on MariaDB, each with its own commit, with a shared row: payments and binlog flushes",
    takes_long: true,
    techniques: &[
        DIRECT,
        DIRECT.through_hotrow("the same through Hotrow in front of MariaDB (preview), which packs"),
    ],
    remarks: &[
        "A payment is six INSERTs and four UPDATEs by primary key, each in autocommit mode and as text, on a connection of its own \
         client. The ninth statement changes the row of a merchant that all payments share. Before the load, each client runs a \
         first statement, which changes nothing.",
        "Each run has a new private MariaDB server with `binlog_format` ROW, `sync_binlog` 1 and `innodb_flush_log_at_trx_commit` 1.",
        COUNTED,
        "After each run, the shared row must have counted exactly the acknowledged payments and their amounts. Each payment must have \
         its request, its attempt, both transitions and its event. The PostgreSQL server of the report takes no part.",
    ],
    ..USUAL
};

const DIRECT: Technique = Technique {
    about: "ten statements, directly to the server",
    load_by: Kind::MariaDb(&PAYMENTS).load(),
    protocol: Protocol::Simple,
    is_costed: true,
    ..SELL_DIRECT
};

const PAYMENTS: Work = Work {
    options: &[],
    set_up: sql!("aurora/set_up.sql"),
    first: sql!("aurora/first.sql"),
    request: Request::Texts(sql!("aurora/payment.sql")),
    reading: sql!("aurora/reading.sql"),
};
