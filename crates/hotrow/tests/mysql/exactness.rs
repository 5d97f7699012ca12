//! Scripts of statements, directly and through lanes: each reply is the same. Each script is about one thing that could make a
//! packed statement, or one after it, see something else.

use hotrow_mariadb::PrivateMariaDb;
use hotrow_mysql_wire::capabilities::DEPRECATE_EOF;
use hotrow_mysql_wire::command::Command;
use hotrow_testkit::Gateway;

use crate::client::{Client, FOUND_ROWS, UNUSUAL};
use crate::lanes::shop;
use crate::{PACKING, root, url};

/// What each database begins with.
const TABLES: [&str; 9] = [
    "create table t (id int primary key, s varchar(9) unique, n int, v varchar(5), d decimal(5,2), ts timestamp null, u int unsigned, \
     unique (u), check (n <= 1000)) engine=innodb",
    "insert into t (id, s, n, u) values (1, 'a', 1, 10), (2, 'b', 2, 20), (3, 'c', 3, 30)",
    "create table item (id int primary key, one int not null, two int not null) engine=innodb",
    "create table parent (id int primary key) engine=innodb",
    "create table au (id int auto_increment primary key, n int, s varchar(9) unique) engine=innodb",
    "create table child (id int primary key, p int, foreign key (p) references parent (id)) engine=innodb",
    "create table cat (id int primary key, p int, foreign key (p) references parent (id) on delete cascade) engine=innodb",
    "create table wide (id bigint unsigned primary key, a tinyint, b smallint unsigned, c mediumint, d int(7) zerofill, e bigint, \
     f tinyint unsigned, s char(3), v varchar(200) collate latin1_german1_ci, unique (b)) engine=innodb",
    "insert into wide values (18446744073709551615, -128, 65535, -8388608, 7, -9223372036854775808, 255, 'ab', 'text'), \
     (1, null, null, null, null, null, null, null, null)",
];

/// A client and the database in which it runs its scripts.
pub struct Side {
    pub client: Client,
    pub database: &'static str,
}

impl Side {
    /// A client without these capabilities.
    pub fn new(port: u16, database: &'static str, without: u32) -> Self {
        let mut client = root(port);
        client.ok(&format!("create or replace database {database}"));
        let mut side = Side { client: Client::login_to(port, database, without), database };
        TABLES.iter().for_each(|sql| drop(side.run(sql)));
        side.client = Client::login_to(port, database, without);
        side
    }

    /// Runs a line of a script. Returns the packets of the reply, with the database's name replaced.
    pub fn run(&mut self, line: &str) -> Vec<String> {
        let (command, rest) = match line.split_once(": ") {
            Some(("ping", _)) => (Command::Ping, String::new()),
            Some(("reset", _)) => (Command::ResetConnection, String::new()),
            Some(("prepare", sql)) => (Command::StmtPrepare, sql.to_owned()),
            Some(("init", name)) => (Command::InitDb, name.replace("{db}", self.database)),
            Some(("long", sql)) => (Command::Query, sql.replacen(' ', &" ".repeat(20_000), 1)),
            _ => (Command::Query, line.replace("{db}", self.database)),
        };
        self.command(command, rest.as_bytes())
    }

    pub fn command(&mut self, command: Command, rest: &[u8]) -> Vec<String> {
        self.client.send(0, &[&[command as u8], rest].concat());
        self.reply(command)
    }

    /// Reads a reply in the same form.
    pub fn reply(&mut self, command: Command) -> Vec<String> {
        let packets = self.client.reply(command);
        // The server's number of a prepared statement counts other statements, too.
        let is_number = |at: usize, sequence: u8| {
            command == Command::StmtPrepare && sequence == 1 && (1..5).contains(&at)
        };
        let text = |payload: &[u8]| String::from_utf8_lossy(payload).replace(self.database, "{db}");
        let seen = packets.iter().map(|(sequence, payload)| {
            let shown = payload.iter().enumerate();
            let shown = shown.map(|(at, byte)| if is_number(at, *sequence) { 0 } else { *byte });
            format!("{sequence} {}", text(&shown.collect::<Vec<u8>>()))
        });
        seen.collect()
    }
}

/// Runs a script on both sides. Returns a number that is 0 if nothing was packed.
fn same(server: &PrivateMariaDb, gateway: &Gateway, without: u32, script: &[&str]) -> u64 {
    let (mut direct, mut through) =
        (Side::new(server.port(), "one_db", without), Side::new(gateway.port(), "two_db", without));
    let mut watcher = root(server.port());
    // A batch without a change is not committed, and one whose statement has left it is.
    let mut packed = || {
        let sum = watcher.rows("select sum(n) from hotrow.batch")[0][0].clone();
        sum.map_or(0, |sum| sum.parse::<u64>().unwrap()) + gateway.metric("packed_units_total")
    };
    let before = packed();
    for line in script {
        assert_eq!(through.run(line), direct.run(line), "{line} in {script:#?}");
    }
    let rows = "select * from t order by id";
    assert_eq!(through.run(rows), direct.run(rows), "the rows after {script:#?}");
    packed() - before
}

pub fn check(scripts: &[(u64, &[&str])]) {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    // Most clients, and those that count found rows and read results with EOF packets.
    let kinds = [UNUSUAL, UNUSUAL & !FOUND_ROWS | DEPRECATE_EOF];
    for (without, (packed, script)) in
        kinds.iter().flat_map(|kind| scripts.iter().map(move |one| (kind, one)))
    {
        let units = same(&server, &gateway, *without, script);
        assert!(units >= *packed && (units > 0) == (*packed > 0), "{units} packed statements of {script:#?}");
    }
}

pub const ADD: &str = "update t set n = n + 1 where id = 1";

#[test]
fn what_a_packed_statement_leaves_is_what_it_leaves_without_a_gateway() {
    check(&[
        (1, &[ADD, "select row_count()", "show warnings"]),
        (1, &[ADD, "ping: ", "select row_count()"]),
        (1, &[ADD, "long: select row_count()"]),
        (1, &["update t set n = 7 where id = 9", "select row_count()"]),
        (1, &["update t set n = n where id = 1", "select row_count()"]),
        (1, &["insert into t (id, n) values (1, 1) on duplicate key update n = 1", "select row_count()"]),
        (1, &["insert into t (id, n) values (1, 1) on duplicate key update n = n + 1", "select row_count()"]),
        (1, &["select * from t", ADD, "select found_rows()"]),
        (2, &[ADD, "select * from t", ADD, "select found_rows()"]),
        (1, &["select 'x' + 1 from t", ADD, "show warnings"]),
        (2, &["set sql_mode = ''", "update t set n = '7x' where id = 1", ADD, "begin", "show warnings"]),
        (
            2,
            &[
                "set sql_mode = ''",
                "update t set n = '7x' where id = 1",
                ADD,
                "select @@version_comment",
                "show warnings",
            ],
        ),
        (
            2,
            &[
                "set sql_mode = ''",
                "update t set n = '7x' where id = 1",
                ADD,
                "select n x y from t",
                "show warnings",
            ],
        ),
        (1, &[ADD, "select @@warning_count, @@error_count, @@identity"]),
        (1, &[ADD, "prepare: select n from t where id = ?", "select row_count()", "show warnings"]),
        (1, &[ADD, "prepare: update t set n = ? where id = 1", "select row_count()", "show warnings"]),
        (1, &[ADD, "set names utf8mb4", "select row_count()", "show warnings"]),
        (1, &[ADD, "select @@version", "select row_count()"]),
        (1, &[ADD, "commit", "select row_count()"]),
        (0, &["reset: ", ADD]),
        (2, &[ADD, "init: {db}", ADD, "select row_count()"]),
        (1, &[ADD, "init: {db}", "select row_count()"]),
        (1, &[ADD, "get diagnostics @a = row_count", "select @a"]),
    ]);
}

#[test]
#[ignore = "long: make test-all"]
fn an_error_of_a_packed_statement_is_what_it_is_without_a_gateway() {
    let duplicate = "insert into t (id, n) values (1, 1)";
    check(&[
        (1, &[duplicate, "show warnings", "select @@error_count"]),
        (1, &[duplicate, "select row_count()"]),
        (2, &[duplicate, ADD, "show warnings"]),
        (2, &[duplicate, ADD, "select row_count()"]),
        (1, &["update t set n = 5000 where id = 1", "show errors"]),
        (1, &["update t set n = 99999999999 where id = 1", "show errors"]),
        (1, &["insert into t (id, n, u) values (9, 99999999999, 99999999999)", "show errors"]),
        (1, &["insert into item (id) values (9)", "show errors"]),
        (1, &["insert into child (id, p) values (1, 1)", "show errors"]),
        (0, &["insert into parent (id) values (null)", "show errors"]),
        (1, &["update t set id = 1 where s = 'a' and id = 1", ADD, "show errors"]),
        (1, &[duplicate, "commit", "show warnings"]),
        (1, &[duplicate, "ping: ", "show warnings", "select row_count()"]),
        (1, &[duplicate, "select count(*) from t", "show warnings", "select row_count()"]),
        // A note before the error.
        (1, &["insert into t (id, n, d) values (1, 1, 1.999)", "show warnings"]),
        (1, &["insert into t (id, n, v) values (1, 1, 'abc        ')", "show warnings"]),
        (1, &["update t set n = u - 100 where id = 1", "show warnings"]),
        (1, &["set sql_mode = ''", "insert into t (id, n, u) values (1, 99999999999, 1)", "show warnings"]),
    ]);
}

#[test]
#[ignore = "long: make test-all"]
fn a_session_that_differs_from_new_ones_is_not_packed_or_its_lane_differs_too() {
    let in_other_zone = "update t set ts = '2020-01-01 00:00:00' where id = 1";
    check(&[
        (1, &["set sql_mode = 'NO_UNSIGNED_SUBTRACTION'", "update t set n = u - 40 where id = 1"]),
        (
            2,
            &[
                "set time_zone = '+05:00'",
                in_other_zone,
                "set time_zone = '+00:00'",
                in_other_zone,
                "select ts from t",
            ],
        ),
        (1, &["set sql_safe_updates = 1", ADD, "select row_count()"]),
        (1, &["set foreign_key_checks = 0", "insert into child (id, p) values (1, 9)"]),
        (0, &["set character_set_results = utf16", ADD, "set character_set_results = utf8mb4"]),
        (1, &["set character_set_results = latin1", ADD]),
        (2, &["set names latin1", ADD, "set names cp1251", ADD]),
        (2, &["set names gbk", ADD, "set names binary", ADD]),
        (0, &["set timestamp = 1", "update t set ts = now() where id = 1"]),
        (0, &["set session transaction read only", ADD]),
        (0, &["set session max_statement_time = 9", ADD]),
        (0, &["set autocommit = 0", ADD, "rollback", ADD]),
        (0, &["begin", ADD, "rollback"]),
        (0, &["start transaction", ADD, "savepoint a", ADD, "rollback to a", "commit"]),
        (0, &["lock tables t read", ADD, "unlock tables"]),
        (
            0,
            &[
                "create temporary table t (id int primary key, n int) engine=innodb",
                ADD,
                "drop temporary table t",
            ],
        ),
        (
            0,
            &[
                "create temporary table {db}.t (id int primary key, n int) engine=innodb",
                "update {db}.t set n = 1 where id = 1",
            ],
        ),
        (1, &["use mysql", "update {db}.t set n = 1 where id = 1", ADD]),
        (0, &["select 1; select 2", ADD]),
        (1, &["update t set n = n + 1 where id = 1;"]),
        (0, &["update t set n = n + 1 where id = 1; update t set n = 0 where id = 2"]),
        (0, &["set @x = 1", ADD]),
        (0, &["set role none", ADD]),
        (0, &["xa start '{db}'", ADD, "xa end '{db}'", "xa rollback '{db}'"]),
        (
            1,
            &[
                "set autocommit = 1",
                "select 1",
                "select @@session.sql_mode as mode",
                "select count(*) from t",
                ADD,
            ],
        ),
        (
            1,
            &[
                "insert into t (id, n) values (5, 1), (6, 1)",
                "insert ignore into t (id) values (5)",
                "update t set n = 4 where id in (5, 6)",
                ADD,
            ],
        ),
    ]);
}

#[test]
#[ignore = "long: make test-all"]
fn what_statements_call_is_seen() {
    let count = "create function count() returns int deterministic begin set session time_zone = '+05:00'; return 1; end";
    let now = "create function now () returns int deterministic begin set session time_zone = '+05:00'; return 1; end";
    let write = "update t set ts = '2020-01-01 00:00:00' where id = 1";
    let read = "set time_zone = '+00:00'";
    // A session that has created something is not packed, so another one creates it.
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    for (create, call) in [
        (count, "select count () from t"),
        (count, "select {db}.count() from t"),
        (now, "update t set n = now () where id = 1"),
        ("create view w as select {db}.f() as f", "select * from w"),
        ("create view w as select {db}.f() as f", "select 1 from t join w"),
        ("create view w as select {db}.f() as f", "select 1 from t, w"),
        ("create trigger r before update on t for each row set new.v = connection_id() * 0 + f()", ADD),
    ] {
        let mut sides = [(server.port(), "one_db"), (gateway.port(), "two_db")].map(|(port, database)| {
            let side = Side::new(port, database, UNUSUAL);
            let mut creator = Side { client: Client::login_to(server.port(), database, UNUSUAL), database };
            creator
                .run("create function f() returns int begin set session time_zone = '+05:00'; return 1; end");
            creator.run(create);
            side
        });
        for line in [call, write, read, "select ts from t"] {
            let [direct, through] = &mut sides;
            assert_eq!(through.run(line), direct.run(line), "{line} after {create}");
        }
    }
}

#[test]
fn expressions_of_a_table_see_the_sessions_own_connection() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    direct.ok("create sequence shop.s");
    for (table, writes) in [
        (
            "id int primary key, c bigint default (connection_id())",
            &["insert into shop.x (id) values (1)"][..],
        ),
        (
            "id int primary key, c bigint, v bigint as (connection_id()) virtual",
            &["insert into shop.x (id) values (1)", "update shop.x set c = v where id = 1"],
        ),
    ] {
        direct.ok(&format!("create or replace table shop.x ({table}) engine=innodb"));
        let mut through = root(gateway.port());
        for write in writes {
            assert_eq!(through.ok(write).affected, 1, "{write}");
        }
        assert_eq!(direct.value("select c from shop.x"), through.greeting.thread.to_string(), "{table}");
    }
    direct.ok("create or replace table shop.x (id int primary key, c bigint default (next value for shop.s)) engine=innodb");
    let mut through = root(gateway.port());
    through.ok("insert into shop.x (id) values (1)");
    assert_eq!(through.value("select lastval(shop.s)"), "1");
}

pub const BIGINT: [u8; 2] = [8, 0];
pub const UNSIGNED_BIGINT: [u8; 2] = [8, 0x80];
const TEXT: [u8; 2] = [0xfd, 0];

/// The types of two parameters, if they are sent, and the values.
type Execution<'a> = (Option<Types>, &'a [&'a [u8]]);
pub type Types = [[u8; 2]; 2];

/// What follows the command in an execution of a statement with two parameters.
pub fn execution(id: u32, types: Option<Types>, values: &[&[u8]]) -> Vec<u8> {
    let mut rest = id.to_le_bytes().to_vec();
    rest.extend_from_slice(&[0, 1, 0, 0, 0, 0, u8::from(types.is_some())]);
    types.iter().for_each(|types| rest.extend_from_slice(types.as_flattened()));
    rest.extend(values.concat());
    rest
}

fn text(value: &str) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap().to_le_bytes();
    [&[0xfc][..], &length, value.as_bytes()].concat()
}

#[test]
#[ignore = "long: make test-all"]
fn executions_of_prepared_statements_are_those_of_a_direct_connection() {
    let one = 1_i64.to_le_bytes();
    let (short, long) = (text("abc"), text(&"x".repeat(20_000)));
    let set_text = "update t set v = ? where id = ?";
    let set_number = "update t set n = ? - 7 where id = ?";
    let scripts: [(&str, &[Execution]); 5] = [
        (
            set_text,
            &[(Some([TEXT, BIGINT]), &[&short, &one]), (None, &[&short, &one]), (None, &[&long, &one])],
        ),
        (
            set_text,
            &[
                (Some([BIGINT, BIGINT]), &[&one, &one]),
                (None, &[&one, &one]),
                (Some([TEXT, BIGINT]), &[&long, &one]),
            ],
        ),
        (
            set_number,
            &[(Some([BIGINT, BIGINT]), &[&one, &one]), (Some([UNSIGNED_BIGINT, BIGINT]), &[&one, &one])],
        ),
        (
            set_number,
            &[
                (Some([UNSIGNED_BIGINT, BIGINT]), &[&one, &one]),
                (Some([BIGINT, BIGINT]), &[&one, &one]),
                (None, &[&one, &one]),
            ],
        ),
        (set_text, &[(Some([BIGINT, BIGINT]), &[&one, &one]), (Some([BIGINT, BIGINT]), &[&one])]),
    ];
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    for (sql, executions) in scripts {
        let mut sides = [(server.port(), "one_db"), (gateway.port(), "two_db")]
            .map(|(port, database)| Side::new(port, database, UNUSUAL));
        let ids = [0, 1].map(|side: usize| sides[side].client.prepare(sql));
        let mut same = |what: &dyn Fn(&mut Side, u32) -> Vec<String>| {
            let [direct, through] = &mut sides;
            assert_eq!(what(through, ids[1]), what(direct, ids[0]), "{sql} with {executions:?}");
        };
        for (types, values) in executions {
            same(&|side, id| side.command(Command::StmtExecute, &execution(id, *types, values)));
            same(&|side, _| side.run("update t set n = 5, v = null where id = 1"));
        }
        same(&|side, id| {
            let long = [&id.to_le_bytes()[..], &[0, 0], b"long"].concat();
            side.command(Command::StmtSendLongData, &long)
        });
        same(&|side, id| side.command(Command::StmtExecute, &execution(id, None, &[&one])));
        same(&|side, _| side.run("show warnings"));
        same(&|side, _| side.run("select * from t order by id"));
    }
    let batches = root(server.port()).value("select sum(n) from hotrow.batch").parse::<u64>().unwrap();
    assert!(batches > 10, "statements were packed: {batches}");
}

#[test]
fn a_statement_that_is_prepared_for_each_execution_is_packed() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut client = root(gateway.port());
    for _ in 0..5 {
        let id = client.prepare("update shop.item set sold = sold + ? where id = ?");
        assert_eq!(client.execute(id, &[1, 1], true).unwrap().affected, 1);
        client.command(Command::StmtClose, &id.to_le_bytes());
    }
    assert_eq!(root(server.port()).value("select sum(n) from hotrow.batch"), "5");
}
