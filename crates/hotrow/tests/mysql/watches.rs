//! Tables that a lane watches: a change is seen by the batch that it concerns, and does not wait for an idle lane.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use hotrow_mariadb::PrivateMariaDb;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::client::{Client, SESSION_TRACK, UNUSUAL};
use crate::lanes::{SELL, Stop, shop};
use crate::{PACKING, root, url};

/// Notes which connection runs a statement.
const SPY: &str = "create trigger shop.spy before update on shop.item for each row insert into shop.seen values (connection_id())";

fn stage() -> (PrivateMariaDb, Gateway) {
    let server = shop();
    root(server.port()).ok("create table shop.seen (id bigint not null) engine=innodb");
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    (server, gateway)
}

/// A client whose lane is not told of changes of its session. Otherwise, answers would tell of the trigger.
fn untold(gateway: &Gateway) -> Client {
    Client::login_to(gateway.port(), "shop", UNUSUAL | SESSION_TRACK)
}

fn numbers(client: &mut Client, sql: &str) -> BTreeSet<u64> {
    client.rows(sql).iter().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect()
}

#[test]
#[ignore = "long: make test-all"]
fn no_batch_is_committed_under_a_trigger_that_it_was_not_judged_with() {
    let (server, gateway) = stage();
    let mut direct = root(server.port());
    let (round, answered, sessions) = (AtomicUsize::new(0), AtomicU64::new(0), Mutex::new(BTreeSet::new()));
    // Each round has a table of its own: the facts about one with a trigger are kept for a while.
    const ROUNDS: usize = 30;
    for number in 0..ROUNDS {
        direct.ok(&format!("create table shop.t{number} (id int primary key, v int not null) engine=innodb"));
        direct.ok(&format!("insert into shop.t{number} values (1, 0), (2, 0)"));
    }
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while round.load(Ordering::Relaxed) < ROUNDS {
                    // A session that has met a trigger packs no more.
                    let mut client = untold(&gateway);
                    for _ in 0..20 {
                        let number = round.load(Ordering::Relaxed).min(ROUNDS - 1);
                        client.ok(&format!("update shop.t{number} set v = v + 1 where id = 1"));
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    let mut own = numbers(&mut client, "select connection_id()");
                    sessions.lock().unwrap().append(&mut own);
                }
            });
        }
        for number in 0..ROUNDS {
            let packed = gateway.metric("packed_units_total");
            until("statements are packed", || gateway.metric("packed_units_total") > packed + 20);
            if number % 3 == 0 {
                direct.ok(&format!("delete from shop.t{number} where id = {}", 1 + number % 2));
            }
            direct.ok(&format!(
                "create trigger shop.spy{number} before update on shop.t{number} for each row insert into shop.seen values (connection_id())"
            ));
            let before = answered.load(Ordering::Relaxed);
            until("statements are answered", || answered.load(Ordering::Relaxed) > before + 20);
            round.fetch_add(1, Ordering::Relaxed);
        }
    });
    let seen = numbers(&mut direct, "select distinct id from shop.seen");
    let sessions = sessions.into_inner().unwrap();
    assert!(!seen.is_empty() && seen.is_subset(&sessions), "{seen:?} are not all of {sessions:?}");
}

/// A look at a watched table cannot tell whether it was closed, if it is empty.
#[test]
#[ignore = "long: make test-all"]
fn a_trigger_on_a_table_that_becomes_empty_is_seen() {
    let (server, gateway) = stage();
    let mut direct = root(server.port());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // An idle lane watches nothing. A busy one leaves a table to a change at its next statement.
        scope.spawn(|| {
            let mut client = untold(&gateway);
            while !stop.load(Ordering::Relaxed) {
                client.ok(SELL);
            }
        });
        let _stop = Stop(&stop);
        for (number, (event, sql)) in [
            ("insert", "insert into shop.t (id, v) values (2, 1)"),
            ("delete", "delete from shop.t where id = 1"),
            ("insert", "replace into shop.t (id, v) values (2, 1)"),
        ]
        .into_iter()
        .cycle()
        .take(12)
        .enumerate()
        {
            let table = format!("shop.t{number}");
            let mut client = untold(&gateway);
            direct.ok(&format!("create table {table} (id int primary key, v int not null) engine=innodb"));
            client.ok(&format!("insert into {table} (id, v) values (1, 1)"));
            client.ok(&format!("update {table} set v = v + 1 where id = 1"));
            if event == "insert" {
                client.ok(&format!("delete from {table} where id = 1"));
            }
            direct.ok("delete from shop.seen");
            direct.ok(&format!(
                "create trigger shop.spy{number} before {event} on {table} for each row insert into shop.seen values (connection_id())"
            ));
            client.ok(&sql.replace("shop.t", &table));
            let own = numbers(&mut client, "select connection_id()");
            assert_eq!(numbers(&mut direct, "select id from shop.seen"), own, "{sql}");
        }
    });
    let packed = gateway.metric("packed_units_total");
    assert!(
        packed > 32,
        "{packed} statements were packed before the triggers, and those that keep the lane busy"
    );
}

#[test]
fn an_idle_lane_lets_a_table_be_changed() {
    let (server, gateway) = stage();
    let mut client = root(gateway.port());
    let mut direct = root(server.port());
    direct.ok("set lock_wait_timeout = 20");
    for ddl in ["alter table shop.item comment 'x'", "lock tables shop.item write", SPY] {
        for _ in 0..3 {
            client.ok(SELL);
        }
        direct.ok(ddl);
        direct.ok("unlock tables");
    }
}

#[test]
fn most_batches_do_not_ask_for_definitions() {
    let (server, gateway) = stage();
    let mut direct = root(server.port());
    direct.ok("set global log_output = 'TABLE'");
    direct.ok("set global general_log = 1");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = root(gateway.port());
                for _ in 0..60 {
                    assert_eq!(client.ok(SELL).affected, 1);
                }
            });
        }
    });
    direct.ok("set global general_log = 0");
    let mut count = |text: &str| {
        let sql = format!("select count(*) from mysql.general_log where argument like '{text}'");
        direct.value(&sql).parse::<u64>().unwrap()
    };
    let (asked, looked) = (count("select concat(hotrow.marked(%"), count("handler h0 read `PRIMARY` prev"));
    assert!(asked < looked, "{asked} questions, and {looked} looks at a watched table");
}

#[test]
fn a_user_who_cannot_read_a_table_is_packed_all_the_same() {
    let (server, gateway) = stage();
    let mut direct = root(server.port());
    direct.ok("create user ann@'127.0.0.1' identified by 'pw'");
    direct.ok("grant execute on hotrow.* to ann@'127.0.0.1'");
    direct.ok("grant insert on shop.ledger to ann@'127.0.0.1'");
    let mut client = Client::login(gateway.port(), "ann", "pw").unwrap();
    for id in 0..5 {
        assert_eq!(client.ok(&format!("insert into shop.ledger (id, item) values ({id}, 1)")).affected, 1);
    }
    assert_eq!(gateway.metric("packed_units_total"), 5);
    assert_eq!(direct.value("select count(*) from shop.ledger"), "5");
}
