//! The scenarios `incidents-...`: statements on hot rows that made public programs stop, as their projects reported them. Their
//! SQL is in `sql/`.

use super::through_pgbouncer;
use hotrow_bench::scenario::{Clients, Protocol, Rows, Scenario, Technique, Worth};
use hotrow_bench::scenarios::{SELL_DIRECT, USUAL};
use hotrow_bench::{script, sql};

/// Workflow executions, each of which increments one row.
pub static N8N: Scenario = Scenario {
    name: "incidents-n8n",
    shows: "n8n's upsert of one row of workflow statistics after each execution: executions per second, by technique",
    reading: sql!("incidents/statistics_reading.sql"),
    clients: Clients::Usually(&[64, 256]),
    techniques: &compared(EXECUTION),
    remarks: &[
        "n8n's pull request 33045 reports the incident: all executions waited for one row, which used up the connection pool. \
         The statement has the form of n8n's; each of its executions is a root execution of one workflow.",
    ],
    ..INCIDENTS
};

/// Servers, each of which writes all applications that it has seen.
pub static UNLEASH: Scenario = Scenario {
    name: "incidents-unleash",
    shows: "Unleash's upsert of 20 applications by each of its servers, the same rows by all: rows written per second",
    reading: sql!("incidents/applications_reading.sql"),
    rows: Rows::UpTo(20),
    clients: Clients::Usually(&[20, 64]),
    techniques: &compared(APPLICATIONS),
    remarks: &[
        "Unleash's pull request 11394 reports the incident with 20 and more servers: waits of 25 to 47 seconds for a row. The \
         statement has the form of Unleash's, and a column more that counts the writes.",
        "All statements name the rows in one order, so that direct clients do not deadlock.",
    ],
    ..INCIDENTS
};

/// Workers, each of which writes when a service was last seen.
pub static HEARTBEATS: Scenario = Scenario {
    name: "incidents-heartbeats",
    shows: "OneUptime's heartbeats on 2,300 rows: updates per second, by technique and number of clients",
    fill: sql!("incidents/services_fill.sql"),
    tables: &["hotrow_bench.service"],
    reading: sql!("incidents/services_reading.sql"),
    rows: Rows::UpTo(2_300),
    clients: Clients::Usually(&[64, 512]),
    techniques: &compared(HEARTBEAT),
    remarks: &[
        "OneUptime's pull request 3031 reports the incident: of 1,017 connections, 892 waited for a row of 2,300, behind \
         PgBouncer. The rows are chosen at random with equal probability, and a column more counts the writes.",
    ],
    ..INCIDENTS
};

const INCIDENTS: Scenario = Scenario {
    set_up: sql!("incidents/tables.sql"),
    before_run: sql!("incidents/before_run.sql"),
    tables: &["hotrow_bench.workflow_statistics", "hotrow_bench.client_application"],
    ..USUAL
};

/// As the three programs send their statements: parsed at each use.
const STATEMENT: Technique =
    Technique { about: "directly to the server", protocol: Protocol::Extended, ..SELL_DIRECT };

const EXECUTION: Technique = Technique { script: script!("pgbench/count_execution.sql"), ..STATEMENT };

const APPLICATIONS: Technique =
    Technique { script: script!("pgbench/see_applications.sql"), worth: Worth::Each(20), ..STATEMENT };

const HEARTBEAT: Technique = Technique { script: script!("pgbench/beat.sql"), ..STATEMENT };

/// A statement directly, through PgBouncer and through Hotrow.
const fn compared(direct: Technique) -> [Technique; 3] {
    [
        direct,
        through_pgbouncer(
            direct,
            "through PgBouncer with transaction pooling and 20 connections to the server",
        ),
        direct.through_hotrow("through Hotrow"),
    ]
}
