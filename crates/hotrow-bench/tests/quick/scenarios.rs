//! Tests that every scenario gives figures in its quick size.

use crate::figures::quick_tests;
use std::collections::BTreeSet;

quick_tests! {
    hot_row single pass_through sale novelty_constants;
    long: spread bulk reads transaction open_loop counter counter_zipf sold_out
    queue_take queue_head queue_head_vacuumed queue_lease queue_batch queue_enqueue queue_held queue_batch_held feed_push feed_post feed_consume feed_busy
    novelty_comments novelty_temporary novelty_tenants novelty_recreated_table novelty_recreated_index
    novelty_idle_in_transaction novelty_first_use novelty_shapes
}

#[test]
fn every_scenario_has_a_quick_test() {
    let names: BTreeSet<_> =
        hotrow_bench::scenarios::ALL.iter().map(|scenario| scenario.name.to_owned()).collect();
    let tested: BTreeSet<_> = QUICK.iter().map(|test| test.replace('_', "-")).collect();
    assert_eq!(tested, names);
}
