//! Many concurrent clients on the same counters and items, through two gateways and directly: one order explains every
//! answer. Without faults, which are in `faults.rs`.

use hotrow_testkit::Gateway;
use hotrow_testkit::line::{Line, until};

use crate::client::{connect, value};
use crate::history::Clients;
use crate::installed;

const CLIENTS: usize = 18;
/// Calls that meet on one counter.
const MEET: usize = 8;

#[test]
fn answers_of_two_gateways_and_direct_clients_have_an_order() {
    let direct = installed();
    let gateways = [Gateway::start(&[]), Gateway::start(&["--lanes", "2"])];
    let ports = [gateways[0].port(), gateways[1].port(), direct];
    let clients = Clients::undisturbed(CLIENTS, direct, &ports, "crowd.");
    clients.assert_order(direct);
    for (number, gateway) in gateways.iter().enumerate() {
        calls_meet(gateway, &[direct], &format!("meet{number}"));
    }
}

/// Holds the row of a counter until calls of this gateway's clients wait for it: the calls that came meanwhile are merged, and one
/// after another. Needs no luck: clients that nothing holds up can miss each other. The first of `servers` runs the
/// transaction that holds the row.
pub fn calls_meet(gateway: &Gateway, servers: &[u16], counter: &str) {
    let servers = &mut servers.iter().map(|port| connect(*port).unwrap()).collect::<Vec<_>>();
    let clients = &mut (0..MEET).map(|_| connect(gateway.port()).unwrap()).collect::<Vec<_>>();
    let call = format!("select value from hotrow.increment('{counter}', 1)");
    let mut count = 0;
    let before = gateway.metric("merged_units_total");
    // A gateway can know only after a call where the counter is.
    until("calls that meet are merged", || {
        count += 1 + MEET;
        assert_eq!(value(&mut servers[0], &format!("begin; {call}")), (count - MEET).to_string());
        for client in &mut *clients {
            client.put_query(&call);
            client.send().unwrap();
        }
        let waits = |server: &mut Line| value(server, "select count(*) from pg_locks where not granted");
        until("a call waits for the row", || servers.iter_mut().any(|server| waits(server) != "0"));
        assert_eq!(servers[0].query("commit").error(), None);
        let mut answers: Vec<usize> = clients
            .iter_mut()
            .map(|client| client.answer().rows()[0][0].clone().unwrap().parse().unwrap())
            .collect();
        answers.sort_unstable();
        assert!(answers.into_iter().eq(count - MEET + 1..=count));
        gateway.metric("merged_units_total") > before
    });
}

#[test]
#[ignore = "long: make test-all"]
fn answers_of_direct_clients_have_an_order() {
    let direct = installed();
    let clients = Clients::undisturbed(CLIENTS, direct, &[direct], "direct.");
    clients.assert_order(direct);
}
