//! While commits are slow, several lanes of a pool work at the same time, and what each promises still holds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hotrow_mariadb::{PASSWORD, PrivateMariaDb, USER};
use hotrow_mysql_wire::message::Err as ErrPacket;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::client::Client;
use crate::lanes::{Stop, shop_with};
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
