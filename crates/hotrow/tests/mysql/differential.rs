//! Random statements of one session, directly and through lanes: answers and rows are the same.

use hotrow_testkit::{Gateway, seed};

use crate::client::Client;
use crate::lanes::shop;
use crate::{PACKING, root, url};

fn value(random: &mut fastrand::Rng) -> String {
    match random.u8(0..12) {
        0 => "null".to_owned(),
        1 => "'x'".to_owned(),
        2 => "'it''s'".to_owned(),
        3 => "99999999999".to_owned(),
        4 => "-3".to_owned(),
        5 => "1.5".to_owned(),
        6 => "n / 0".to_owned(),
        7 => "'7'".to_owned(),
        8 => "(n + 1) * 2".to_owned(),
        _ => random.u8(0..5).to_string(),
    }
}

fn key(random: &mut fastrand::Rng) -> String {
    match random.u8(0..9) {
        0 => "id = '2'".to_owned(),
        1 => "id = 2.0".to_owned(),
        2 => format!("s = '{}'", ["a", "A", "a ", "b"][random.usize(0..4)]),
        3 => format!("id = {} and n > {}", random.u8(0..5), random.u8(0..3)),
        4 => format!("id = {} or n = 1", random.u8(0..5)),
        5 => "id = null".to_owned(),
        _ => format!("id = {}", random.u8(0..5)),
    }
}

fn statement(random: &mut fastrand::Rng) -> String {
    let (key, one, other) = (key(random), value(random), value(random));
    match random.u8(0..26) {
        16 => format!("update t set n = {one} where {key}"),
        17 => format!("replace into {{db}}.t (id, n) values ({}, {one})", random.u8(0..5)),
        18 => format!(
            "replace into {{db}}.t (id, s, n) values ({}, 'a', {one}) returning id, s",
            random.u8(0..5)
        ),
        19 => format!("delete from {{db}}.t where {key} returning *"),
        21 => format!(
            "insert into {{db}}.t (id, n) values ({}, {one}), ({}, {other})",
            random.u8(0..7),
            random.u8(0..7)
        ),
        22 => format!(
            "insert into {{db}}.t (id, n) values ({}, {one}), ({}, 2) on duplicate key update n = values(n) + 1",
            random.u8(0..5),
            random.u8(0..7)
        ),
        23 => format!("insert into {{db}}.au (id, n) values ({}, {one})", random.u8(0..99)),
        24 => format!("insert into {{db}}.au (n) values ({one})"),
        25 => format!(
            "insert into {{db}}.au (id, n) values ({}, 1), ({}, 2) on duplicate key update n = {one}",
            random.u8(0..99),
            random.u8(0..99)
        ),
        20 => format!("insert into {{db}}.t (id, n) values ({}, {one}) returning n, id", random.u8(0..5)),
        0..6 => format!("update {{db}}.t set n = {one} where {key}"),
        6 => format!("update {{db}}.t set n = {one}, v = {other} where {key}"),
        7 => format!("update {{db}}.t set id = {one} where {key}"),
        8 => format!("delete from {{db}}.t where {key}"),
        9 => format!("insert into {{db}}.t (id, n) values ({one}, {other})"),
        10 => format!("insert into {{db}}.t (id, s, n) values ({}, 'a', {one})", random.u8(0..5)),
        11 | 12 => format!(
            "insert into {{db}}.t (id, n) values ({}, {one}) on duplicate key update n = values(n) + {other}",
            random.u8(0..5)
        ),
        13 => ["begin", "commit", "rollback"][random.usize(0..3)].to_owned(),
        14 => SETTINGS[random.usize(0..SETTINGS.len())].to_owned(),
        _ => OTHERS[random.usize(0..OTHERS.len())].to_owned(),
    }
}

/// What a packed statement has to follow, or to stay out of.
const SETTINGS: [&str; 7] = [
    "set sql_mode = ''",
    "set session sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO'",
    "set autocommit = 0",
    "set autocommit = 1",
    "set names latin1",
    "set sql_safe_updates = 1",
    "select @@sql_mode",
];
/// Statements between the packed ones.
const OTHERS: [&str; 10] = [
    "select count(*), sum(n) from {db}.t",
    "select * from {db}.t where id in (1, 2)",
    "insert into {db}.t (id, n) values (1, 1), (4, 4)",
    "insert ignore into {db}.t (id, s) values (1, 'too long to fit')",
    "replace into {db}.t (id, n) values (3, 3)",
    "update {db}.t set n = 0 where n is null",
    "select n x y from {db}.t",
    "use {db}",
    "use {db}_two",
    "use nowhere",
];
/// What shows what the statements before have left. A session that asks is not packed any more.
const LOOKS: [&str; 7] = [
    "select last_insert_id(), @@identity",
    "show warnings",
    "select row_count()",
    "select found_rows()",
    "select @@error_count, @@warning_count",
    "get diagnostics condition 1 @code = mysql_errno, @text = message_text",
    "show count(*) errors",
];

/// What a client sees of a statement: the packets of the reply, with the database's name replaced.
fn seen(client: &mut Client, sql: &str, database: &str) -> Vec<String> {
    let sql = sql.replace("{db}", database);
    let packets = client.command(hotrow_mysql_wire::command::Command::Query, sql.as_bytes());
    let text = |payload: &[u8]| String::from_utf8_lossy(payload).replace(database, "{db}");
    packets.iter().map(|(sequence, payload)| format!("{sequence} {}", text(payload))).collect()
}

#[test]
fn random_statements_have_the_same_answers_and_leave_the_same_rows() {
    let server = shop();
    let mut random = fastrand::Rng::with_seed(seed());
    let mut direct = root(server.port());
    // A procedure of the gateway enters its own database and leaves it, of which a later OK packet can tell.
    direct.ok("set global session_track_schema = off");
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    for database in ["one_db", "two_db"] {
        for schema in [database.to_owned(), format!("{database}_two")] {
            direct.ok(&format!("create database {schema}"));
            direct.ok(&format!(
                "create table {schema}.t (id int primary key, s varchar(9) unique, n int, v varchar(5)) engine=innodb"
            ));
            direct.ok(&format!(
                "create table {schema}.au (id int auto_increment primary key, n int) engine=innodb"
            ));
        }
    }
    for _ in 0..60 {
        let (mut direct, mut through) = (root(server.port()), root(gateway.port()));
        let mut statements = Vec::new();
        // Before its first query, a connection has the FOUND_ROWS() of an earlier one.
        let first = "select count(*) from {db}.t";
        assert_eq!(seen(&mut through, first, "two_db"), seen(&mut direct, first, "one_db"));
        for _ in 0..25 {
            let sql = statement(&mut random);
            let expected = seen(&mut direct, &sql, "one_db");
            statements.push(sql.clone());
            assert_eq!(seen(&mut through, &sql, "two_db"), expected, "{statements:#?}");
            if random.u8(0..15) == 0 {
                let sql = LOOKS[random.usize(0..LOOKS.len())];
                let expected = seen(&mut direct, sql, "one_db");
                assert_eq!(seen(&mut through, sql, "two_db"), expected, "{sql} after {statements:#?}");
            }
        }
        direct.ok("commit");
        through.ok("commit");
        let rows = |client: &mut Client, database: &str| {
            client.rows(&format!("select 1, t.* from {database}.t union all select 2, t.* from {database}_two.t t order by 1, 2"))
        };
        assert_eq!(rows(&mut through, "two_db"), rows(&mut direct, "one_db"));
        let numbers = "select * from {db}.au order by id";
        assert_eq!(seen(&mut through, numbers, "two_db"), seen(&mut direct, numbers, "one_db"));
    }
    let batches = direct.value("select sum(n) from hotrow.batch").parse::<u64>().unwrap();
    assert!(batches > 50, "statements were packed: {batches}");
}
