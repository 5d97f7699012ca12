//! What one client or outsider does to one table or account does not hold up the others.

use std::thread;
use std::time::{Duration, Instant};

use hotrow_mysql_wire::command::Command;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::lanes::{SELL, shop};
use crate::rights::{ann, create_ann};
use crate::{PACKING, root, url};

#[test]
#[ignore = "long: make test-all"]
fn a_locked_table_does_not_hold_up_the_others_of_its_lane() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut outsider = root(server.port());
    let mut client = root(gateway.port());
    client.ok(SELL);
    client.ok("insert into shop.ledger (id, item) values (1, 1)");
    outsider.ok("lock tables shop.ledger write");
    thread::scope(|scope| {
        let waiting: Vec<_> = (2..6)
            .map(|id| {
                let insert = format!("insert into shop.ledger (id, item) values ({id}, 1)");
                let mut client = root(gateway.port());
                scope.spawn(move || client.ok(&insert).affected)
            })
            .collect();
        until("they have met the lock", || gateway.metric("blocked_units_total") >= 1);
        let before = gateway.metric("batches_rolled_back_total");
        for _ in 0..50 {
            assert_eq!(client.ok(SELL).affected, 1);
        }
        assert_eq!(gateway.metric("batches_rolled_back_total"), before, "the others' batches go on");
        outsider.ok("unlock tables");
        let inserted: u64 = waiting.into_iter().map(|one| one.join().unwrap()).sum();
        assert_eq!(inserted, 4);
    });
}

/// Otherwise the last of many clients would get the server's error after as many times its longest wait for a lock.
#[test]
fn statements_behind_a_lock_wait_for_it_together_and_other_rows_are_served() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let (mut outsider, mut direct) = (root(server.port()), root(server.port()));
    // More rows than a lane takes for single ones: it then holds back all statements on the table.
    const LOCKED: usize = 6;
    for id in 11..=11 + LOCKED {
        direct.ok(&format!("insert into shop.item values ({id}, 9, 0)"));
    }
    outsider.ok("begin");
    outsider.ok(&format!("update shop.item set stock = 8 where id > 11 and id <= 11 + {LOCKED}"));
    let sell = |id: usize| format!("update shop.item set sold = sold + 1 where id = {id}");
    thread::scope(|scope| {
        for number in 0..2 * LOCKED {
            let (sell, port) = (sell(12 + number % LOCKED), gateway.port());
            scope.spawn(move || assert_eq!(root(port).ok(&sell).affected, 1));
        }
        let waiting = "select count(*) from information_schema.processlist where info like 'update shop.item set sold%'";
        until("all of them wait at the server", || direct.value(waiting) == (2 * LOCKED).to_string());
        assert_eq!(root(gateway.port()).ok(&sell(11)).affected, 1);
        outsider.ok("rollback");
    });
    let sold = 2 * LOCKED + 1;
    assert_eq!(direct.value("select sum(sold) from shop.item"), sold.to_string());
}

#[test]
fn the_facts_about_a_table_that_is_being_made_are_not_waited_for() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut maker = root(server.port());
    let thread = maker.value("select connection_id()");
    let mut direct = root(server.port());
    let (mut one, mut other) = (root(gateway.port()), root(gateway.port()));
    thread::scope(|scope| {
        // A statement that lasts until it is killed.
        scope.spawn(|| maker.command(Command::Query, b"create table shop.late as select sleep(600) as id"));
        let making = "select count(*) from information_schema.processlist where info like 'create table shop.late%' and state like 'User sleep%'";
        until("the table is being made", || direct.value(making) == "1");
        scope.spawn(|| one.try_ok("update shop.late set id = 2 where id = 1"));
        let waits = "select count(*) from information_schema.processlist where info like 'update shop.late%'";
        until("a statement waits for the table", || direct.value(waits) == "1");
        for _ in 0..5 {
            assert_eq!(other.ok(SELL).affected, 1);
        }
        direct.ok(&format!("kill query {thread}"));
    });
    assert_eq!(direct.value("select sold from shop.item where id = 1"), "5");
}

/// A session goes on after its user's password has changed, as without a gateway. Only a lane cannot log in any more.
#[test]
fn a_lane_that_is_refused_is_not_waited_for() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    create_ann(&mut direct, "select, update");
    let mut client = ann(gateway.port());
    client.ok(SELL);
    assert_eq!(gateway.metric("packed_units_total"), 1);
    direct.ok("alter user ann identified by 'other'");
    let lane = "select is_used_lock(concat('hotrow.', lane)) from hotrow.batch";
    let thread = direct.value(lane);
    direct.ok(&format!("kill {thread}"));
    until("the lane is gone", || gateway.metric("lane_connections_lost_total") == 1);
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(client.ok(SELL).affected, 1);
    }
    // Each wait for the lane would take server_wait_ms, which is 5 s.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
