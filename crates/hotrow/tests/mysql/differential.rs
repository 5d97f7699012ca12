//! Random statements of one session, directly and through lanes: answers and rows are the same.

use hotrow_testkit::{Gateway, seed};

use crate::client::Client;
use crate::lanes::shop;
use crate::{root, url};

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
    match random.u8(0..16) {
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
        14 => ["set sql_mode = ''", "set autocommit = 1", "select @@sql_mode"][random.usize(0..3)].to_owned(),
        _ => "select count(*), sum(n) from {db}.t".to_owned(),
    }
}

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
    let gateway = Gateway::in_front_of(&url(&server), &["--pack", "true"]);
    let mut random = fastrand::Rng::with_seed(seed());
    let mut direct = root(server.port());
    for database in ["one_db", "two_db"] {
        direct.ok(&format!("create database {database}"));
        direct.ok(&format!(
            "create table {database}.t (id int primary key, s varchar(9) unique, n int, v varchar(5)) engine=innodb"
        ));
    }
    for _ in 0..30 {
        let (mut direct, mut through) = (root(server.port()), root(gateway.port()));
        for _ in 0..25 {
            let sql = statement(&mut random);
            let expected = seen(&mut direct, &sql, "one_db");
            assert_eq!(seen(&mut through, &sql, "two_db"), expected, "{sql}");
            if random.u8(0..30) == 0 {
                let sql = "show warnings";
                assert_eq!(seen(&mut through, sql, "two_db"), seen(&mut direct, sql, "one_db"));
            }
            if random.u8(0..30) == 0 {
                let sql = "select row_count()";
                assert_eq!(seen(&mut through, sql, "two_db"), seen(&mut direct, sql, "one_db"));
            }
        }
        direct.ok("commit");
        through.ok("commit");
        let rows = |client: &mut Client, database: &str| {
            client.rows(&format!("select * from {database}.t order by id"))
        };
        assert_eq!(rows(&mut through, "two_db"), rows(&mut direct, "one_db"));
    }
    let batches = direct.value("select sum(n) from hotrow.batch").parse::<u64>().unwrap();
    assert!(batches > 50, "statements were packed: {batches}");
}
