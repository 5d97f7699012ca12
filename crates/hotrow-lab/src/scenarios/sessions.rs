//! The scenarios `sessions` and `round-trips`: one row sold by sessions as frameworks open them, and by transactions as they
//! send them. Their SQL is in `sql/`.

use super::through_pgbouncer;
use hotrow_bench::scenario::{Clients, Protocol, Scenario, Script, Technique, Through};
use hotrow_bench::scenarios::SELL_DIRECT;
use hotrow_bench::scenarios::inventory::{REFILLED, SELL_HOTROW};
use hotrow_bench::{script, sql};

/// The update of the shipped scenarios, as text that `concat!` accepts.
macro_rules! sell {
    () => {
        sql!("../../hotrow-bench/sql/pgbench/sell.sql")
    };
}

/// Settings at the start of a session: the cost of sessions that are not those of the login.
pub static SESSIONS: Scenario = Scenario {
    name: "sessions",
    shows: "Updates of one row by sessions that begin with a framework's SETs, through Hotrow: updates per second, by framework",
    techniques: &[
        WITHOUT_SET,
        Technique {
            name: "rails",
            about: "sessions that begin with the four SETs of Active Record",
            script: Script::same(concat!(sql!("pgbench/start_rails.sql"), sell!())),
            ..WITHOUT_SET
        },
        Technique {
            name: "sequelize",
            about: "sessions that begin with Sequelize's text of several SETs",
            script: Script::same(concat!(sql!("pgbench/start_sequelize.sql"), sell!())),
            ..WITHOUT_SET
        },
        Technique {
            name: "laravel",
            about: "sessions that begin with the three SETs of Laravel",
            script: Script::same(concat!(sql!("pgbench/start_laravel.sql"), sell!())),
            ..WITHOUT_SET
        },
    ],
    remarks: &[
        "Each client runs the SETs before its first update. All clients use the simple query protocol, because Sequelize sends \
         its SETs as one text.",
    ],
    ..REFILLED
};

/// A transaction that waits for its client: what remains if the gateway cannot pack.
pub static ROUND_TRIPS: Scenario = Scenario {
    name: "round-trips",
    shows: "Transactions of three round trips (BEGIN, an update of one row, COMMIT): transactions per second, by technique",
    clients: Clients::Usually(&[64, 256]),
    techniques: &[
        IN_TRANSACTION,
        Technique {
            name: "pgbouncer-pool-4",
            about: "through PgBouncer with transaction pooling and 4 connections to the server",
            through: Through::SmallPgBouncer,
            ..through_pgbouncer(IN_TRANSACTION, "")
        },
        through_pgbouncer(
            IN_TRANSACTION,
            "through PgBouncer with transaction pooling and 20 connections to the server",
        ),
        IN_TRANSACTION.through_hotrow("through Hotrow"),
        IN_TRANSACTION.deferred("through Hotrow with `pack = \"deferred\"`"),
    ],
    remarks: &[
        "Each statement is sent after the answer to the one before it. The row is locked from the update to the end of the commit.",
    ],
    ..REFILLED
};

const WITHOUT_SET: Technique = Technique {
    name: "without-set",
    about: "sessions without a SET",
    protocol: Protocol::Simple,
    against: "without-set",
    ..SELL_HOTROW
};

const IN_TRANSACTION: Technique = Technique {
    about: "directly to the server",
    script: script!("pgbench/sell_in_transaction.sql"),
    protocol: Protocol::Extended,
    ..SELL_DIRECT
};
