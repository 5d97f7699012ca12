//! An old primary that comes back after a failover, as a primary: it gets no units, because the new primary never gets what is
//! written there.

use std::thread;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::Line;
use hotrow_testkit::{Gateway, connect};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::failover::{caught_up, hosts};
use crate::generations::Generations;
use crate::lost_ids::logged;

const RIVALS: &str = "two hosts of one cluster accept writes";

/// A primary with a table, and its standby.
fn pair(label: &str) -> (PrivateServer, PrivateServer) {
    let primary = PrivateServer::builder().label(label).start().unwrap();
    primary.query("create table written (what text)").unwrap();
    let standby = primary.standby().unwrap();
    (primary, standby)
}

/// The standby is promoted after a crash of the primary, which comes back on its old timeline.
fn fail_over(primary: &PrivateServer, standby: &PrivateServer) {
    caught_up(primary, standby);
    primary.kill_dash_nine().unwrap();
    standby.promote().unwrap();
}

fn write(port: u16, what: &str) {
    let mut line = Line::connect(port, "public").unwrap().expect("the client is admitted");
    let answer = line.query(&format!("insert into written values ('{what}')"));
    assert_eq!(answer.error(), None, "{what}");
}

fn written(server: &PrivateServer) -> Vec<String> {
    let rows = server.query("select what from written order by what").unwrap();
    rows.into_iter().map(|row| row[0].clone().unwrap()).collect()
}

#[test]
#[ignore = "long: make test-all"]
fn an_old_primary_gets_nothing_while_the_new_one_restarts() {
    let (old, new) = pair("returns");
    let gateway = Gateway::in_front_of(&hosts(old.port(), new.port()), &["--server-wait-ms", "60000"]);
    write(gateway.port(), "1 before the failover");
    fail_over(&old, &new);
    write(gateway.port(), "2 after the failover");
    old.restart().unwrap();
    write(gateway.port(), "3 the old primary is back");
    logged(&gateway, RIVALS);
    assert_eq!(gateway.metric("rival_primaries"), 1);
    new.stop().unwrap();
    let port = gateway.port();
    let waits = thread::spawn(move || write(port, "4 the new primary restarts"));
    logged(&gateway, "is an old primary: it is on timeline 1, and timeline 2 of the same cluster has served");
    new.restart().unwrap();
    waits.join().unwrap();
    write(gateway.port(), "5 the new primary is back");
    assert_eq!(written(&old), ["1 before the failover"]);
    assert_eq!(written(&new).len(), 5);
    old.stop().unwrap();
    logged(&gateway, "no other host of the cluster accepts writes any longer");
    assert_eq!(gateway.metric("rival_primaries"), 0);
}

#[test]
#[ignore = "long: make test-all"]
fn a_successor_goes_on_with_the_promoted_primary() {
    let (old, new) = pair("successor");
    let mut command = hotrow_testkit::hotrow();
    let hosts = hosts(old.port(), new.port());
    command.args(["serve", "--upstream", &hosts, "--listen", "127.0.0.1:0", "--server-wait-ms", "60000"]);
    let gateways = Generations::start(command);
    gateways.wait_for("hotrow: listening on", 1);
    write(gateways.port(), "1 before the failover");
    fail_over(&old, &new);
    write(gateways.port(), "2 after the failover");
    old.restart().unwrap();
    new.stop().unwrap();
    gateways.signal(Signal::SIGUSR2);
    gateways.wait_for("hotrow::serve: stopped", 1);
    let port = gateways.port();
    let waits = thread::spawn(move || write(port, "3 through the successor"));
    // The successor has never seen the new primary.
    gateways.wait_for("is an old primary: it is on timeline 1", 1);
    new.restart().unwrap();
    waits.join().unwrap();
    assert_eq!(written(&old), ["1 before the failover"]);
    assert_eq!(written(&new).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn open_connections_to_an_old_primary_are_not_used_again() {
    let (old, new) = pair("stays-up");
    old.query("create role app login").unwrap();
    let upstream = format!("{} connect_timeout=1", hosts(old.port(), new.port()));
    let gateway = Gateway::in_front_of(&upstream, &["--server-wait-ms", "60000"]);
    let mut holds = Line::connect(gateway.port(), "public").unwrap().expect("the client is admitted");
    assert_eq!(holds.query("begin; insert into written values ('lost')").error(), None);
    let mut packed = Line::connect(gateway.port(), "public").unwrap().expect("the client is admitted");
    for what in ["1 before", "2 before"] {
        assert_eq!(packed.query(&format!("insert into written values ('{what}')")).error(), None);
    }
    caught_up(&old, &new);
    new.promote().unwrap();
    // The old primary accepts no more connections, and works on those that it has.
    let postmaster = Pid::from_raw(old.postmaster_pid().unwrap().cast_signed());
    kill(postmaster, Signal::SIGSTOP).unwrap();
    // A pool of its own needs a connection of its own, and gets it from the new primary.
    connect(gateway.config().user("app")).await.batch_execute("select 1").await.unwrap();
    logged(&gateway, "another host serves from now on");
    assert_eq!(packed.query("insert into written values ('3 after')").error(), None);
    let lost = holds.query("commit").error().map(|report| report.code);
    assert_eq!(lost.as_deref(), Some("08006"));
    kill(postmaster, Signal::SIGCONT).unwrap();
    assert_eq!(written(&old), ["1 before", "2 before"]);
    assert_eq!(written(&new), ["1 before", "2 before", "3 after"]);
}

#[test]
#[ignore = "long: make test-all"]
fn a_gateway_begins_with_the_highest_timeline() {
    let (old, new) = pair("begins");
    fail_over(&old, &new);
    old.restart().unwrap();
    // Without target_session_attrs, the first host that answers would do.
    let any = hosts(old.port(), new.port()).replace("target_session_attrs=read-write", "");
    for upstream in [hosts(old.port(), new.port()), any] {
        let gateway = Gateway::in_front_of(&upstream, &[]);
        write(gateway.port(), "after the start");
        logged(&gateway, RIVALS);
        assert_eq!(gateway.metric("rival_primaries"), 1);
    }
    assert_eq!(written(&old), [""; 0]);
    assert_eq!(written(&new).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_role_that_may_not_ask_for_the_timeline_is_served() {
    let (old, new) = pair("may-not-ask");
    old.query("create role app login; grant all on written to app").unwrap();
    old.query("revoke execute on function pg_control_system() from public").unwrap();
    let upstream = hosts(new.port(), old.port()).replace("user=postgres", "user=app");
    let gateway = Gateway::in_front_of(&upstream, &[]);
    let app = gateway.config().user("app").clone();
    connect(&app).await.batch_execute("insert into written values ('1')").await.unwrap();
    fail_over(&old, &new);
    connect(&app).await.batch_execute("insert into written values ('2')").await.unwrap();
    assert_eq!(written(&new), ["1", "2"]);
}
