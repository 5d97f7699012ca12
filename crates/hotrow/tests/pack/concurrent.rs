//! Many concurrent clients on the same counters and items, through two gateways and directly: one order explains every
//! answer. Without faults, which are in `faults.rs`.

use hotrow_testkit::Gateway;

use crate::history::Clients;
use crate::installed;

const CLIENTS: usize = 18;

#[test]
fn answers_of_two_gateways_and_direct_clients_have_an_order() {
    let direct = installed();
    let gateways = [Gateway::start(&[]), Gateway::start(&["--lanes", "2"])];
    let ports = [gateways[0].port(), gateways[1].port(), direct];
    let clients = Clients::undisturbed(CLIENTS, direct, &ports, "crowd.");
    while !clients.are_done() {
        clients.flow(10);
    }
    let (operations, errors) = clients.check(direct).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(operations > 1_000 && errors.is_empty(), "{operations} operations, {errors:?}");
    let merged = gateways.iter().map(|gateway| gateway.metric("merged_units_total")).sum::<u64>();
    assert!(merged > 0, "no calls were merged");
}

#[test]
#[ignore = "long: make test-all"]
fn answers_of_direct_clients_have_an_order() {
    let direct = installed();
    let clients = Clients::undisturbed(CLIENTS, direct, &[direct], "direct.");
    while !clients.are_done() {
        clients.flow(10);
    }
    let (operations, errors) = clients.check(direct).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(operations > 1_000 && errors.is_empty(), "{operations} operations, {errors:?}");
}
