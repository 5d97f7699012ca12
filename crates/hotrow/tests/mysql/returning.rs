//! Statements that return rows, and REPLACE.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hotrow_mysql_wire::command::Command;
use hotrow_testkit::Gateway;

use crate::client::UNUSUAL;
use crate::exactness::{ADD, BIGINT, Side, Types, UNSIGNED_BIGINT, check, execution};
use crate::lanes::shop;
use crate::{PACKING, root, url};

#[test]
#[ignore = "long: make test-all"]
fn rows_that_a_packed_statement_returns_are_those_without_a_gateway() {
    check(&[
        (1, &["insert into t (id, n, u) values (9, 9, 9) returning id, n, u, s"]),
        (1, &["insert into t (id, n) values (9, 9) returning t.id, `t`.`n`;", "select row_count()"]),
        (
            1,
            &[
                "select * from t",
                "delete from t where id = 1 returning id, s",
                "select found_rows(), row_count()",
            ],
        ),
        (1, &["select * from t", "delete from t where id = 1 returning s", "show warnings"]),
        (1, &["delete from t where id = 99 returning id", "select row_count()", "show warnings"]),
        (1, &["insert into t (id, n) values (1, 7) on duplicate key update n = values(n) returning id, n"]),
        (
            2,
            &[
                "delete from wide where id = 18446744073709551615 returning *",
                "delete from wide where id = 1 returning *",
            ],
        ),
        (2, &["delete from t where id = 1 returning id", ADD, "select row_count()"]),
        (1, &["delete from t where id = 1 returning id", "ping: ", "select row_count()"]),
        (2, &["delete from t where id = 1 returning id", "begin", ADD, "commit", ADD, "select row_count()"]),
        (1, &["select 'x' + 1 from t", "delete from t where id = 1 returning id", "begin", "show warnings"]),
        (
            2,
            &[
                "update t set n = 99999999999 where id = 1",
                "delete from t where id = 1 returning id",
                "show warnings",
            ],
        ),
        // An error comes behind the columns.
        (1, &["insert into t (id, n) values (1, 1) returning id, n", "show warnings", "select row_count()"]),
        (1, &["insert into t (id, n) values (9, 5000) returning id", "show warnings"]),
        (
            2,
            &[
                "set sql_mode = ''",
                "insert into t (id, v) values (9, 'abcdefgh') returning v",
                ADD,
                "show warnings",
            ],
        ),
        (
            0,
            &[
                "set sql_mode = ''",
                "insert into t (id, v) values (9, 'abcdefgh') returning v",
                "show warnings",
            ],
        ),
        (0, &["delete from t where id = 1 returning *"]),
        (0, &["delete from t where id = 1 returning ts"]),
        (0, &["delete from t where id = 1 returning id + 1 as x", "select row_count()"]),
        (0, &["delete from t where id = 1 returning nothing"]),
        (0, &["update t set n = 1 where id = 1 returning id"]),
    ]);
}

#[test]
#[ignore = "long: make test-all"]
fn replace_is_what_it_is_without_a_gateway() {
    check(&[
        (1, &["replace into t (id, n) values (9, 5)", "select row_count()"]),
        (1, &["replace into t (id, n) values (1, 5)", "select row_count()"]),
        (
            2,
            &[
                "replace into t (id, n) values (1, 5)",
                "replace into t (id, n) values (1, 5)",
                "select row_count()",
            ],
        ),
        // It deletes three rows.
        (1, &["replace into t (id, s, u) values (1, 'b', 30)", "select row_count()", "show warnings"]),
        (
            1,
            &[
                "set sql_safe_updates = 1",
                "replace into t (id, s, u) values (1, 'b', 30)",
                "select row_count()",
            ],
        ),
        (1, &["replace into t (s, id) values ('a', 7)", "select row_count()"]),
        (1, &["replace into t (id, s, u) values (1, 'b', 30) returning id, s, u", "select row_count()"]),
        (1, &["replace into t (id, n) values (1, 5000)", "show warnings"]),
        (1, &["replace into item (id, one, two) values (1, 2, 3)"]),
        (1, &["replace into item (id, one) values (1, 2)", "show warnings"]),
        (
            3,
            &[
                "insert into parent (id) values (1)",
                "insert into child (id, p) values (1, 1)",
                "replace into parent (id) values (1)",
                "show warnings",
                "select * from child",
            ],
        ),
        (
            3,
            &[
                "insert into parent (id) values (1)",
                "insert into cat (id, p) values (1, 1)",
                "replace into parent (id) values (1)",
                "select row_count()",
                "select * from cat",
            ],
        ),
        (1, &["replace into child (id, p) values (1, 1)", "show warnings"]),
        (0, &["replace into t (n) values (1)"]),
        (0, &["replace into t set id = 1, n = 2"]),
    ]);
}

#[test]
#[ignore = "long: make test-all"]
fn rows_of_executions_have_the_form_of_prepared_statements() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let one = 1_i64.to_le_bytes();
    let most = u64::MAX.to_le_bytes();
    let two = 2_i64.to_le_bytes();
    let scripts: [(&str, Types, [&[u8]; 2]); 5] = [
        ("delete from wide where id = ? and id = ? returning *", [UNSIGNED_BIGINT; 2], [&most, &most]),
        ("delete from wide where id = ? and id = ? returning *", [UNSIGNED_BIGINT; 2], [&one, &one]),
        ("insert into t (id, n) values (?, ?) returning n, id, s, u", [BIGINT; 2], [&two, &one]),
        ("replace into t (id, n) values (?, ?) returning n, id, s, u", [BIGINT; 2], [&two, &one]),
        ("replace into t (id, n) values (?, ?)", [BIGINT; 2], [&two, &one]),
    ];
    let mut direct = root(server.port());
    let mut batches = || {
        direct.rows("select sum(n) from hotrow.batch")[0][0]
            .as_ref()
            .map_or(0, |sum| sum.parse::<u64>().unwrap())
    };
    for without in [UNUSUAL, UNUSUAL | hotrow_mysql_wire::capabilities::DEPRECATE_EOF] {
        for (sql, types, values) in scripts {
            let mut sides = [(server.port(), "one_db"), (gateway.port(), "two_db")]
                .map(|(port, database)| Side::new(port, database, without));
            let before = batches();
            let ids = [0, 1].map(|side: usize| sides[side].client.prepare(sql));
            // Before its first query, a connection has the FOUND_ROWS() of an earlier one.
            sides.iter_mut().for_each(|side| drop(side.run("select * from t")));
            for types in [Some(types), None] {
                let [direct, through] = &mut sides;
                let expected = direct.command(Command::StmtExecute, &execution(ids[0], types, &values));
                let seen = through.command(Command::StmtExecute, &execution(ids[1], types, &values));
                assert_eq!(seen, expected, "{sql}");
            }
            let [direct, through] = &mut sides;
            let left = "select row_count(), found_rows()";
            assert_eq!(through.run(left), direct.run(left), "{sql}");
            assert_eq!(batches(), before + 2, "{sql}");
        }
    }
}

#[test]
#[ignore = "long: make test-all"]
fn each_client_gets_its_own_row() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    let deleted = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..12_u64 {
            let (gateway, deleted) = (&gateway, &deleted);
            scope.spawn(move || {
                let mut client = root(gateway.port());
                for one in 0..15 {
                    let id = number * 100 + one;
                    let insert =
                        format!("insert into shop.ledger (id, item) values ({id}, 7) returning item, id");
                    assert_eq!(client.rows(&insert), [[Some("7".to_owned()), Some(id.to_string())]]);
                    let replace =
                        format!("replace into shop.ledger (id, item) values (5000, {id}) returning item");
                    assert_eq!(client.rows(&replace), [[Some(id.to_string())]]);
                    // Of all clients that delete this row, one gets it.
                    let rows = client.rows("delete from shop.ledger where id = 5000 returning id");
                    deleted.fetch_add(rows.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(direct.value("select count(*) from shop.ledger"), "180");
    let (deleted, batches) = (deleted.into_inner(), direct.value("select sum(n) from hotrow.batch"));
    assert!((1..=180).contains(&deleted), "{deleted}");
    assert!(batches.parse::<u64>().unwrap() < 400, "{batches} batches of 540 statements");
}
