//! Tests that every scenario that `hotrow bench` does not have in the same form gives figures in its quick size.

use crate::figures::quick_tests;

/// Scenarios that need real gateways or the programs of the payment service, and the test that runs them.
const ELSEWHERE: [(&str, &str); 6] = [
    ("counter-http", "tests/quick/http.rs"),
    ("payments", "examples/payments/tests/service/bench.rs"),
    ("payments-open-loop", "examples/payments/tests/service/bench.rs"),
    ("match-day", "examples/payments/tests/service/bench.rs"),
    ("disks-payments", "examples/payments/tests/service/bench.rs"),
    ("predictions-payments", "examples/payments/tests/service/bench.rs"),
];

quick_tests! {
    round_trips predictions_hot_row aurora mariadb_spread;
    long: single pass_through sessions connect counter counter_open_loop sale sold_out queue_head queue_lease queue_batch platform
    counter_restart fleet incidents_n8n incidents_unleash incidents_heartbeats mariadb_hot_row mariadb_hot_row_no_binlog mariadb_pass_through
    mariadb_disks disks_hot_row disks_spread disks_transaction predictions_spread predictions_reads
    predictions_transaction predictions_round_trips predictions_counter_zipf predictions_disks_hot_row predictions_disks_spread
}

#[test]
fn every_scenario_has_a_quick_test() {
    let shipped = hotrow_bench::scenarios::ALL;
    for scenario in hotrow_lab::ALL {
        let is_shipped = shipped.iter().any(|other| std::ptr::eq(*other, scenario));
        let elsewhere = ELSEWHERE.iter().any(|(name, _)| *name == scenario.name);
        let here = QUICK.iter().any(|test| test.replace('_', "-") == scenario.name);
        let times = [is_shipped, elsewhere, here].into_iter().filter(|is_tested| *is_tested).count();
        assert_eq!(times, 1, "the scenario {} must be in quick_tests! or ELSEWHERE", scenario.name);
    }
}
