//! The scenarios `disks-...`: the same loads on slower disks, and with a synchronous standby. Most of their SQL belongs to other
//! scenarios.

use super::payments::{self, CHECKS, SERVICE};
use hotrow_bench::scenario::{Clients, Disk, Rows, Scenario, Script, Technique, Through};
use hotrow_bench::scenarios::inventory::{INVENTORY, REFILLED, SELL_ANY};
use hotrow_bench::scenarios::{SELL_DIRECT, USUAL};
use hotrow_bench::sql;

/// One row, many clients.
pub static HOT_ROW: Scenario = Scenario {
    name: "disks-hot-row",
    shows: "Updates of one row on slower disks and with a synchronous standby: updates per second, by technique",
    takes_long: true,
    clients: CLIENTS,
    techniques: &on_each_disk(SELL_DIRECT),
    remarks: &[DISKS],
    ..REFILLED
};

/// Many rows.
pub static SPREAD: Scenario = Scenario {
    name: "disks-spread",
    shows: "Updates spread evenly over a million rows, on slower disks and with a synchronous standby: updates per second",
    takes_long: true,
    rows: Rows::UpTo(1_000_000),
    clients: CLIENTS,
    techniques: &on_each_disk(SELL_ANY),
    remarks: &[DISKS],
    ..INVENTORY
};

/// Transactions that end with the same row.
pub static TRANSACTION: Scenario = Scenario {
    name: "disks-transaction",
    shows: "Transactions of four spread updates and one of the same row, on slower disks and with a standby: transactions per second",
    takes_long: true,
    reading: sql!("disks_transaction_reading.sql"),
    rows: Rows::UpTo(1_000_000),
    clients: CLIENTS,
    techniques: &on_each_disk(Technique { script: Script::same(TRANSACTION_SCRIPT), ..SELL_DIRECT }),
    remarks: &[
        DISKS,
        "A client sends BEGIN, the five updates and END in one pipeline. The first four rows are in different quarters of the \
         table, in the order of their keys, so that no deadlock occurs. After each run, each of the five rows must have as \
         many sold units as there are acknowledged transactions, summed up over its part of the table.",
    ],
    ..INVENTORY
};

/// An ordinary service.
pub static PAYMENTS: Scenario = Scenario {
    name: "disks-payments",
    shows: "A payment service that commits each of its statements, on slower disks and with a standby: payments per second",
    set_up: sql!("payments.sql"),
    takes_long: true,
    before_run: sql!("payments_before_run.sql"),
    reading: sql!("payments_reading.sql"),
    clients: CLIENTS,
    techniques: &on_each_disk(payments::DIRECT),
    remarks: &[DISKS, SERVICE, CHECKS],
    ..USUAL
};

const CLIENTS: Clients = Clients::Usually(&[64, 256]);

pub(super) const DISKS: &str = "The server preloads a library that sleeps after each `fdatasync`, and changes nothing else. The time per flush, as \
    measured by the server, is longer than the delay by the time of the machine's own disk and by a wait for a processor. The \
    standby runs on the same machine during the runs that need it. It flushes its WAL with the same delay before it confirms \
    a commit.";

const TRANSACTION_SCRIPT: &str = concat!(
    sql!("pgbench/disks_rows.sql"),
    "\\startpipeline\n",
    sql!("pgbench/disks_transaction.sql"),
    "\\endpipeline\n",
);

/// A load on each disk, directly and through Hotrow.
const fn on_each_disk(load: Technique) -> [Technique; 8] {
    let half = on(HALF, load, "direct-0.5-ms", "directly to the server, each flush 0.5 ms longer");
    let cloud = on(CLOUD, load, "direct-1.5-ms", "directly to the server, each flush 1.5 ms longer");
    let slow = on(SLOW, load, "direct-4-ms", "directly to the server, each flush 4 ms longer");
    let standby = on(STANDBY, load, "direct-standby", "`direct-1.5-ms` with a synchronous standby");
    [
        half,
        through_hotrow("hotrow-0.5-ms", half),
        cloud,
        through_hotrow("hotrow-1.5-ms", cloud),
        slow,
        through_hotrow("hotrow-4-ms", slow),
        standby,
        through_hotrow("hotrow-standby", standby),
    ]
}

const HALF: Disk = Disk::slower(500);
/// As many disks in a cloud.
pub(super) const CLOUD: Disk = Disk::slower(1_500);
const SLOW: Disk = Disk::slower(4_000);
const STANDBY: Disk = Disk { standby: true, ..CLOUD };

const fn on(disk: Disk, load: Technique, name: &'static str, about: &'static str) -> Technique {
    Technique { name, about, disk, against: name, ..load }
}

const fn through_hotrow(name: &'static str, direct: Technique) -> Technique {
    Technique { name, about: "the same through Hotrow", through: Through::Hotrow, ..direct }
}
