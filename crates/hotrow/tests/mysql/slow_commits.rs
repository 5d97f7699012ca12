//! While commits are slow, several lanes of a pool work at the same time, and what each promises still holds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hotrow_mariadb::{PASSWORD, PrivateMariaDb, USER};
use hotrow_mysql_wire::message::Err as ErrPacket;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::client::Client;
use crate::lanes::{Stop, shop_with};
use crate::rights::{ann, create_ann};
use crate::{PACKING, root, url};

/// Each commit waits so long for a thousand others, unless one of them waits for its locks.
const SLOW: [&str; 2] = ["--binlog-commit-wait-count=1000", "--binlog-commit-wait-usec=4000"];
const ROWS: usize = 60;
const CLIENTS: usize = 80;

/// The sales of each item: acknowledged, and of unknown outcome.
struct Sales {
    acknowledged: [AtomicU64; ROWS],
    unknown: [AtomicU64; ROWS],
}

impl Sales {
    fn answered(&self) -> u64 {
        self.acknowledged.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

fn stage() -> (PrivateMariaDb, Gateway) {
    let server = shop_with(&SLOW);
    let mut direct = root(server.port());
    direct.ok("delete from shop.item");
    for id in 0..ROWS {
        direct.ok(&format!("insert into shop.item values ({id}, 1000000, 0)"));
    }
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    (server, gateway)
}

/// Sells items in a fixed pattern that mixes all rows, and one of them more than the others, until it is stopped.
fn sell(number: usize, port: u16, sales: &Sales, stop: &AtomicBool) {
    let mut one = number;
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::login(port, USER, PASSWORD) else { continue };
        while !stop.load(Ordering::Relaxed) {
            one += 7;
            let item = if one.is_multiple_of(3) { 0 } else { one % ROWS };
            let sql = format!("update shop.item set sold = sold + 1 where id = {item}");
            match client.try_run(&sql) {
                Some(Ok(ok)) => sales.acknowledged[item].fetch_add(ok.affected, Ordering::Relaxed),
                Some(Err(ErrPacket { code: 1105, .. })) => {
                    sales.unknown[item].fetch_add(1, Ordering::Relaxed)
                }
                Some(Err(error)) => panic!("{error}"),
                None => {
                    sales.unknown[item].fetch_add(1, Ordering::Relaxed);
                    break;
                }
            };
        }
    }
}

#[test]
fn lanes_beside_each_other_lose_nothing_and_run_nothing_twice() {
    let (server, gateway) = stage();
    let none = || [const { AtomicU64::new(0) }; ROWS];
    let (sales, stop) = (Sales { acknowledged: none(), unknown: none() }, AtomicBool::new(false));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (port, sales, stop) = (gateway.port(), &sales, &stop);
            scope.spawn(move || sell(number, port, sales, stop));
        }
        let _stop = Stop(&stop);
        let more = |number: u64| {
            let before = sales.answered();
            until("statements are answered", || sales.answered() > before + number);
        };
        until("several lanes work", || gateway.metric("lanes_connected") >= 3);
        for _ in 0..2 {
            more(1_000);
            server.kill_dash_nine();
            server.restart().unwrap();
        }
        more(500);
    });
    let mut direct = root(server.port());
    for (item, acknowledged) in sales.acknowledged.iter().enumerate() {
        let sold: u64 =
            direct.value(&format!("select sold from shop.item where id = {item}")).parse().unwrap();
        let acknowledged = acknowledged.load(Ordering::Relaxed);
        let unknown = sales.unknown[item].load(Ordering::Relaxed);
        assert!(
            (acknowledged..=acknowledged + unknown).contains(&sold),
            "item {item}: {acknowledged} acknowledged, {unknown} unknown, {sold} sold"
        );
    }
}

#[test]
fn a_further_lane_that_is_refused_leaves_its_statements_to_the_first_one() {
    let (server, gateway) = stage();
    let mut direct = root(server.port());
    const SELLERS: usize = 40;
    create_ann(&mut direct, "select, update");
    // The sessions, and the first lane. Its pool has been tried before that, by a connection that has ended.
    direct.ok(&format!("alter user ann with max_user_connections {}", SELLERS + 2));
    let mut first = ann(gateway.port());
    first.ok("update shop.item set sold = sold + 1 where id = 0");
    let (stop, sold) = (AtomicBool::new(false), AtomicU64::new(1));
    let clients: Vec<Client> = (0..SELLERS).map(|_| ann(gateway.port())).collect();
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        for (number, mut client) in clients.into_iter().enumerate() {
            let (stop, sold) = (&stop, &sold);
            scope.spawn(move || {
                let sql = format!("update shop.item set sold = sold + 1 where id = {number}");
                while !stop.load(Ordering::Relaxed) {
                    sold.fetch_add(client.ok(&sql).affected, Ordering::Relaxed);
                }
            });
        }
        until("a lane is refused", || gateway.log().contains("a lane cannot connect"));
        let counts = || ["packed_units_total", "passed_through_units_total"].map(|name| gateway.metric(name));
        let [packed, passed] = counts();
        until("statements are packed", || counts()[0] > packed + 2_000);
        let passed = counts()[1] - passed;
        assert!(passed < 500, "those of a lane that was refused run on their own: {passed}");
        assert_eq!(gateway.metric("lanes_connected"), 1);
    });
    assert_eq!(direct.value("select sum(sold) from shop.item"), sold.into_inner().to_string());
}
