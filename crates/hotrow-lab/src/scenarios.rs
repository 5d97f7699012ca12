//! The list of scenarios: those of `hotrow bench`, some of them with more techniques, and others.

mod aurora;
mod counter;
mod disks;
mod incidents;
mod inventory;
mod mariadb;
mod payments;
mod predictions;
mod queue;
mod sale;
mod sessions;

use crate::loads::Kind;
use hotrow_bench::menu::Menu;
use hotrow_bench::scenario::{LoadBy, Scenario, Technique, Through};
use hotrow_bench::scenarios as shipped;

/// All scenarios, in the order of `hotrow-lab bench all`, which leaves out those that take long.
pub static ALL: [&Scenario; 65] = [
    &shipped::inventory::HOT_ROW,
    &inventory::SINGLE,
    &shipped::inventory::SPREAD,
    &shipped::inventory::READS,
    &inventory::PASS_THROUGH,
    &shipped::transaction::TRANSACTION,
    &sessions::ROUND_TRIPS,
    &sessions::SESSIONS,
    &inventory::CONNECT,
    &shipped::inventory::OPEN_LOOP,
    &counter::COUNTER,
    &counter::COUNTER_OPEN_LOOP,
    &counter::COUNTER_HTTP,
    &shipped::counter::COUNTER_ZIPF,
    &sale::SALE,
    &sale::SOLD_OUT,
    &shipped::queue::QUEUE_TAKE,
    &queue::QUEUE_HEAD,
    &shipped::queue::QUEUE_HEAD_VACUUMED,
    &queue::QUEUE_LEASE,
    &queue::QUEUE_BATCH,
    &shipped::queue::QUEUE_ENQUEUE,
    &shipped::feed::FEED_PUSH,
    &shipped::feed::FEED_POST,
    &shipped::feed::FEED_CONSUME,
    &shipped::feed::FEED_BUSY,
    &inventory::PLATFORM,
    &shipped::queue::QUEUE_HELD,
    &shipped::queue::QUEUE_BATCH_HELD,
    &counter::COUNTER_RESTART,
    &inventory::FLEET,
    &payments::PAYMENTS,
    &payments::PAYMENTS_OPEN_LOOP,
    &payments::MATCH_DAY,
    &aurora::AURORA,
    &mariadb::HOT_ROW,
    &mariadb::HOT_ROW_NO_BINLOG,
    &mariadb::SPREAD,
    &mariadb::PASS_THROUGH,
    &mariadb::DISKS,
    &incidents::N8N,
    &incidents::UNLEASH,
    &incidents::HEARTBEATS,
    &disks::HOT_ROW,
    &disks::SPREAD,
    &disks::TRANSACTION,
    &disks::PAYMENTS,
    &predictions::HOT_ROW,
    &predictions::SPREAD,
    &predictions::READS,
    &predictions::TRANSACTION,
    &predictions::ROUND_TRIPS,
    &predictions::COUNTER_ZIPF,
    &predictions::PAYMENTS,
    &predictions::DISKS_HOT_ROW,
    &predictions::DISKS_SPREAD,
    &shipped::novelty::COMMENTS,
    &shipped::novelty::CONSTANTS,
    &shipped::novelty::TEMPORARY,
    &shipped::novelty::TENANTS,
    &shipped::novelty::RECREATED_TABLE,
    &shipped::novelty::RECREATED_INDEX,
    &shipped::novelty::IDLE_IN_TRANSACTION,
    &shipped::novelty::FIRST_USE,
    &shipped::novelty::SHAPES,
];

/// The scenarios of `hotrow-lab bench`.
pub static MENU: Menu = Menu {
    scenarios: &ALL,
    families: &[
        ("queue", "All scenarios `queue-...` that do not take long, in one report"),
        ("feed", "All scenarios `feed-...`, in one report"),
        (
            "incidents",
            "All scenarios `incidents-...`, in one report: the statements of three public incidents",
        ),
        ("mariadb", "All scenarios `mariadb-...`, in one report: bounds of the gateway in front of MariaDB"),
        ("disks", "All scenarios `disks-...`, in one report"),
        (
            "predictions",
            "Twelve workloads in the scenarios `predictions-...`: the gain that `hotrow doctor` predicts and the measured \
             one, in one report",
        ),
        (
            "novelty",
            "Traffic that is new all the time in the scenarios `novelty-...`: its cost through Hotrow divided by its direct \
             cost, in one report",
        ),
    ],
    all: "All scenarios except `platform`, `counter-restart`, `fleet`, `queue-held`, `queue-batch-held`, `aurora`, `mariadb-...`, \
          `disks-...`, `predictions-...`, `novelty-...` and those of the payment service",
};

/// The same requests by clients of PgBouncer, as the technique `pgbouncer`.
const fn through_pgbouncer(technique: Technique, about: &'static str) -> Technique {
    let load_by = match technique.load_by {
        LoadBy::Pgbench => Kind::Pgbench.load(),
        other => other,
    };
    Technique { name: "pgbouncer", about, load_by, through: Through::PgBouncer, ..technique }
}

#[cfg(test)]
mod tests {
    use super::MENU;

    #[test]
    fn names_are_unique_and_every_baseline_exists() {
        MENU.check();
    }
}
