//! Sessions: KILL, lost connections, a crash of the server, and a stop of the gateway.

use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::message::{ERR, Err as ErrPacket};
use hotrow_testkit::line::until;
use hotrow_testkit::{Gateway, mariadb};

use crate::client::Client;
use crate::{gateway, new_database, root, server, url};

fn sends(client: &mut Client, sql: &str) {
    client.send(0, &[&[Command::Query as u8][..], sql.as_bytes()].concat());
}

/// Waits until the connection with this ID runs a statement.
fn until_it_runs(watcher: &mut Client, thread: u32) {
    let sql = format!(
        "select count(*) from information_schema.processlist where id = {thread} and info like 'select sleep%'"
    );
    until("it runs", || watcher.value(&sql) == "1");
}

#[test]
fn kill_ends_the_session_or_the_statement_with_this_id() {
    let gateway = gateway(&[]);
    let (mut victim, mut killer) = (root(gateway.port()), root(gateway.port()));
    let thread = victim.greeting.thread;
    assert_eq!(victim.value("select connection_id()"), thread.to_string());
    sends(&mut victim, "select sleep(1000)"); // a statement that lasts
    until_it_runs(&mut killer, thread);
    killer.ok(&format!("kill query {thread}"));
    let reply = victim.reply(Command::Query);
    let interrupted = reply.iter().any(|(_, packet)| packet[0] == ERR || packet.ends_with(b"1"));
    assert!(interrupted, "{reply:?}");
    assert_eq!(victim.value("select 'still there'"), "still there");
    sends(&mut victim, "select sleep(1000)"); // a statement that lasts
    until_it_runs(&mut killer, thread);
    killer.command(Command::ProcessKill, &thread.to_le_bytes());
    while victim.packet().is_some() {}
    let idle = root(gateway.port());
    killer.ok(&format!("kill {}", idle.greeting.thread));
    let mut idle = idle;
    while idle.packet().is_some() {}
}

#[test]
fn a_client_that_leaves_takes_its_server_connection_along() {
    let gateway = gateway(&[]);
    let mut client = root(gateway.port());
    let database = new_database("leaving");
    client.ok(&format!("create table {database}.t (id int primary key) engine=innodb"));
    client.ok("begin");
    client.ok(&format!("insert into {database}.t values (1)"));
    let thread = client.greeting.thread;
    drop(client);
    let mut watcher = root(server().port());
    let sql = format!("select count(*) from information_schema.processlist where id = {thread}");
    until("its connection is gone", || watcher.value(&sql) == "0");
    assert_eq!(watcher.value(&format!("select count(*) from {database}.t")), "0");
}

#[test]
fn a_crash_of_the_server_ends_sessions_and_the_next_ones_work() {
    let server = mariadb(&[]);
    let gateway = Gateway::in_front_of(&url(&server), &[]);
    let mut client = root(gateway.port());
    client.ok("create database shop");
    client.ok("create table shop.t (id int primary key, n int) engine=innodb");
    client.ok("insert into shop.t values (1, 1)");
    server.kill_dash_nine();
    assert!(client.packet().is_none());
    assert_eq!(Client::connect(gateway.port()).err().map(|error| error.code), Some(1429));
    server.restart().unwrap();
    assert_eq!(root(gateway.port()).value("select n from shop.t"), "1");
}

#[test]
fn a_stop_waits_for_transactions_and_tells_idle_clients() {
    let mut gateway = gateway(&[]);
    let database = new_database("stopping");
    let (mut idle, mut busy) = (root(gateway.port()), root(gateway.port()));
    busy.ok(&format!("create table {database}.t (id int primary key) engine=innodb"));
    busy.ok("begin");
    busy.ok(&format!("insert into {database}.t values (1)"));
    gateway.sigterm();
    let told = ErrPacket::read(&idle.packet().unwrap().payload).unwrap();
    assert_eq!((told.code, told.sqlstate.as_str()), (1053, "08S01"), "{told}");
    assert!(idle.packet().is_none());
    busy.ok(&format!("insert into {database}.t values (2)"));
    busy.ok("commit");
    assert!(gateway.wait().success());
    until("the log says so", || gateway.log().contains("stopped"));
    assert_eq!(root(server().port()).value(&format!("select count(*) from {database}.t")), "2");
}
