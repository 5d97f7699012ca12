//! USE and COM_INIT_DB: a session that enters another database is packed there, and stays where it is if the server refuses.

use std::process::Command as Program;

use hotrow_mariadb::{PASSWORD, USER};
use hotrow_mysql_wire::command::Command;
use hotrow_testkit::Gateway;

use crate::client::{Client, UNUSUAL};
use crate::exactness::{ADD, Side, check};
use crate::lanes::{SELL, shop};
use crate::{PACKING, root, url};

fn batches(direct: &mut Client) -> u64 {
    direct.rows("select sum(n) from hotrow.batch")[0][0].as_ref().map_or(0, |sum| sum.parse().unwrap())
}

/// Two sides, each with a second database, in which the numbers of the same table are others.
fn sides(direct: u16, through: u16) -> [Side; 2] {
    [(direct, "one_db"), (through, "two_db")].map(|(port, database)| {
        let side = Side::new(port, database, UNUSUAL);
        let mut owner = root(direct);
        owner.ok(&format!("create or replace database {database}_two collate latin1_swedish_ci"));
        owner.ok(&format!("create table {database}_two.t like {database}.t"));
        owner.ok(&format!("insert into {database}_two.t (id, n) values (1, 100), (2, 200)"));
        side
    })
}

#[test]
#[ignore = "long: make test-all"]
fn a_session_in_another_database_is_what_it_is_without_a_gateway() {
    check(&[
        (1, &[ADD, "use {db}", "select row_count()", ADD]),
        (2, &[ADD, "use {db}", ADD, "show warnings"]),
        (2, &["insert into t (id, n) values (1, 1)", "use {db}", ADD, "show warnings"]),
        (1, &["insert into t (id, n) values (1, 1)", "use {db}", "show warnings"]),
        (1, &["insert into t (id, n) values (1, 1)", "use nowhere", "show warnings"]),
        (2, &[ADD, "use nowhere", ADD, "select database()"]),
        (2, &[ADD, "init: nowhere", ADD, "select database()"]),
        (
            1,
            &[
                "use information_schema",
                "update {db}.t set n = 1 where id = 1",
                "update tables set n = 1 where id = 1",
            ],
        ),
        (1, &["use {db}", "begin", ADD, "use {db}", ADD, "rollback", ADD]),
        (1, &["select * from t", "use {db}", ADD, "select found_rows()"]),
        (1, &["USE `{db}` ;", ADD]),
        (0, &["use `{db}` x", "use {db}.t", ADD]),
        (0, &["init: ", ADD]),
        (0, &["init: {db} ", ADD]),
        (0, &["init: no`where", ADD]),
        (0, &["use {db}; use nowhere", ADD]),
        (0, &["prepare: use nowhere", ADD]),
    ]);
}

#[test]
fn statements_go_to_the_database_that_the_session_has_entered() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut sides = sides(server.port(), gateway.port());
    let before = batches(&mut root(server.port()));
    for line in [
        ADD,
        "use {db}_two",
        ADD,
        "select n from t where id = 1",
        "use nowhere",
        ADD,
        "update {db}.t set n = n * 2 where id = 1",
        "init: {db}",
        ADD,
        "insert into t (id, n) values (1, 1)",
        "init: {db}_two",
        "insert into t (id, n) values (1, 1)",
        "show warnings",
        "select n from {db}.t order by id",
        "select n from {db}_two.t order by id",
        "select database(), @@collation_database",
    ] {
        let [direct, through] = &mut sides;
        assert_eq!(through.run(line), direct.run(line), "{line}");
    }
    assert_eq!(batches(&mut root(server.port())), before + 7, "each statement by key was packed");
}

#[test]
fn commands_that_do_not_wait_for_the_answer_run_where_they_would_without_a_gateway() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut sides = sides(server.port(), gateway.port());
    let before = batches(&mut root(server.port()));
    let commands = [
        (Command::InitDb, "{db}_two"),
        (Command::Query, ADD),
        (Command::InitDb, "nowhere"),
        (Command::InitDb, "{db}"),
        (Command::InitDb, "nowhere"),
        (Command::Query, ADD),
        (Command::Query, "use {db}_two"),
        (Command::StmtPrepare, "update t set n = n + ? where id = 1"),
        (Command::Query, "use nowhere"),
        (Command::Query, ADD),
        (Command::Query, "use {db}"),
        (Command::Query, "select t.n, u.n from {db}.t t join {db}_two.t u on t.id = u.id order by t.id"),
    ];
    for side in &mut sides {
        for (command, text) in commands {
            let text = text.replace("{db}", side.database);
            side.client.send(0, &[&[command as u8], text.as_bytes()].concat());
        }
    }
    for (command, text) in commands {
        let [direct, through] = &mut sides;
        assert_eq!(through.reply(command), direct.reply(command), "{text}");
    }
    assert_eq!(batches(&mut root(server.port())), before + 3);
}

#[test]
fn a_prepared_statement_stays_in_the_database_where_it_was_prepared() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut sides = sides(server.port(), gateway.port());
    for side in &sides {
        let mut owner = root(server.port());
        owner.ok(&format!(
            "create trigger {0}.r before update on {0}.t for each row set session time_zone = '+05:00'",
            side.database
        ));
    }
    let mut before = 0;
    let mut ids = [0; 2];
    for (id, side) in ids.iter_mut().zip(&mut sides) {
        side.run("use {db}_two");
        *id = side.client.prepare("update t set n = n + ? where id = ?");
        before = batches(&mut root(server.port()));
        assert_eq!(side.client.execute(*id, &[1, 1], true).unwrap().affected, 1);
        side.run("use {db}");
        let in_other = side.client.execute(*id, &[10, 1], false).unwrap();
        assert_eq!(in_other.affected, 1, "it does not run in the session's database");
        side.run("use {db}_two");
        assert_eq!(side.client.execute(*id, &[100, 1], false).unwrap().affected, 1);
        assert_eq!(
            root(server.port()).value(&format!("select n from {}_two.t where id = 1", side.database)),
            "211"
        );
    }
    assert_eq!(batches(&mut root(server.port())), before + 2);
    // The trigger of the table in the database where it was prepared changes the session, and later statements see that.
    for (id, side) in ids.iter_mut().zip(&mut sides) {
        side.client.execute(*id, &[1, 1], false).unwrap();
        side.run("use {db}");
        *id = side.client.prepare("update t set n = n + ? where id = ?");
        side.run("use {db}_two");
        side.client.execute(*id, &[1, 1], true).unwrap();
    }
    for line in [
        "update t set ts = '2020-01-01 00:00:00' where id = 1",
        "set time_zone = '+00:00'",
        "select ts from t where id = 1",
    ] {
        let [direct, through] = &mut sides;
        assert_eq!(through.run(line), direct.run(line), "{line}");
    }
}

#[test]
fn rights_on_a_database_are_those_of_the_moment_when_the_session_entered_it() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut owner = root(server.port());
    for sql in [
        "create user ann identified by 'ann'",
        "grant execute on hotrow.* to ann",
        "grant select, update on shop.* to ann",
        "create database other",
        "create table other.item like shop.item",
        "insert into other.item values (1, 0, 0)",
    ] {
        owner.ok(sql);
    }
    let add = "update item set sold = sold + 1 where id = 1";
    let login = || [server.port(), gateway.port()].map(|port| Client::login(port, "ann", "ann").unwrap());
    let same = |sides: &mut [Client; 2], sql: &str, expected: Option<u16>| {
        let [direct, through] = sides.each_mut().map(|client| client.try_ok(sql));
        assert_eq!(through, direct, "{sql}");
        assert_eq!(direct.err().map(|error| error.code), expected, "{sql}");
    };
    let mut sides = login();
    same(&mut sides, "use shop", None);
    same(&mut sides, add, None);
    same(&mut sides, "use other", Some(1044));
    same(&mut sides, add, None);
    owner.ok("grant select on other.* to ann");
    same(&mut sides, "use other", None);
    same(&mut sides, add, Some(1142));
    owner.ok("grant update on other.* to ann");
    same(&mut sides, add, Some(1142));
    same(&mut sides, "set names utf8mb4", None);
    same(&mut sides, add, Some(1142));
    same(&mut sides, "use other", None);
    same(&mut sides, add, None);
    sides = login();
    same(&mut sides, "use shop", None);
    same(&mut sides, add, None);
    owner.ok("revoke update on other.* from ann");
    owner.ok("grant update on *.* to ann");
    same(&mut sides, "use other", None);
    same(&mut sides, add, Some(1142)); // a session keeps its global rights
}

#[test]
fn mysqlslap_is_packed() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    let output = Program::new("mysqlslap")
        .args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", &format!("--port={}", gateway.port())])
        .args([&format!("--user={USER}"), &format!("--password={PASSWORD}")])
        .args(["--create-schema=shop", "--no-drop", "--concurrency=16", "--number-of-queries=800"])
        .arg(format!("--query={}", SELL.replace("shop.", "")))
        .output()
        .expect("the package of the server has its client");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(direct.value("select sold from shop.item where id = 1"), "800");
    let batches = batches(&mut direct);
    assert!((1..800).contains(&batches), "{batches} batches of 800 statements");
}
