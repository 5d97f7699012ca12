//! `kill -9` of server, backends and gateways in a loop under load, for some seconds in `make test` and for five
//! minutes in `make faults`.

use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, migrate};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::checker::check;
use crate::load::{Load, Outcome};
use crate::{CLIENTS, CRASH, prepare, summary};

/// The environment variable with the test's duration in seconds.
const SECONDS: &str = "HOTROW_FAULT_SECONDS";
const SECONDS_BY_DEFAULT: u64 = 8;
/// More than a gateway with this number of clients ever needs.
const RESIDENT_MAX: u64 = 100 << 20;

#[test]
#[ignore = "long: make test-all"]
fn repeated_kills_lose_no_unit_and_apply_none_twice() {
    let seconds =
        std::env::var(SECONDS).map_or(SECONDS_BY_DEFAULT, |text| text.parse().expect("a number of seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let server = PrivateServer::builder().label("marathon").start().unwrap();
    prepare(server.port(), "marathon");
    migrate(&server.url());
    let mut gateways = [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &[])];
    let load = Load::start(CLIENTS, gateways[0].port(), "marathon");
    let (mut random, mut kills, mut resident) = (fastrand::Rng::with_seed(seconds), [0; 3], 0);
    while Instant::now() < end || kills.contains(&0) {
        load.flows(random.u64(1..400));
        resident = gateways.iter().map(Gateway::resident).max().unwrap().max(resident);
        let which = random.usize(0..kills.len());
        match which {
            0 => {
                server.kill_dash_nine().unwrap();
                server.restart().unwrap();
                for gateway in &gateways {
                    let idle = gateway.metric("lanes_connected") == 0;
                    let logged = gateway.log().contains("a lane has lost its connection to the server");
                    assert!(logged || idle, "{}", gateway.log());
                }
            }
            1 => {
                let lanes = "select pid from pg_stat_activity where application_name like 'hotrow%lane%'";
                let lanes = server.query(lanes).unwrap_or_default(); // the server may still be recovering
                let Some(row) = random.choice(&lanes) else { continue };
                kill(Pid::from_raw(row[0].as_deref().unwrap().parse().unwrap()), Signal::SIGKILL).unwrap();
            }
            _ => {
                gateways.swap(0, 1);
                load.redirect(gateways[0].port());
                let next = Gateway::in_front_of(&server.url(), &[]);
                std::mem::replace(&mut gateways[1], next).kill_dash_nine();
            }
        }
        kills[which] += 1;
    }
    load.flows(500);
    let records = load.stop();
    let [servers, backends, killed] = kills;
    summary(
        &format!("{seconds} s, killed {servers} servers, {backends} backends, {killed} gateways"),
        &records,
    );
    println!("at most {} MiB in a gateway", resident >> 20);
    check(server.port(), "marathon", &records);
    assert!(records.count(Outcome::Unknown) > 0, "the kills interrupted no unit");
    assert_eq!(records.unexpected(&CRASH), []);
    assert!(resident < RESIDENT_MAX, "{resident} bytes");
}
