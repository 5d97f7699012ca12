//! Statements that are packed: exact under load, after crashes, beside other transactions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hotrow_mariadb::{PASSWORD, PrivateMariaDb, USER};
use hotrow_mysql_wire::message::{Err as ErrPacket, Ok as OkPacket};
use hotrow_testkit::line::until;
use hotrow_testkit::{Gateway, mariadb};

use crate::client::Client;
use crate::{PACKING, install, root, url};

/// A server with what packing needs, and a shop.
pub fn shop() -> PrivateMariaDb {
    shop_with(&[])
}

/// The same with these options of the server.
pub fn shop_with(options: &[&str]) -> PrivateMariaDb {
    let server = mariadb(options);
    install(&server);
    let mut direct = root(server.port());
    direct.ok("create database shop");
    direct.ok("create table shop.item (id int primary key, stock int not null, sold int not null, check (stock >= 0)) engine=innodb");
    direct.ok("create table shop.ledger (id bigint primary key, item int not null) engine=innodb");
    direct.ok("insert into shop.item values (1, 1000000, 0), (2, 1000000, 0), (3, 5, 0)");
    server
}

/// The same, and a gateway that packs.
fn stage() -> (PrivateMariaDb, Gateway) {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    (server, gateway)
}

pub const SELL: &str = "update shop.item set stock = stock - 1, sold = sold + 1 where id = 1 and stock >= 1";

/// Sets the flag at the end of the work beside it, also if that panics.
pub struct Stop<'a>(pub &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does this work while clients sell item 1. It can look at the number of items sold, which is returned.
fn while_selling(gateway: &Gateway, work: impl FnOnce(&dyn Fn() -> u64)) -> u64 {
    let (stop, sold) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = root(gateway.port());
                while !stop.load(Ordering::Relaxed) {
                    sold.fetch_add(client.ok(SELL).affected, Ordering::Relaxed);
                }
            });
        }
        let _stop = Stop(&stop);
        work(&|| sold.load(Ordering::Relaxed));
    });
    sold.into_inner()
}

/// A counter of the server.
pub fn counter(direct: &mut Client, name: &str) -> u64 {
    direct.rows(&format!("show global status like '{name}'"))[0][1].as_ref().unwrap().parse().unwrap()
}

#[test]
fn a_hot_row_is_exact_and_commits_are_shared() {
    let (server, gateway) = stage();
    let mut direct = root(server.port());
    let before = counter(&mut direct, "Binlog_commits");
    const CLIENTS: u64 = 64;
    const EACH: u64 = 30;
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let port = gateway.port();
            scope.spawn(move || {
                let mut client = root(port);
                for one in 0..EACH {
                    assert_eq!(client.ok(SELL), OkPacket { affected: 1, insert_id: 0, status: 2 });
                    let id = number * EACH + one;
                    let insert = format!("insert into shop.ledger (id, item) values ({id}, 1)");
                    assert_eq!(client.ok(&insert).affected, 1);
                }
            });
        }
    });
    let sold = CLIENTS * EACH;
    assert_eq!(direct.value("select sold from shop.item where id = 1"), sold.to_string());
    assert_eq!(direct.value("select count(*) from shop.ledger"), sold.to_string());
    let commits = counter(&mut direct, "Binlog_commits") - before;
    assert!(commits < sold, "{commits} commits of {} statements", 2 * sold);
}

#[test]
fn an_error_or_a_warning_of_one_statement_is_its_own() {
    let (server, gateway) = stage();
    let sold = while_selling(&gateway, |_| {
        let mut client = root(gateway.port());
        let mut direct = root(server.port());
        for sql in [
            "insert into shop.item (id, stock, sold) values (1, 1, 1)",
            "update shop.item set stock = stock - 9 where id = 3",
            "update shop.item set stock = 99999999999 where id = 2",
            "insert into shop.item (id) values (9)",
            "update shop.item set stock = 'x' where id = 2",
        ] {
            assert_eq!(client.try_ok(sql), direct.try_ok(sql), "{sql}");
            assert_eq!(client.rows("show warnings"), direct.rows("show warnings"), "{sql}");
            client = root(gateway.port()); // SHOW WARNINGS has ended packing
        }
        client.ok("set sql_mode = ''");
        direct.ok("set sql_mode = ''");
        let sql = "update shop.item set stock = '7x' where id = 2";
        assert_eq!(client.ok(sql).affected, 1);
        let warnings = client.rows("show warnings");
        assert_eq!((warnings.len(), direct.ok(sql).affected), (1, 0));
        assert_eq!(warnings, direct.rows("show warnings"));
    });
    assert_eq!(root(server.port()).value("select sold from shop.item where id = 1"), sold.to_string());
    assert!(sold > 0);
}

#[test]
#[ignore = "long: make test-all"]
fn statements_that_fail_do_not_roll_back_those_beside_them() {
    let (server, gateway) = stage();
    let mut direct = root(server.port());
    direct.ok("insert into shop.ledger values (1, 1)");
    let before = counter(&mut direct, "Com_rollback");
    let errors = Mutex::new(Vec::new());
    let sold = while_selling(&gateway, |answered| {
        thread::scope(|scope| {
            for number in 0..8 {
                let (gateway, errors) = (&gateway, &errors);
                scope.spawn(move || {
                    let mut client = root(gateway.port());
                    for one in 0..20 {
                        let sql = match (number + one) % 3 {
                            0 => "update shop.item set stock = stock - 1 where id = 3",
                            1 => "insert into shop.ledger (id, item) values (1, 1)",
                            _ => "insert into shop.ledger (id, item) values (1, 'x')",
                        };
                        if let Err(error) = client.try_ok(sql) {
                            errors.lock().unwrap().push(error.code);
                        }
                    }
                });
            }
        });
        let before = answered();
        until("statements are answered", || answered() > before);
    });
    assert_eq!(direct.value("select sold from shop.item where id = 1"), sold.to_string());
    assert_eq!(direct.value("select stock from shop.item where id = 3"), "0");
    let errors = errors.into_inner().unwrap();
    let count = |code| errors.iter().filter(|one| **one == code).count();
    assert_eq!(count(4025) + count(1062) + count(1366), errors.len(), "{errors:?}");
    assert_eq!(errors.len(), 160 - 5, "five were in stock");
    assert_eq!(counter(&mut direct, "Com_rollback"), before, "no batch was rolled back");
}

#[test]
fn what_a_packed_statement_leaves_is_seen_by_the_next() {
    let (_server, gateway) = stage();
    let mut client = root(gateway.port());
    for (sql, rows) in [(SELL, "1"), ("update shop.item set stock = 5 where id = 3", "0")] {
        client.ok(sql);
        assert_eq!(client.value("select row_count()"), rows, "{sql}");
        client = root(gateway.port());
    }
    client.ok("set sql_mode = ''");
    client.ok("update shop.item set sold = '7x' where id = 2"); // leaves a warning
    client.ok(SELL);
    assert_eq!(client.rows("show warnings").len(), 0);
}

#[test]
fn an_outsiders_lock_holds_up_only_its_row() {
    let (server, gateway) = stage();
    let mut outsider = root(server.port());
    outsider.ok("begin");
    outsider.ok("update shop.item set sold = sold where id = 2");
    let before = counter(&mut outsider, "Com_rollback");
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let mut client = root(gateway.port());
            client.ok("update shop.item set sold = sold + 1 where id = 2")
        });
        let mut watcher = root(server.port());
        // InnoDB's own tables of waits are refreshed only when nobody has read them for 0.1 s.
        let waits = "select count(*) from information_schema.processlist where info like 'update shop.item set sold = sold + 1%'";
        until("a session waits for the lock", || watcher.value(waits) == "1");
        let mut client = root(gateway.port());
        for _ in 0..20 {
            assert_eq!(client.ok(SELL).affected, 1);
        }
        outsider.ok("commit");
        assert_eq!(blocked.join().unwrap().affected, 1);
        assert_eq!(counter(&mut outsider, "Com_rollback"), before, "no batch was rolled back");
    });
}

#[test]
fn kill_reaches_a_statement_that_waits_in_a_lane() {
    let (server, gateway) = stage();
    let mut outsider = root(server.port());
    outsider.ok("begin");
    outsider.ok("update shop.item set sold = sold where id = 2");
    let sell = "update shop.item set sold = sold + 1 where id = 2";
    let waits = "select count(*) from information_schema.processlist where info like 'update shop.item set sold = sold + 1%'";
    thread::scope(|scope| {
        let first = scope.spawn(|| root(gateway.port()).ok(sell).affected);
        until("a session waits for the lock", || outsider.value(waits) == "1");
        // It waits for the first one.
        let mut second = root(gateway.port());
        let id = second.greeting.thread;
        let killed = scope.spawn(move || second.try_ok(sell).unwrap_err());
        let mut killer = root(gateway.port());
        until("the statement is killed", || {
            let _ = killer.try_ok(&format!("kill query {id}")); // it can have ended
            killed.is_finished()
        });
        let error = killed.join().unwrap();
        assert_eq!((error.code, error.sqlstate.as_str()), (1317, "70100"), "{error}");
        outsider.ok("commit");
        assert_eq!(first.join().unwrap(), 1);
    });
    assert_eq!(outsider.value("select sold from shop.item where id = 2"), "1");
}

#[test]
#[ignore = "long: make test-all"]
fn nothing_acknowledged_is_lost_and_nothing_runs_twice_when_the_server_is_killed() {
    let (server, gateway) = stage();
    let (acknowledged, unknown, next) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let Ok(mut client) = Client::login(gateway.port(), USER, PASSWORD) else { continue };
            loop {
                let id = next.fetch_add(1, Ordering::Relaxed);
                // The row and the ledger change in two statements, and each is counted by itself.
                let insert = format!("insert into shop.ledger (id, item) values ({id}, 1)");
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                match client.try_run(SELL) {
                    Some(Ok(ok)) => acknowledged.fetch_add(ok.affected, Ordering::Relaxed),
                    Some(Err(ErrPacket { code: 1105, .. })) | None => unknown.fetch_add(1, Ordering::Relaxed),
                    Some(Err(error)) => panic!("{error}"),
                };
                match client.try_run(&insert) {
                    Some(Ok(_)) => {}
                    Some(Err(ErrPacket { code: 1105, .. })) | None => break,
                    Some(Err(error)) => panic!("{error}"), // a duplicate would be a statement that ran twice
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(work);
        }
        let answered = || acknowledged.load(Ordering::Relaxed);
        for _ in 0..2 {
            let before = answered();
            until("statements are answered", || answered() > before + 300);
            server.kill_dash_nine();
            server.restart().unwrap();
        }
        let before = answered();
        until("statements are answered again", || answered() > before + 100);
        stop.store(true, Ordering::Relaxed);
    });
    let sold: u64 = root(server.port()).value("select sold from shop.item where id = 1").parse().unwrap();
    let (acknowledged, unknown) = (acknowledged.into_inner(), unknown.into_inner());
    assert!(acknowledged <= sold, "{acknowledged} acknowledged, {sold} in the table");
    assert!(
        sold <= acknowledged + unknown,
        "{acknowledged} acknowledged, {unknown} unknown, {sold} in the table"
    );
}

#[test]
#[ignore = "long: make test-all"]
fn deadlocks_of_lanes_are_run_again() {
    let (server, first) = stage();
    let second = Gateway::in_front_of(&url(&server), &PACKING);
    let sold = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..12_u64 {
            let (port, server, sold) = ([first.port(), second.port()][(number % 2) as usize], &server, &sold);
            scope.spawn(move || {
                // Every third client is an outsider with transactions that lock both rows, in either order.
                let is_outsider = number % 3 == 0;
                let mut client = root(if is_outsider { server.port() } else { port });
                for one in 0..40 {
                    let rows = if (number + one) % 2 == 0 { [1, 2] } else { [2, 1] };
                    let sell = rows.map(|id| format!("update shop.item set sold = sold + 1 where id = {id}"));
                    if !is_outsider {
                        for sql in &sell {
                            sold.fetch_add(client.ok(sql).affected, Ordering::Relaxed);
                        }
                        continue;
                    }
                    client.ok("begin");
                    let both =
                        sell.iter().all(|sql| client.try_ok(sql).is_ok()) && client.try_ok("commit").is_ok();
                    client.ok("rollback");
                    sold.fetch_add(if both { 2 } else { 0 }, Ordering::Relaxed);
                }
            });
        }
    });
    let rows = root(server.port()).value("select sum(sold) from shop.item");
    assert_eq!(rows, sold.into_inner().to_string());
}

#[test]
fn a_lane_whose_connection_or_statement_is_killed_goes_on() {
    let (server, gateway) = stage();
    let sold = while_selling(&gateway, |answered| {
        let mut direct = root(server.port());
        for kill in ["kill", "kill query"].into_iter().cycle().take(40) {
            let before = answered();
            until("statements are answered", || answered() > before + 5);
            let lane = direct.rows("select is_used_lock(concat('hotrow.', lane)) from hotrow.batch");
            if let Some(id) = &lane[0][0] {
                let _ = direct.try_ok(&format!("{kill} {id}")); // it can have ended
            }
        }
        let before = answered();
        until("statements are answered", || answered() > before + 50);
    });
    let mut direct = root(server.port());
    assert_eq!(direct.value("select sold from shop.item where id = 1"), sold.to_string());
}

#[test]
#[ignore = "long: make test-all"]
fn changes_of_a_table_beside_traffic_are_seen_by_the_batch_that_they_concern() {
    let (server, gateway) = stage();
    let sold = while_selling(&gateway, |answered| {
        let mut direct = root(server.port());
        for ddl in [
            "alter table shop.item add column note varchar(9)",
            "create trigger shop.g before update on shop.item for each row set new.note = connection_id()",
            "drop trigger shop.g",
            "alter table shop.item drop column note, add index (stock)",
            "create trigger shop.g before update on shop.item for each row set @left = 1",
            "drop trigger shop.g",
            "optimize table shop.item",
        ] {
            let before = answered();
            until("statements are answered", || answered() > before + 50);
            direct.command(hotrow_mysql_wire::command::Command::Query, ddl.as_bytes());
        }
        let before = answered();
        until("statements are answered", || answered() > before + 50);
    });
    let rows = root(server.port()).value("select sold from shop.item where id = 1");
    assert_eq!(rows, sold.to_string());
}

#[test]
fn a_table_whose_changes_cannot_be_rolled_back_is_passed_through() {
    let (server, gateway) = stage();
    let mut client = root(gateway.port());
    client.ok(SELL);
    root(server.port()).ok("alter table shop.item engine = aria");
    // The lane finds the other engine after it has changed the row, which it cannot undo: it does not say what it cannot know.
    let error = client.try_ok(SELL).unwrap_err();
    assert_eq!((error.code, error.sqlstate.as_str()), (1105, "08007"), "{error}");
}

#[test]
#[ignore = "long: make test-all"]
fn prepared_statements_are_packed_with_their_values() {
    let (server, gateway) = stage();
    thread::scope(|scope| {
        for number in 0..16_u64 {
            let gateway = &gateway;
            scope.spawn(move || {
                let mut client = root(gateway.port());
                let sell =
                    client.prepare("update shop.item set stock = stock - ?, sold = sold + ? where id = ?");
                let insert = client.prepare("insert into shop.ledger (id, item) values (?, ?)");
                for one in 0..20 {
                    let is_first = one == 0;
                    assert_eq!(client.execute(sell, &[1, 1, 1], is_first).unwrap().affected, 1);
                    let id = i64::try_from(number * 100 + one).unwrap();
                    assert_eq!(client.execute(insert, &[id, 1], is_first).unwrap().affected, 1);
                    // An error runs on the session's own connection, which has not seen the types of the values.
                    let error = client.execute(insert, &[id, 1], false).unwrap_err();
                    assert_eq!(error.code, 1062, "{error}");
                }
            });
        }
    });
    let mut direct = root(server.port());
    assert_eq!(direct.value("select sold from shop.item where id = 1"), "320");
    assert_eq!(direct.value("select count(*) from shop.ledger"), "320");
    assert!(direct.value("select sum(n) from hotrow.batch").parse::<u64>().unwrap() > 20);
}

#[test]
fn a_batch_that_changes_nothing_commits_nothing() {
    let (server, gateway) = stage();
    let mut client = root(gateway.port());
    client.ok(SELL);
    let mut direct = root(server.port());
    let commits = |direct: &mut Client| counter(direct, "Binlog_commits");
    let before = commits(&mut direct);
    for _ in 0..20 {
        let sold_out =
            client.ok("update shop.item set stock = stock - 9, sold = sold + 9 where id = 3 and stock >= 9");
        assert_eq!(sold_out, OkPacket { affected: 0, insert_id: 0, status: 2 });
    }
    assert_eq!(commits(&mut direct), before);
    // A row that is met and stays as it is can have run a trigger.
    assert_eq!(client.ok("update shop.item set sold = sold where id = 3").affected, 0);
    assert_eq!(commits(&mut direct), before + 1, "the mark of the batch");
    assert_eq!(gateway.metric("packed_units_total"), 22);
}
