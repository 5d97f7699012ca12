//! The list of scenarios, and the parts that several of them share. Each scenario has its own file.

mod connect;
mod counter;
mod counter_http;
mod counter_restart;
mod counter_zipf;
mod feed;
mod hot_row;
mod open_loop;
mod pass_through;
mod payments;
mod platform;
mod queue;
mod reads;
mod sale;
mod single;
mod sold_out;
mod spread;
mod transaction;

use crate::scenario::{Arrivals, LoadBy, Protocol, Scenario, Technique, Through, Worth};

/// All scenarios, in the order of `hotrow bench all`, which leaves out those that take long.
pub static ALL: [&Scenario; 29] = [
    &hot_row::HOT_ROW,
    &single::SINGLE,
    &spread::SPREAD,
    &reads::READS,
    &pass_through::PASS_THROUGH,
    &transaction::TRANSACTION,
    &connect::CONNECT,
    &open_loop::OPEN_LOOP,
    &counter::COUNTER,
    &counter::COUNTER_OPEN_LOOP,
    &counter_http::COUNTER_HTTP,
    &counter_zipf::COUNTER_ZIPF,
    &sale::SALE,
    &sold_out::SOLD_OUT,
    &queue::QUEUE_TAKE,
    &queue::QUEUE_LEASE,
    &queue::QUEUE_BATCH,
    &queue::QUEUE_ENQUEUE,
    &feed::FEED_PUSH,
    &feed::FEED_POST,
    &feed::FEED_CONSUME,
    &feed::FEED_BUSY,
    &platform::PLATFORM,
    &queue::QUEUE_HELD,
    &queue::QUEUE_BATCH_HELD,
    &counter_restart::COUNTER_RESTART,
    &payments::PAYMENTS,
    &payments::PAYMENTS_OPEN_LOOP,
    &payments::MATCH_DAY,
];

const INVENTORY: &str = include_str!("../sql/inventory.sql");
const INVENTORY_FILL: &str = include_str!("../sql/inventory_fill.sql");
const INVENTORY_REFILL: &str = include_str!("../sql/inventory_refill.sql");
const INVENTORY_READING: &str = include_str!("../sql/inventory_reading.sql");
const INVENTORY_TABLES: &[&str] = &["hotrow_bench.inv"];

const SELL: &str = include_str!("../sql/pgbench/sell.sql");

/// The plain statement, sent directly to the server: the baseline of the other techniques.
const SELL_DIRECT: Technique = Technique {
    name: "direct",
    about: "the plain statement, directly to the server",
    extension: None,
    prepare: "",
    ageing: None,
    beside: None,
    load_by: LoadBy::Pgbench,
    script: SELL,
    warm_up: SELL,
    through: Through::Direct,
    protocol: Protocol::Prepared,
    worth: Worth::Sold,
    arrivals: Arrivals::Closed,
    change_stream: false,
    slow_flush: false,
    against: "direct",
};

/// The same statement from the same clients, connected to Hotrow.
const SELL_HOTROW: Technique = Technique {
    name: "hotrow",
    about: "the plain statement, through Hotrow",
    through: Through::Hotrow,
    ..SELL_DIRECT
};

/// The cheapest request.
const SELECT_ONE: Technique = Technique {
    name: "select-1",
    about: "`select 1`, directly to the server: the cost of any request",
    script: include_str!("../sql/pgbench/select_one.sql"),
    warm_up: include_str!("../sql/pgbench/select_one_checked.sql"),
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
                let yardstick = scenario.technique(technique.against);
                assert!(
                    yardstick.is_some_and(|yardstick| yardstick.against == yardstick.name),
                    "{}: {} is compared with {}, which is no baseline",
                    scenario.name,
                    technique.name,
                    technique.against
                );
            }
        }
    }
}
