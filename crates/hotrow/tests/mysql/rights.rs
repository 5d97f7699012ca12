//! Rights of the clients' user: a lane has those that the session has got at its login.

use hotrow_mysql_wire::message::Err as ErrPacket;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::client::Client;
use crate::lanes::{SELL, shop};
use crate::{PACKING, root, url};

const ANN: &str = "ann";

/// Creates the user, who may be packed, with these rights.
pub fn create_ann(direct: &mut Client, rights: &str) {
    direct.ok("create user ann identified by 'ann'");
    direct.ok(&format!("grant {rights} on *.* to ann"));
    direct.ok("grant execute on hotrow.* to ann");
}

pub fn ann(port: u16) -> Client {
    Client::login(port, ANN, ANN).unwrap()
}

fn batches(direct: &mut Client) -> u64 {
    direct.rows("select sum(n) from hotrow.batch")[0][0].as_ref().map_or(0, |sum| sum.parse().unwrap())
}

#[test]
fn new_sessions_have_the_rights_of_their_time() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    create_ann(&mut direct, "select, update");
    let mut early = ann(gateway.port());
    assert_eq!(early.ok(SELL).affected, 1);
    let before = batches(&mut direct);
    assert_eq!(before, 1, "it was packed");
    direct.ok("revoke update on *.* from ann");
    // A session keeps its global rights.
    assert_eq!(early.ok(SELL).affected, 1);
    let refusal = ann(server.port()).try_ok(SELL).unwrap_err();
    assert!(matches!(&refusal, ErrPacket { code: 1142, .. }), "{refusal}");
    assert_eq!(ann(gateway.port()).try_ok(SELL).unwrap_err(), refusal);
    direct.ok("grant update on shop.* to ann");
    let before = batches(&mut direct);
    // A session that logs in right after the GRANT cannot be told from one before it.
    until("a session is packed in a lane with the new rights", || {
        assert_eq!(ann(gateway.port()).ok(SELL).affected, 1);
        batches(&mut direct) > before
    });
    // Rights on tables and columns are those of the moment.
    direct.ok("revoke update on shop.* from ann");
    direct.ok("grant update (stock) on shop.item to ann");
    let mut late = ann(gateway.port());
    assert_eq!(late.try_ok(SELL), ann(server.port()).try_ok(SELL));
    assert_eq!(late.ok("update shop.item set stock = 7 where id = 3").affected, 1);
    direct.ok("revoke update (stock) on shop.item from ann");
    let sql = "update shop.item set stock = 8 where id = 3";
    assert_eq!(late.try_ok(sql), ann(server.port()).try_ok(sql));
}

/// A session has the rights of its login, also if it is packed for the first time after a GRANT.
#[test]
fn a_session_gets_no_rights_that_are_granted_after_its_login() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    create_ann(&mut direct, "select");
    let (mut one, mut other) = (ann(server.port()), ann(gateway.port()));
    for client in [&mut one, &mut other] {
        assert_eq!(client.value("select 1"), "1");
    }
    direct.ok("grant update on *.* to ann");
    assert_eq!(one.try_ok(SELL).unwrap_err().code, 1142);
    assert_eq!(other.try_ok(SELL), one.try_ok(SELL));
}

#[test]
fn a_role_is_part_of_the_rights() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    for sql in [
        "create user ann identified by 'ann'",
        "grant execute on hotrow.* to ann",
        "create role seller",
        "grant select, update on *.* to seller",
        "grant seller to ann",
        "set default role seller for ann",
    ] {
        direct.ok(sql);
    }
    assert_eq!(ann(gateway.port()).ok(SELL).affected, 1);
    assert_eq!(batches(&mut direct), 1);
    direct.ok("set default role none for ann");
    assert_eq!(ann(gateway.port()).try_ok(SELL), ann(server.port()).try_ok(SELL));
    direct.ok("set default role seller for ann");
    let mut client = ann(gateway.port());
    client.ok("set role none");
    assert_eq!(client.try_ok(SELL).unwrap_err().code, 1142);
    direct.ok("revoke update on *.* from seller");
    assert_eq!(ann(gateway.port()).try_ok(SELL).unwrap_err().code, 1142);
}

#[test]
fn a_user_without_the_right_to_call_the_routines_is_passed_through() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    direct.ok("create user ann identified by 'ann'");
    direct.ok("grant select, update on shop.* to ann");
    let connections = |direct: &mut Client| {
        direct.rows("show global status like 'Connections'")[0][1].as_ref().unwrap().parse::<u64>().unwrap()
    };
    let mut client = ann(gateway.port());
    assert_eq!(client.ok(SELL).affected, 1);
    let before = connections(&mut direct);
    for _ in 0..5 {
        assert_eq!(client.ok(SELL).affected, 1);
    }
    assert_eq!(connections(&mut direct), before, "no lane tries to connect");
    assert_eq!(client.value("select row_count()"), "1");
}
