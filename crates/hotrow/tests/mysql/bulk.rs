//! INSERT of several rows by their keys.

use std::thread;

use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::exactness::{ADD, check};
use crate::lanes::shop;
use crate::{PACKING, root, url};

#[test]
#[ignore = "long: make test-all"]
fn rows_that_are_inserted_together_are_what_they_are_without_a_gateway() {
    let many = |rows: i32, end: &str| {
        let rows: Vec<String> = (0..rows).map(|row| format!("({row}, {row})")).collect();
        format!("insert into t (id, n) values {} {end}", rows.join(", "))
    };
    let upsert = "on duplicate key update n = n + 1";
    let (hundred, more) = (many(100, upsert), many(101, upsert));
    check(&[
        (1, &["insert into t (id, n) values (8, 1), (9, 2)", "select row_count()", "show warnings"]),
        (1, &["insert into t (id, s) values (8, 'x'), (9, 'it''s'), (10, null)", "select row_count()"]),
        (1, &["insert into t (s, id) values ('x', 9), ('y', 8)"]),
        (1, &["insert into t (id, n) values (9, 1), (1, 2)", "show warnings", "select row_count()"]),
        (2, &["insert into t (id, n) values (9, 1), (9, 2)", ADD, "select row_count()"]),
        (1, &["insert into t (id, n) values (9, 1), (8, 5000)", "show warnings"]),
        (1, &["insert into t (id, u) values (9, 1), (8, -1)", "show warnings"]),
        (2, &["set sql_mode = ''", "insert into t (id, u) values (9, 1), (8, -1)", ADD, "show warnings"]),
        (0, &["set sql_mode = ''", "insert into t (id, u) values (9, 1), (8, -1)", "show warnings"]),
        // New, changed, and as it was.
        (
            1,
            &[
                "insert into t (id, n) values (9, 1), (1, 7), (2, 2) on duplicate key update n = values(n)",
                "select row_count()",
            ],
        ),
        (
            1,
            &[
                "insert into t (id, n) values (9, 1), (9, 2), (9, 3) on duplicate key update n = n + values(n)",
                "select row_count()",
                "select n from t where id = 9",
            ],
        ),
        (
            1,
            &[
                "insert into t (id, n) values (8, 1), (1, 2) on duplicate key update n = n + 5000",
                "show warnings",
            ],
        ),
        (1, &["insert into t (id, n) values (8, 1), (9, 2) returning id, n", "select row_count()"]),
        (2, &[&hundred, &hundred, "select row_count()"]),
        (2, &[&hundred, &hundred, "begin", "select row_count()"]),
        (1, &["set sql_safe_updates = 1", &hundred, "select row_count()"]),
        (0, &[&more, "select row_count()"]),
        (1, &["insert into child (id, p) values (1, null), (2, 1)", "show warnings"]),
        (0, &["insert into t (id, n) values (8, 1), (9 + 1, 2)"]),
        (0, &["insert into t (id, n) values (8, 1), (null, 2)", "show warnings"]),
        (0, &["insert into t (id, n) values (8, 1), (9)", "show warnings"]),
        (0, &["replace into t (id, n) values (8, 1), (9, 1)", "select row_count()"]),
    ]);
}

#[test]
fn batches_of_rows_in_any_order_are_all_answered() {
    let server = shop();
    let gateways = [(); 2].map(|()| Gateway::in_front_of(&url(&server), &PACKING));
    let mut direct = root(server.port());
    thread::scope(|scope| {
        for number in 0..12_usize {
            let gateways = &gateways;
            scope.spawn(move || {
                let mut client = root(gateways[number % 2].port());
                for one in 0..20 {
                    let rows: Vec<String> = (0..5).map(|row| (number + one + row * 7) % 11).map(|id| format!("({id}, 1)")).collect();
                    let text = format!(
                        "insert into shop.ledger (id, item) values {} on duplicate key update item = item + 1",
                        rows.join(", ")
                    );
                    // Outside of lanes, such statements can deadlock as they do without a gateway, and are undone.
                    while let Err(error) = client.try_ok(&text) {
                        assert_eq!(error.code, 1213, "{error}");
                    }
                }
            });
        }
    });
    assert_eq!(direct.value("select sum(item) from shop.ledger"), (12 * 20 * 5).to_string());
    let batches = direct.value("select sum(n) from hotrow.batch");
    assert!(batches.parse::<u64>().unwrap() > 5, "{batches} batches");
}

#[test]
fn a_row_that_an_outsider_holds_up_makes_the_statement_wait_and_no_other() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut outsider = root(server.port());
    outsider.ok("begin");
    outsider.ok("insert into shop.ledger (id, item) values (3, 1)");
    thread::scope(|scope| {
        let held_up = scope.spawn(|| {
            root(gateway.port())
                .try_ok("insert into shop.ledger (id, item) values (2, 7), (3, 7)")
                .unwrap_err()
        });
        let mut watcher = root(server.port());
        let waits = "select count(*) from information_schema.processlist where info like '%values (2, 7)%' and id <> connection_id()";
        until("the statement waits on its session's connection", || watcher.value(waits) == "1");
        let mut client = root(gateway.port());
        assert_eq!(client.ok("insert into shop.ledger (id, item) values (4, 8), (5, 8)").affected, 2);
        outsider.ok("commit");
        assert_eq!(held_up.join().unwrap().code, 1062);
    });
    assert_eq!(outsider.value("select group_concat(id order by id) from shop.ledger"), "3,4,5");
}
