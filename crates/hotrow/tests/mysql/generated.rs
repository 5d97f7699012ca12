//! INSERT into tables with AUTO_INCREMENT: packed if it gives the numbers, so that LAST_INSERT_ID() stays what it is.

use hotrow_testkit::Gateway;

use crate::exactness::check;
use crate::lanes::shop;
use crate::{PACKING, root, url};

/// What the statements before have left, and what the next number is.
const LOOK: &str = "select last_insert_id(), @@identity";
const NEXT: &str = "insert into au (n) values (7)";
const ROWS: &str = "select * from au order by id";

#[test]
#[ignore = "long: make test-all"]
fn numbers_that_are_given_leave_what_they_leave_without_a_gateway() {
    check(&[
        (1, &["insert into au (id, n) values (50, 1)", LOOK, NEXT, LOOK, ROWS]),
        (1, &[NEXT, "insert into au (id, n) values (50, 1)", NEXT, ROWS, LOOK]),
        (1, &[NEXT, "insert into au (id, n) values (50, 1)", LOOK, "select row_count()"]),
        (
            2,
            &[
                "insert into au (id, n) values (50, 1)",
                "insert into au (id, n) values (50, 1)",
                LOOK,
                NEXT,
                ROWS,
            ],
        ),
        (1, &[NEXT, "insert into au (id, n) values (60, 1), (50, 2), (70, 3)", LOOK, NEXT, ROWS]),
        (1, &[NEXT, "insert into au (id, n) values (1, 5) on duplicate key update n = 8", LOOK, NEXT, ROWS]),
        (
            1,
            &[
                "insert into au (s) values ('a')",
                "insert into au (id, s) values (50, 'a') on duplicate key update n = 8",
                LOOK,
                NEXT,
                ROWS,
            ],
        ),
        (
            1,
            &[
                NEXT,
                "insert into au (id, n) values (50, 1), (1, 2) on duplicate key update n = 8",
                LOOK,
                NEXT,
                ROWS,
            ],
        ),
        (1, &[NEXT, "replace into au (id, n) values (1, 9)", LOOK, NEXT, ROWS]),
        (1, &[NEXT, "insert into au (id, n) values (50, 9) returning id", LOOK, NEXT, ROWS]),
        (1, &["insert into au (id, n) values (2147483647, 1)", NEXT, ROWS, LOOK]),
        (1, &["insert into au (id, n) values (99999999999, 1)", NEXT, ROWS, LOOK]),
        (1, &[NEXT, "update au set n = n + 1 where id = 1", LOOK]),
        // The batch is rolled back.
        (
            0,
            &[
                "set sql_mode = ''",
                "insert into au (id, s) values (50, 'more than nine letters')",
                NEXT,
                ROWS,
            ],
        ),
        (0, &["insert into au (id, n) values (0, 1)", LOOK]),
        (0, &["set sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "insert into au (id, n) values (0, 1)", LOOK]),
        (0, &["insert into au (id, n) values (null, 1)", LOOK]),
        (0, &["insert into au (id, n) values (5, 1), (null, 1), (6, 1)", LOOK]),
        (0, &["insert into au (id, n) values (-5, 1)", LOOK]),
        (0, &["insert into au (n, s) values (1, 'a')", LOOK]),
        (0, &["replace into au (n, s) values (1, 'a')", LOOK]),
        (0, &["set insert_id = 40", "insert into au (id, n) values (50, 1)", NEXT, ROWS]),
        (0, &["set auto_increment_increment = 10", "insert into au (id, n) values (55, 1)", NEXT, ROWS]),
    ]);
}

#[test]
fn another_column_that_gets_the_numbers_is_noticed() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    direct.ok("create table shop.x (id int auto_increment primary key, b int not null default 0, key (b)) engine=innodb");
    let mut client = root(gateway.port());
    assert_eq!(client.ok("insert into shop.x (id) values (5)").insert_id, 5);
    assert_eq!(direct.value("select sum(n) from hotrow.batch"), "1");
    direct.ok("alter table shop.x modify id int not null, modify b int not null auto_increment");
    let generated = client.ok("insert into shop.x (id) values (6)").insert_id;
    assert_eq!(direct.value("select b from shop.x where id = 6"), generated.to_string());
    assert_eq!(client.value("select last_insert_id()"), generated.to_string());
}
