//! The list of scenarios, and the parts that several of them share. Scenarios that share tables share a file.

/// The text of a file in `sql/`.
macro_rules! sql {
    ($file:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $file))
    };
}
pub(crate) use sql;

/// Scripts of pgbench in `sql/`: the files of the measurement, one after another. The warm-up has the same, followed by a
/// check of the last answer or of the whole transaction, or it has a file of its own.
macro_rules! script {
    ($($both:literal)+) => {
        crate::scenario::Script::same(concat!($(sql!($both)),+))
    };
    ($($measured:literal)+, answer checked by $check:literal) => {
        crate::scenario::Script {
            measured: concat!($(sql!($measured)),+),
            warm_up: concat!($(sql!($measured),)+ "\\gset\n", sql!($check)),
        }
    };
    ($measured:literal, checked by $check:literal) => {
        crate::scenario::Script {
            measured: sql!($measured),
            warm_up: concat!(sql!($measured), sql!($check)),
        }
    };
    ($measured:literal, $warm_up:literal) => {
        crate::scenario::Script { measured: sql!($measured), warm_up: sql!($warm_up) }
    };
}

mod counter;
mod disks;
mod feed;
mod inventory;
mod novelty;
mod payments;
mod predictions;
mod queue;
mod sale;
mod sessions;
mod transaction;

use crate::scenario::{
    Arrivals, Clients, Disk, Figure, LoadBy, Prediction, Protocol, Rows, Scenario, Technique, Through, Worth,
};

/// All scenarios, in the order of `hotrow bench all`, which leaves out those that take long.
pub static ALL: [&Scenario; 54] = [
    &inventory::HOT_ROW,
    &inventory::SINGLE,
    &inventory::SPREAD,
    &inventory::READS,
    &inventory::PASS_THROUGH,
    &transaction::TRANSACTION,
    &sessions::ROUND_TRIPS,
    &sessions::SESSIONS,
    &inventory::CONNECT,
    &inventory::OPEN_LOOP,
    &counter::COUNTER,
    &counter::COUNTER_OPEN_LOOP,
    &counter::COUNTER_HTTP,
    &counter::COUNTER_ZIPF,
    &sale::SALE,
    &sale::SOLD_OUT,
    &queue::QUEUE_TAKE,
    &queue::QUEUE_LEASE,
    &queue::QUEUE_BATCH,
    &queue::QUEUE_ENQUEUE,
    &feed::FEED_PUSH,
    &feed::FEED_POST,
    &feed::FEED_CONSUME,
    &feed::FEED_BUSY,
    &inventory::PLATFORM,
    &queue::QUEUE_HELD,
    &queue::QUEUE_BATCH_HELD,
    &counter::COUNTER_RESTART,
    &inventory::FLEET,
    &payments::PAYMENTS,
    &payments::PAYMENTS_OPEN_LOOP,
    &payments::MATCH_DAY,
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
    &novelty::COMMENTS,
    &novelty::CONSTANTS,
    &novelty::TEMPORARY,
    &novelty::TENANTS,
    &novelty::RECREATED_TABLE,
    &novelty::RECREATED_INDEX,
    &novelty::IDLE_IN_TRANSACTION,
    &novelty::FIRST_USE,
    &novelty::SHAPES,
];

/// The properties that most scenarios share. Each scenario has its own name, text, SQL and techniques.
pub(crate) const USUAL: Scenario = Scenario {
    name: "",
    shows: "",
    set_up: "",
    fill: "",
    pack: false,
    takes_long: false,
    before_run: "",
    tables: &[],
    reading: "",
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    figure: Figure::Throughput,
    techniques: &[],
    prediction: Prediction::None,
    remarks: &[],
};

/// The plain statement, sent directly to the server: the baseline of the other techniques.
pub(crate) const SELL_DIRECT: Technique = Technique {
    name: "direct",
    about: "the plain statement, directly to the server",
    extension: None,
    prepare: "",
    ageing: None,
    beside: None,
    load_by: LoadBy::Pgbench,
    script: script!("pgbench/sell.sql"),
    through: Through::Direct,
    protocol: Protocol::Prepared,
    worth: Worth::Sold,
    arrivals: Arrivals::Closed,
    change_stream: false,
    disk: Disk::OWN,
    against: "direct",
};

/// The cheapest request.
const SELECT_ONE: Technique = Technique {
    name: "select-1",
    about: "`select 1`, directly to the server: the cost of any request",
    script: script!("pgbench/select_one.sql", "pgbench/select_one_checked.sql"),
    worth: Worth::Read,
    ..SELL_DIRECT
};

#[cfg(test)]
mod tests {
    use super::ALL;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_every_baseline_exists() {
        let scenarios: HashSet<_> = ALL.iter().map(|scenario| scenario.name).collect();
        assert_eq!(scenarios.len(), ALL.len());
        for scenario in ALL {
            let names: HashSet<_> = scenario.techniques.iter().map(|technique| technique.name).collect();
            assert_eq!(names.len(), scenario.techniques.len(), "{}: a name is used twice", scenario.name);
            let length = scenario.shows.chars().count();
            assert!(length <= 130, "{}: {length} letters do not fit the chart", scenario.name);
            for technique in scenario.techniques {
                let baseline = scenario.technique(technique.against);
                assert!(
                    baseline.is_some_and(|baseline| baseline.against == baseline.name),
                    "{}: {} is compared with {}, which is not a baseline",
                    scenario.name,
                    technique.name,
                    technique.against
                );
            }
        }
    }
}
