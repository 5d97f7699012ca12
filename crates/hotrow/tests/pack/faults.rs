//! The same clients during faults: killed gateways, a killed server, terminated backends, and connections that are cut
//! between a commit and its answer. Clients retry with the same request ID, and one order still explains every answer.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::Line;
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};

use crate::history::Clients;
use crate::{installed, migrate};

const CLIENTS: usize = 18;

/// Asserts that an order was found, and that the faults affected some client.
fn check(clients: Clients, direct: u16, test: &str) {
    let (operations, errors) = clients.check(direct).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{test}: {operations} operations; retried after {errors:#?}");
}

#[test]
fn cut_connections_lose_and_repeat_no_unit() {
    let direct = installed();
    let proxy = Proxy::start(direct);
    let mut random = fastrand::Rng::new();
    // A lane's login sends about 9,500 bytes and receives 1,100. Most faults are behind it, in a batch.
    let faults = [
        (Way::ToServer, How::Cut, 2_000..24_000),
        (Way::ToGateway, How::Cut, 600..4_000),
        (Way::ToGateway, How::Swallow, 600..4_000),
    ];
    proxy.for_new(move || {
        let (way, how, bytes) = faults[random.usize(0..3)].clone();
        Some(Fault { way, after: After::Bytes(random.usize(bytes)), how })
    });
    let gateways =
        [Gateway::in_front_of(&proxy.url(), &[]), Gateway::in_front_of(&proxy.url(), &["--lanes", "1"])];
    let ports = [gateways[0].port(), gateways[1].port(), direct];
    let clients = Clients::disturbed(CLIENTS, direct, &ports, "cut.");
    while !clients.are_done() {
        clients.flow(40);
        if proxy.cuts() > 0 {
            proxy.cut_others(); // connections of sessions, and those over which the gateway learns what it can pack
        }
    }
    proxy.disarm();
    assert!(proxy.cuts() > 0, "no lane was cut");
    let merged = gateways.iter().map(|gateway| gateway.metric("merged_units_total")).sum::<u64>();
    assert!(merged > 0, "no calls were merged");
    println!("{} lanes cut", proxy.cuts());
    check(clients, direct, "connections cut");
}

#[test]
fn terminated_backends_lose_and_repeat_no_unit() {
    let server = PrivateServer::builder().label("packterm").start().unwrap();
    migrate(&server.url());
    let direct = server.port();
    let gateways = [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &[])];
    let ports = [gateways[0].port(), direct, gateways[1].port()];
    let clients = Clients::disturbed(CLIENTS, direct, &ports, "terminated.");
    let mut line = Line::connect(direct, "public").unwrap().expect("the server accepts the login");
    let one = "select pg_terminate_backend(pid) from pg_stat_activity
        where pid <> pg_backend_pid() and client_port is not null and state <> 'idle' limit 1";
    let mut terminated = 0;
    while !clients.are_done() {
        clients.flow(15);
        terminated += line.query(one).rows().len();
    }
    assert!(terminated > 10, "only {terminated} backends were terminated");
    check(clients, direct, "backends terminated");
}

#[test]
fn killed_gateways_and_a_killed_server_lose_and_repeat_no_unit() {
    let server = PrivateServer::builder().label("packcrash").start().unwrap();
    migrate(&server.url());
    let mut gateways = [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &[])];
    let ports = [gateways[0].port(), gateways[1].port(), server.port()];
    let clients = Clients::disturbed(CLIENTS, server.port(), &ports, "killed.");
    let mut round = 0;
    while !clients.are_done() {
        clients.flow(100);
        round += 1;
        if round % 3 == 0 {
            server.kill_dash_nine().unwrap();
            server.restart().unwrap();
            continue;
        }
        let next = Gateway::in_front_of(&server.url(), &[]);
        let last = &mut gateways[round % 2];
        clients.redirect(last.port(), next.port());
        std::mem::replace(last, next).kill_dash_nine();
    }
    assert!(round >= 6, "only {round} kills");
    check(clients, server.port(), "gateways and server killed");
}
