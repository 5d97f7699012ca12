//! A primary that fails and a standby that is promoted: units wait, and outcomes of commits in doubt are not guessed.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::{Answer, Line, until};
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};
use hotrow_testkit::{Gateway, migrate};

use crate::checker::{check, settle};
use crate::load::{Load, SELL};
use crate::lost_ids::logged;
use crate::{CLIENTS, CRASH, prepare, summary};

/// libpq's connection string of two hosts, of which the primary is wanted.
pub fn hosts(first: u16, second: u16) -> String {
    format!(
        "host=127.0.0.1,127.0.0.1 port={first},{second} user=postgres dbname=postgres target_session_attrs=read-write sslmode=disable"
    )
}

/// A primary whose commits wait for its standby.
fn synchronous() -> (PrivateServer, PrivateServer) {
    let primary = PrivateServer::builder().label("primary").start().unwrap();
    let standby = primary.standby().unwrap();
    primary.query("alter system set synchronous_standby_names = 'standby'").unwrap();
    primary.query("select pg_reload_conf()").unwrap();
    (primary, standby)
}

#[test]
fn a_failover_under_load_loses_no_acknowledged_unit() {
    let (primary, standby) = synchronous();
    prepare(primary.port(), "failover");
    // The standby is first in the list and is skipped as long as it is a standby.
    let gateway = Gateway::in_front_of(&hosts(standby.port(), primary.port()), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "failover");
    load.flows(1000);
    primary.kill_dash_nine().unwrap();
    standby.promote().unwrap();
    load.flows(1000);
    // The old primary, started again, gets no units while the new one serves.
    primary.restart().unwrap();
    primary.query("alter system reset synchronous_standby_names").unwrap();
    primary.query("select pg_reload_conf()").unwrap();
    let mut dead = settle(primary.port(), "failover");
    let before = dead.query("select count(*) from ledger").rows();
    load.flows(1000);
    assert_eq!(dead.query("select count(*) from ledger").rows(), before);
    let records = load.stop();
    summary("failover", &records);
    check(standby.port(), "failover", &records);
    assert_eq!(records.unexpected(&CRASH), []);
    let wanted = format!("another host serves from now on server=127.0.0.1:{}", standby.port());
    logged(&gateway, &wanted);
}

/// A sale that is committed on the primary and whose confirmation is lost with the primary. Returns the client's
/// answer, the number sold on the promoted standby, and the gateway.
fn sale_in_doubt(replicated: bool, has_pack: bool) -> (Answer, String, Gateway) {
    let primary = PrivateServer::builder().label("primary").start().unwrap();
    let standby = primary.standby().unwrap();
    prepare(primary.port(), "doubt");
    if has_pack {
        migrate(&primary.url());
    }
    let proxy = Proxy::start(primary.port());
    let gateway = Gateway::in_front_of(&hosts(proxy.port(), standby.port()), &["--server-wait-ms", "20000"]);
    let mut client = Line::connect(gateway.port(), "doubt").unwrap().unwrap();
    assert_eq!(client.query(SELL).rows(), [[Some("1".to_owned())]]);
    caught_up(&primary, &standby);
    if !replicated {
        standby.query("alter system set primary_conninfo = ''").unwrap();
        standby.query("select pg_reload_conf()").unwrap();
        wait(&standby, "select count(*) from pg_stat_wal_receiver", "0");
    }
    proxy.for_new(|| Some(Fault { way: Way::ToGateway, after: After::Bytes(0), how: How::Cut }));
    proxy.arm(Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Swallow });
    client.put_query(SELL);
    client.send().unwrap();
    wait(&primary, "select sold from doubt.inv", "2");
    if replicated {
        caught_up(&primary, &standby);
    }
    primary.kill_dash_nine().unwrap();
    standby.promote().unwrap();
    let answer = client.answer();
    let sold = standby.query("select sold from doubt.inv").unwrap();
    (answer, sold[0][0].clone().unwrap(), gateway)
}

#[test]
fn a_commit_that_a_promoted_standby_has_is_reported_as_unknown() {
    let (answer, sold, gateway) = sale_in_doubt(true, false);
    let report = answer.error().expect("the ID may belong to another transaction by now");
    assert_eq!((report.code.as_str(), sold.as_str()), ("08007", "2"));
    logged(&gateway, "continuity=SameCluster");
}

#[test]
#[ignore = "long: make test-all"]
fn a_unit_whose_commit_never_reached_the_promoted_standby_is_run_again() {
    let (answer, sold, gateway) = sale_in_doubt(false, false);
    assert_eq!(answer.rows(), [[Some("2".to_owned())]], "{}", gateway.log());
    assert_eq!(sold, "2");
    logged(&gateway, "outcome=Aborted");
}

#[test]
#[ignore = "long: make test-all"]
fn a_commit_that_a_promoted_standby_has_is_answered_if_the_lane_has_a_mark() {
    let (answer, sold, gateway) = sale_in_doubt(true, true);
    assert_eq!(answer.rows(), [[Some("2".to_owned())]], "{}", gateway.log());
    assert_eq!(sold, "2");
    logged(&gateway, "continuity=Logged");
}

pub fn caught_up(primary: &PrivateServer, standby: &PrivateServer) {
    let end = primary.query("select pg_current_wal_flush_lsn()").unwrap()[0][0].clone().unwrap();
    wait(standby, &format!("select pg_last_wal_replay_lsn() >= '{end}'"), "t");
}

fn wait(server: &PrivateServer, sql: &str, wanted: &str) {
    until(&format!("{sql} is {wanted}"), || server.query(sql).unwrap()[0][0].as_deref() == Some(wanted));
}
