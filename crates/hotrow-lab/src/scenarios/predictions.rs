//! The scenarios `predictions-...`: twelve workloads of other scenarios. `hotrow doctor` examines the server during the
//! direct runs, and the gain that it predicts is compared with the measured one. They contain no SQL.

use super::disks::{CLOUD, DISKS};
use super::{disks, payments};
use hotrow_bench::scenario::{Clients, Prediction, Scenario, Technique};
use hotrow_bench::scenarios::inventory::{POINT_READ, SELL_ANY, SELL_HOTROW};
use hotrow_bench::scenarios::transaction::{PIPELINE, ROUND_TRIPS as ROUND_TRIPS_DIRECT};
use hotrow_bench::scenarios::{SELL_DIRECT, counter, inventory, transaction};

/// One row, with few clients and many: four workloads.
pub static HOT_ROW: Scenario = Scenario {
    name: "predictions-hot-row",
    shows: "Updates of one row: updates per second, directly and through Hotrow, and the gain that the doctor predicts",
    takes_long: true,
    clients: Clients::Usually(&[2, 8, 64, 256]),
    techniques: &[SELL_DIRECT, SELL_HOTROW],
    prediction: Prediction::Examined,
    remarks: &[EXAMINED],
    ..inventory::HOT_ROW
};

/// Writes without a hot row.
pub static SPREAD: Scenario = Scenario {
    name: "predictions-spread",
    shows: "Updates spread over a million rows: updates per second, and the gain that the doctor predicts",
    takes_long: true,
    prediction: Prediction::Examined,
    remarks: &[EXAMINED],
    ..inventory::SPREAD
};

/// Reads.
pub static READS: Scenario = Scenario {
    name: "predictions-reads",
    shows: "Point reads over a million rows: reads per second, and the gain that the doctor predicts",
    takes_long: true,
    techniques: &[POINT_READ, POINT_READ.through_hotrow("a point read, through Hotrow")],
    prediction: Prediction::Examined,
    remarks: &[EXAMINED],
    ..inventory::READS
};

/// Transactions that are sent in one go.
pub static TRANSACTION: Scenario = Scenario {
    name: "predictions-transaction",
    shows: "Transactions of five statements in one pipeline that share one row, and the gain that the doctor predicts",
    takes_long: true,
    techniques: &[PIPELINE, PIPELINE.through_hotrow("the same in one pipeline, through Hotrow")],
    prediction: Prediction::Examined,
    remarks: &[EXAMINED],
    ..transaction::TRANSACTION
};

/// Transactions that wait for their client.
pub static ROUND_TRIPS: Scenario = Scenario {
    name: "predictions-round-trips",
    shows: "Transactions of seven round trips that share one row, and the gain that the doctor predicts",
    techniques: &[
        Technique { against: "round-trips", ..ROUND_TRIPS_DIRECT },
        Technique { against: "round-trips", ..ROUND_TRIPS_DIRECT.through_hotrow("the same, through Hotrow") },
    ],
    ..TRANSACTION
};

/// Calls that are merged, on a few hot rows among many.
pub static COUNTER_ZIPF: Scenario = Scenario {
    name: "predictions-counter-zipf",
    shows: "Increments of 10,000 counters, distributed by Zipf's law, and the gain that the doctor predicts",
    takes_long: true,
    techniques: &[
        Technique { against: "pack-direct", ..counter::ZIPF_PACK },
        Technique {
            against: "pack-direct",
            ..counter::ZIPF_PACK.through_hotrow("the hotrow schema's `increment`, through Hotrow")
        },
    ],
    prediction: Prediction::Examined,
    remarks: &[EXAMINED],
    ..counter::COUNTER_ZIPF
};

/// An ordinary service.
pub static PAYMENTS: Scenario = Scenario {
    name: "predictions-payments",
    shows: "A payment service that commits each of its statements: payments per second, and the gain that the doctor predicts",
    techniques: &[payments::DIRECT, payments::HOTROW],
    prediction: Prediction::Examined,
    remarks: &[EXAMINED, payments::SERVICE],
    ..payments::PAYMENTS
};

/// One row and a slower disk.
pub static DISKS_HOT_ROW: Scenario = Scenario {
    name: "predictions-disks-hot-row",
    shows: "Updates of one row, each WAL flush 1.5 ms longer, and the gain that the doctor predicts",
    clients: Clients::Usually(&[64]),
    techniques: &[slower(SELL_DIRECT), slower(SELL_HOTROW)],
    prediction: Prediction::Examined,
    remarks: &[EXAMINED, DISKS],
    ..disks::HOT_ROW
};

/// Many rows and a slower disk.
pub static DISKS_SPREAD: Scenario = Scenario {
    name: "predictions-disks-spread",
    shows: "Updates spread over a million rows, each WAL flush 1.5 ms longer, and the gain that the doctor predicts",
    clients: Clients::Usually(&[64]),
    techniques: &[slower(SELL_ANY), slower(SELL_ANY.through_hotrow(SELL_HOTROW.about))],
    prediction: Prediction::Examined,
    remarks: &[EXAMINED, DISKS],
    ..disks::SPREAD
};

const EXAMINED: &str = "`hotrow doctor` examined the server during each direct run, for a second less than the run. The predicted range \
    is the median over the rounds of its low ends and of its high ends. The doctor's reports are in the folder of this report.";

const fn slower(technique: Technique) -> Technique {
    Technique { disk: CLOUD, ..technique }
}
