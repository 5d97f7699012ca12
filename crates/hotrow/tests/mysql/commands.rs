//! Commands and their replies, compared byte by byte with a direct connection.

use bytes::Bytes;
use hotrow_mysql_wire::capabilities::DEPRECATE_EOF;
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::message::{EOF, ERR, Err as ErrPacket};
use hotrow_mysql_wire::native;

use crate::client::{Client, LogIn, UNUSUAL, proof};
use crate::{PASSWORD, USER, gateway, new_database, root, server};

/// A command, its parameters, and whether its reply is a text that changes with time.
type Step = (Command, Vec<u8>, bool);

fn step(command: Command, rest: impl AsRef<[u8]>) -> Step {
    (command, rest.as_ref().to_vec(), false)
}

fn query(sql: &str) -> Step {
    step(Command::Query, sql)
}

/// Executes the prepared statement with this number, with a cursor or without, with one parameter of type BIGINT.
fn execute(id: u32, cursor: u8, value: i64) -> Step {
    let mut rest = id.to_le_bytes().to_vec();
    rest.extend_from_slice(&[cursor, 1, 0, 0, 0, 0, 1, 8, 0]);
    rest.extend_from_slice(&value.to_le_bytes());
    step(Command::StmtExecute, rest)
}

fn steps(database: &str) -> Vec<Step> {
    let id = |number: u32| number.to_le_bytes();
    vec![
        step(Command::Ping, ""),
        step(Command::InitDb, database),
        step(Command::InitDb, "no_such_database"),
        query("create or replace table t (id int primary key auto_increment, v varchar(20)) engine=innodb"),
        query("insert into t (v) values ('one'), ('two'), (null)"),
        query("select * from t"),
        query("select * from t where id > 99"),
        query("update t set v = v where id = 1"),
        query("insert into t (id) values (1)"),
        query("select 1/0, cast('7x' as int)"),
        query("show warnings"),
        query("syntax error"),
        query("select 1; update t set v = 'x' where id = 2; select 2; syntax error; select 3"),
        query("begin"),
        query("select id from t for update"),
        query("rollback"),
        query("set @x = 5, autocommit = 0"),
        query("select @x, @@autocommit"),
        query("set autocommit = 1"),
        step(Command::StmtPrepare, "select id, v from t where id >= ? order by id"),
        execute(1, 0, 1),
        execute(1, 1, 1),
        step(Command::StmtFetch, [&id(1)[..], &id(2)].concat()),
        step(Command::StmtFetch, [&id(1)[..], &id(2)].concat()),
        step(Command::StmtReset, id(1)),
        step(Command::StmtPrepare, "syntax error"),
        step(Command::StmtPrepare, "insert into t (v) values (?)"),
        step(Command::StmtSendLongData, [&id(2)[..], &[0, 0], b"long"].concat()),
        step(Command::StmtExecute, [&id(2)[..], &[0, 1, 0, 0, 0, 0, 1, 0xfc, 0]].concat()),
        step(Command::StmtClose, id(2)),
        execute(99, 0, 1),
        query("select v from t order by id"),
        step(Command::FieldList, "t\0"),
        step(Command::SetOption, [1, 0]),
        (Command::Statistics, Vec::new(), true),
        query("load data local infile '/etc/passwd' into table t"),
        step(Command::ResetConnection, ""),
        query("select @x, database()"),
        query("create procedure p() begin select 1; select 2; end"),
        query("call p()"),
        query("kill 4000000000"),
    ]
}

/// The replies to the steps. The server numbers the statements of all connections together, so IDs are replaced by the numbers of
/// the statements that this connection has prepared.
fn replies(port: u16, without: u32, steps: &[Step]) -> Vec<Vec<(u8, Bytes)>> {
    let login = LogIn { user: USER, password: PASSWORD, plugin: native::PLUGIN, without };
    let mut client = Client::connect(port).unwrap().respond(&login).unwrap();
    let mut ids: Vec<[u8; 4]> = Vec::new();
    let replies = steps.iter().map(|(command, rest, changes)| {
        let mut rest = rest.clone();
        let has_id = matches!(
            command,
            Command::StmtExecute
                | Command::StmtFetch
                | Command::StmtReset
                | Command::StmtClose
                | Command::StmtSendLongData
        );
        if let Some(id) =
            ids.get(usize::from(rest.first().copied().unwrap_or(0)).wrapping_sub(1)).filter(|_| has_id)
        {
            rest[..4].copy_from_slice(id);
        }
        let mut reply = client.command(*command, &rest);
        if *command == Command::StmtPrepare && reply[0].1[0] == 0 {
            let mut first = reply[0].1.to_vec();
            ids.push(first[1..5].try_into().unwrap());
            first[1..5].fill(0);
            reply[0].1 = first.into();
        }
        if *changes {
            assert_eq!(reply.len(), 1);
            reply.clear();
        }
        reply
    });
    replies.collect()
}

#[test]
fn each_reply_is_the_one_of_a_direct_connection() {
    let gateway = gateway(&[]);
    for without in [UNUSUAL, UNUSUAL | DEPRECATE_EOF] {
        let steps = steps(new_database("commands"));
        let direct = replies(server().port(), without, &steps);
        new_database("commands");
        let through = replies(gateway.port(), without, &steps);
        for ((step, direct), through) in steps.iter().zip(&direct).zip(&through) {
            let text = String::from_utf8_lossy(&step.1);
            assert_eq!(direct, through, "{:?} {text}", step.0);
        }
        let packets: usize = direct.iter().map(Vec::len).sum();
        assert!(packets > 100, "the replies have contents: {packets}");
    }
}

#[test]
fn large_statements_and_rows_pass_in_several_packets() {
    let gateway = gateway(&[]);
    let mut client = root(gateway.port());
    // The same length on both sides of a packet's limit of 16 MiB.
    for length in [(1 << 24) - 20, 1 << 24, (1 << 24) + 20] {
        let text = "x".repeat(length);
        assert_eq!(client.value(&format!("select length('{text}')")), length.to_string());
        assert_eq!(client.value(&format!("select repeat('x', {length})")), text);
    }
}

#[test]
fn commands_of_one_write_are_answered_in_order_with_the_gateways_own_errors_between_them() {
    let gateway = gateway(&[]);
    let mut client = root(gateway.port());
    const BINLOG_DUMP: u8 = 0x12;
    for _ in 0..3_000 {
        client.send(0, &[&[Command::Query as u8][..], b"select 'a', repeat('b', 100)"].concat());
        client.send(0, &[BINLOG_DUMP, 0, 0, 0, 0]);
        client.send(0, &[Command::Ping as u8]);
    }
    for _ in 0..3_000 {
        let rows = client.reply(Command::Query);
        assert!(rows.len() >= 5, "{rows:?}");
        let refused = client.reply(Command::Ping);
        let error = ErrPacket::read(&refused[0].1).unwrap();
        assert_eq!((error.code, error.sqlstate.as_str()), (1047, "08S01"), "{error}");
        assert!(error.message.contains("0x12"), "{error}");
        assert_eq!(client.reply(Command::Ping)[0].1[0], 0);
    }
    assert_eq!(client.value("select 7"), "7");
}

#[test]
fn change_user_authenticates_at_the_server() {
    let mut direct = root(server().port());
    direct.ok("create or replace user changed identified by 'p'");
    let gateway = gateway(&[]);
    let mut client = root(gateway.port());
    let thread = client.value("select connection_id()");
    let change = |client: &mut Client, password: &str| {
        let proof = proof(&client.greeting.nonce, password);
        let mut rest = b"changed\0".to_vec();
        rest.push(u8::try_from(proof.len()).unwrap());
        rest.extend_from_slice(&proof);
        rest.extend_from_slice(b"\0\x2d\0mysql_native_password\0");
        client.send(0, &[&[Command::ChangeUser as u8][..], &rest].concat());
        client.packet().unwrap()
    };
    let mut packet = change(&mut client, "p");
    if packet.payload[0] == EOF {
        let nonce = &packet.payload[native::PLUGIN.len() + 2..packet.payload.len() - 1];
        client.send(packet.sequence + 1, &proof(nonce, "p"));
        packet = client.packet().unwrap();
    }
    assert_eq!(packet.payload[0], 0, "{:?}", ErrPacket::read(&packet.payload));
    assert_eq!(client.value("select substring_index(user(), '@', 1)"), "changed");
    assert_eq!(client.value("select connection_id()"), thread);

    // A packet that is neither a command nor part of a login ends the session.
    client.send(3, b"\x03select 1");
    let error = client.packet().unwrap().payload;
    assert_eq!((error[0], ErrPacket::read(&error).unwrap().code), (ERR, 1156));
    assert!(client.packet().is_none());
}
