//! The scenarios `novelty-...`: traffic that is new all the time, directly and through Hotrow, compared with the same traffic
//! without anything new. Their SQL is in `sql/novelty` and, for some, in `src/statements.rs`.

use super::{SELL_DIRECT, USUAL};
use crate::novelty;
use crate::scenario::{
    Arrivals, Beside, Clients, Figure, LoadBy, Protocol, Rows, Scenario, Script, SecondLoad, Technique, Text,
    Through, Worth,
};

/// Four techniques: without anything new and with it, directly and through Hotrow. The report compares them by their names.
macro_rules! with_and_without {
    ($without:expr, $with:expr, $about_without:literal, $about_with:literal $(,)?) => {
        [
            Technique {
                name: "direct",
                about: concat!($about_without, ", directly"),
                against: "direct",
                ..$without
            },
            Technique {
                name: "direct-new",
                about: concat!($about_with, ", directly"),
                against: "direct",
                ..$with
            },
            Technique {
                name: "hotrow",
                about: concat!($about_without, ", through Hotrow"),
                through: Through::Hotrow,
                against: "direct",
                ..$without
            },
            Technique {
                name: "hotrow-new",
                about: concat!($about_with, ", through Hotrow"),
                through: Through::Hotrow,
                against: "direct",
                ..$with
            },
        ]
    };
}

/// A trace comment in each statement.
pub static COMMENTS: Scenario = Scenario {
    name: "novelty-comments",
    shows: "Updates by key as extended queries, with and without a comment of its own in each: updates per second",
    techniques: &with_and_without!(
        statements(Text::Same),
        statements(Text::Commented),
        "updates whose text never changes",
        "updates with a trace comment of their own in each text",
    ),
    ..NOVELTY
};

/// Constants in function calls and typed literals.
pub static CONSTANTS: Scenario = Scenario {
    name: "novelty-constants",
    shows: "Updates by key as simple queries, with the same or other constants in calls and literals: updates per second",
    techniques: &with_and_without!(
        Technique {
            script: script!("novelty/pgbench/same_text.sql" "novelty/pgbench/octets.sql" "novelty/pgbench/constants.sql"),
            protocol: Protocol::Simple,
            ..SELL_DIRECT
        },
        Technique {
            script: script!("novelty/pgbench/new_text.sql" "novelty/pgbench/octets.sql" "novelty/pgbench/constants.sql"),
            protocol: Protocol::Simple,
            ..SELL_DIRECT
        },
        "updates with the same constants in `NULLIF`, `interval '...'`, `lpad`, `format` and others",
        "updates with constants of their own there",
    ),
    ..NOVELTY
};

/// Commands of another session that change nothing for the updates.
pub static TEMPORARY: Scenario = Scenario {
    name: "novelty-temporary",
    shows: "Updates of one row, with and without 20 temporary tables, TRUNCATEs, GRANTs and the like beside them: updates per second",
    techniques: &with_and_without!(
        SELL_DIRECT,
        Technique { beside: Some(DISTURBANCE), ..SELL_DIRECT },
        "updates alone",
        "updates beside 20 commands per second of another client: temporary tables, TRUNCATE, COMMENT, GRANT, DO, ANALYZE",
    ),
    ..NOVELTY
};

/// More search paths than the gateway has pools.
pub static TENANTS: Scenario = Scenario {
    name: "novelty-tenants",
    shows: "An update by key for any of 40 tenants, between SET and RESET of search_path or between two `select 1`: updates per second",
    set_up: sql!("novelty/tenants.sql"),
    fill: "",
    tables: &[],
    rows: Rows::UpTo(40),
    techniques: &with_and_without!(
        Technique {
            script: script!("novelty/pgbench/any_tenant.sql" "novelty/pgbench/name_tenant.sql"),
            protocol: Protocol::Simple,
            ..SELL_DIRECT
        },
        Technique {
            script: script!("novelty/pgbench/any_tenant.sql" "novelty/pgbench/set_tenant.sql"),
            protocol: Protocol::Simple,
            ..SELL_DIRECT
        },
        "`select 1`, an update that names the tenant's schema, `select 1`",
        "`SET search_path`, an update that does not name it, `RESET search_path`",
    ),
    remarks: &[
        "Each unit of work is three statements, each sent after the answer to the one before it. Each tenant has a schema with a table of one row.",
    ],
    ..NOVELTY
};

/// The first second after a pause in which the table was replaced.
pub static RECREATED_TABLE: Scenario = Scenario {
    name: "novelty-recreated-table",
    shows: "Updates by key in the first second after a pause in which the table was, or was not, replaced: updates per second",
    techniques: &with_and_without!(
        first_second(""),
        first_second(sql!("novelty/recreate_table.sql")),
        "the first second after a pause of 6 s",
        "the same, and a direct client has replaced the table at the end of the pause",
    ),
    ..NOVELTY
};

/// The same with an index.
pub static RECREATED_INDEX: Scenario = Scenario {
    name: "novelty-recreated-index",
    shows: "Updates by key in the first second after a pause in which an index was, or was not, replaced: updates per second",
    techniques: &with_and_without!(
        first_second(""),
        first_second(sql!("novelty/recreate_index.sql")),
        "the first second after a pause of 6 s",
        "the same, and a direct client has replaced an index at the end of the pause",
    ),
    ..NOVELTY
};

/// More clients in a transaction than connections that the gateway holds for them.
pub static IDLE_IN_TRANSACTION: Scenario = Scenario {
    name: "novelty-idle-in-transaction",
    shows: "Updates of one row, with and without 80 clients idle in a transaction beside them: updates per second",
    techniques: &with_and_without!(
        Technique { protocol: Protocol::Extended, ..SELL_DIRECT },
        Technique {
            protocol: Protocol::Extended,
            beside: Some(SecondLoad { clients: 80, does: Beside::IdleInTransaction }),
            ..SELL_DIRECT
        },
        "updates alone",
        "updates beside 80 clients that are idle in a transaction from the beginning to the end",
    ),
    remarks: &[
        "By default, 80 is the number of connections that Hotrow's clients can hold. The updates are unnamed statements: a \
         client that prepares a named one needs such a connection, and waits for it.",
    ],
    ..NOVELTY
};

/// The price of the first execution.
pub static FIRST_USE: Scenario = Scenario {
    name: "novelty-first-use",
    shows: "The first execution of a statement that the gateway has never seen, beside later executions: latency",
    clients: Clients::Always(&[1]),
    figure: Figure::Latency,
    techniques: &{
        let [direct, direct_new, hotrow, hotrow_new] = with_and_without!(
            first_use(Text::Same),
            first_use(Text::NewShape),
            "a statement that was executed before",
            "statements, each of which is executed for the first time",
        );
        let round_trip = Technique {
            name: novelty::PASSED_THROUGH,
            about: "`select pg_backend_pid()` through Hotrow, which passes it through: the cost of a round trip",
            script: script!("pgbench/backend_pid.sql"),
            protocol: Protocol::Extended,
            worth: Worth::Read,
            through: Through::Hotrow,
            arrivals: Arrivals::Planned { usually: 50 },
            ..SELL_DIRECT
        };
        [direct, direct_new, hotrow, hotrow_new, round_trip]
    },
    ..NOVELTY
};

/// Many shapes, and their memory.
pub static SHAPES: Scenario = Scenario {
    name: "novelty-shapes",
    shows: "Updates of one row, with and without 10,000 new statements per minute beside them: updates per second",
    techniques: &with_and_without!(
        SELL_DIRECT,
        Technique {
            beside: Some(SecondLoad { clients: 4, does: Beside::NewShapes { per_second: 167 } }),
            ..SELL_DIRECT
        },
        "updates alone",
        "updates beside 167 executions per second of statements that were never executed before",
    ),
    ..NOVELTY
};

const NOVELTY: Scenario = Scenario {
    set_up: sql!("novelty/tables.sql"),
    fill: sql!("inventory_fill.sql"),
    takes_long: true,
    tables: &["hotrow_bench.inv"],
    reading: sql!("inventory_reading.sql"),
    rows: Rows::UpTo(100),
    clients: Clients::Usually(&[8]),
    ..USUAL
};

const DISTURBANCE: SecondLoad =
    SecondLoad { clients: 1, does: Beside::Nothing(sql!("novelty/pgbench/disturbance.sql")) };

/// Extended queries of unnamed statements, made by this program.
const fn statements(text: Text) -> Technique {
    Technique {
        load_by: LoadBy::Statements(text),
        script: Script::same(""),
        protocol: Protocol::Extended,
        ..SELL_DIRECT
    }
}

const fn first_second(change: &'static str) -> Technique {
    Technique { load_by: LoadBy::FirstSecond { change }, ..statements(Text::Same) }
}

/// Statements that come slowly enough to find the gateway idle.
const fn first_use(text: Text) -> Technique {
    Technique { arrivals: Arrivals::Planned { usually: 50 }, ..statements(text) }
}
