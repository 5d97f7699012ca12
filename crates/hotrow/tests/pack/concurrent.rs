//! Many concurrent clients on the same counters and items, through two gateways and directly: one order explains every
//! answer. Without faults, which are in `faults.rs`.

use hotrow_testkit::Gateway;
use hotrow_testkit::line::{Line, until};

use crate::client::connect;
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
    while !clients.are_done() {
        clients.flow(10);
    }
    let (operations, errors) = clients.check(direct).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(operations > 1_000 && errors.is_empty(), "{operations} operations, {errors:?}");
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
    let mut value = 0;
    let before = gateway.metric("merged_units_total");
    // A gateway can know only after a call where the counter is.
    until("calls that meet are merged", || {
        value += 1 + MEET;
        assert_eq!(answer_of(&mut servers[0], &format!("begin; {call}")), (value - MEET).to_string());
        for client in &mut *clients {
            client.put_query(&call);
            client.send().unwrap();
        }
        let waits = |server: &mut Line| answer_of(server, "select count(*) from pg_locks where not granted");
        until("a call waits for the row", || servers.iter_mut().any(|server| waits(server) != "0"));
        assert_eq!(servers[0].query("commit").error(), None);
        let mut answers: Vec<usize> = clients
            .iter_mut()
            .map(|client| client.answer().rows()[0][0].clone().unwrap().parse().unwrap())
            .collect();
        answers.sort_unstable();
        assert!(answers.into_iter().eq(value - MEET + 1..=value));
        gateway.metric("merged_units_total") > before
    });
}

/// The only value that these statements return.
fn answer_of(line: &mut Line, statements: &str) -> String {
    let answer = line.query(statements);
    assert_eq!(answer.error(), None, "{statements}");
    answer.rows().remove(0).remove(0).unwrap()
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
