//! Commits in doubt with the hotrow schema installed: the lane's mark shows their outcome, after crashes of the server
//! and when no transaction ID has arrived.

use std::path::Path;
use std::process::{Command, Stdio};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::{Line, until};
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};
use hotrow_testkit::{Gateway, migrate, needed_tool, pg_dump};

use crate::load::SELL;
use crate::lost_ids::{CUT, logged, lost_sale, number};
use crate::prepare;

/// A server with the hotrow schema, a gateway that reaches it through a proxy, and a client that has sold one item.
struct Stage {
    server: PrivateServer,
    proxy: Proxy,
    gateway: Gateway,
    client: Line,
}

impl Stage {
    fn new(label: &str) -> Self {
        Self::with(label, &[])
    }

    fn with(label: &str, options: &[&str]) -> Self {
        let server = PrivateServer::builder().label(label).start().unwrap();
        prepare(server.port(), label);
        migrate(&server.url());
        let proxy = Proxy::start(server.port());
        let gateway = Gateway::in_front_of(&proxy.url(), &[&["--server-wait-ms", "20000"], options].concat());
        let mut client = Line::connect(gateway.port(), label).unwrap().unwrap();
        assert_eq!(number(&client.query(SELL)), 1);
        Stage { server, proxy, gateway, client }
    }

    fn sell(&mut self) {
        self.client.put_query(SELL);
        self.client.send().unwrap();
    }
}

#[test]
fn a_commit_that_the_log_contains_is_answered_after_two_crashes() {
    let mut stage = Stage::new("kept");
    let mut direct = Line::connect(stage.server.port(), "kept").unwrap().unwrap();
    stage.proxy.for_new(|| Some(CUT));
    stage.proxy.arm(Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Swallow });
    stage.sell();
    until("the item is sold", || number(&direct.query("select sold from inv")) == 2);
    for _ in 0..2 {
        stage.server.kill_dash_nine().unwrap();
        stage.server.restart().unwrap();
    }
    stage.proxy.for_new(|| None);
    assert_eq!(stage.client.answer().rows(), [[Some("2".to_owned())]], "{}", stage.gateway.log());
    logged(&stage.gateway, "continuity=Logged");
}

#[test]
#[ignore = "long: make test-all"]
fn a_batch_whose_backend_ended_before_its_last_statement_is_run_again() {
    // The cut has to come before the lane gives the lock up.
    let mut stage = Stage::with("before_end", &["--lane-lock-timeout-ms", "2000"]);
    let mut direct = Line::connect(stage.server.port(), "before_end").unwrap().unwrap();
    assert_eq!(direct.query("begin; update inv set sold = sold").error(), None);
    let cuts = stage.proxy.cuts();
    stage.sell();
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
    until("the update waits", || number(&direct.query(waits)) == 1);
    // The server's lock timeout error does not arrive.
    stage.proxy.arm(CUT);
    until("a connection is cut", || stage.proxy.cuts() > cuts);
    assert_eq!(direct.query("commit").error(), None);
    assert_eq!(stage.client.answer().rows(), [[Some("2".to_owned())]], "{}", stage.gateway.log());
    logged(&stage.gateway, "continuity=NotLogged");
}

/// A backend that no longer has the lock of its mark has not ended yet.
#[test]
#[ignore = "long: make test-all"]
fn no_unit_runs_twice_after_a_function_has_released_the_lock_of_a_mark() {
    let mut stage = Stage::with("released", &["--lane-lock-timeout-ms", "20000"]);
    let mut direct = Line::connect(stage.server.port(), "released").unwrap().unwrap();
    let mut releases = Line::connect(stage.server.port(), "released").unwrap().unwrap();
    let function = |body: &str| {
        format!(
            "create or replace function is_right(bigint) returns bool immutable language plpgsql as
             'begin {body} return true; end'"
        )
    };
    assert_eq!(direct.query(&function("")).error(), None);
    assert_eq!(direct.query("alter table inv add check (is_right(sold))").error(), None);
    let mut sold = 1;
    until("a unit is packed", || {
        let before = stage.gateway.metric("packed_units_total");
        sold += 1;
        assert_eq!(number(&stage.client.query(SELL)), sold);
        stage.gateway.metric("packed_units_total") > before
    });
    // No check of a batch looks at the functions of a constraint. The server calls them before it waits for the row.
    assert_eq!(releases.query(&function("perform pg_advisory_unlock_all();")).error(), None);
    assert_eq!(direct.query("begin; update inv set sold = sold").error(), None);
    stage.sell();
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
    until("the update waits", || number(&releases.query(waiting)) == 1);
    stage.proxy.cut_lanes();
    logged(&stage.gateway, "the outcome of the commit in doubt");
    assert_eq!(direct.query("commit").error(), None);
    let answer = stage.client.answer();
    assert_eq!(
        answer.error().map(|report| report.code.clone()).as_deref(),
        Some("08007"),
        "{}",
        stage.gateway.log()
    );
    until("the update waits no longer", || number(&releases.query(waiting)) == 0);
    let sum = number(&direct.query("select sold from inv"));
    assert!((sold..=sold + 1).contains(&sum), "{sum}, {sold} before\n{}", stage.gateway.log());
}

/// A script that resets all sequences must not make the gateway conclude that a commit was lost.
#[test]
#[ignore = "long: make test-all"]
fn no_unit_runs_twice_after_a_mark_was_set_back() {
    let mut stage = Stage::new("set_back");
    let mut direct = Line::connect(stage.server.port(), "set_back").unwrap().unwrap();
    stage.proxy.for_new(|| Some(CUT));
    stage.proxy.arm(Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Swallow });
    stage.sell();
    until("the item is sold", || number(&direct.query("select sold from inv")) == 2);
    let reset =
        "select setval(oid::regclass, 1) from pg_class where relkind = 'S' and relname like 'mark\\_%'";
    stage.server.query(reset).unwrap();
    stage.server.kill_dash_nine().unwrap();
    stage.server.restart().unwrap();
    stage.proxy.for_new(|| None);
    assert_eq!(stage.client.answer().error().map(|report| report.code.clone()).as_deref(), Some("08007"));
    let mut direct = Line::connect(stage.server.port(), "set_back").unwrap().unwrap();
    assert_eq!(number(&direct.query("select sold from inv")), 2);
}

/// A dump brings the marks of its cluster, with values that are above all transaction IDs of this one. The next
/// connection of the role gets such a mark if it is old enough.
#[test]
#[ignore = "long: make test-all"]
fn a_lost_commit_is_not_taken_for_logged_because_of_a_restored_mark() {
    let restored = |server: &PrivateServer| {
        migrate(&server.url());
        let mark = "insert into hotrow.mark (key, role, generation, unused_since)
                values (7, 'postgres', 3, now() - interval '1 hour');
            create sequence hotrow.mark_7; select setval('hotrow.mark_7', 1000000); checkpoint";
        server.query(mark).unwrap();
    };
    let is_used = |server: &PrivateServer| {
        let used = "select generation from hotrow.mark";
        assert_eq!(server.query(used).unwrap(), [[Some("4".to_owned())]], "the lane has another mark");
    };
    let (answer, sold, gateway) = lost_sale(1, restored, is_used);
    let report = answer.error().unwrap_or_else(|| panic!("{}", gateway.log()));
    assert_eq!((report.code.as_str(), sold.as_str()), ("08007", "0 more"), "{}", gateway.log());
}

/// The same with pg_dump, and with a mark that a lane of a cluster with higher transaction IDs has set.
#[test]
#[ignore = "long: make test-all"]
fn a_lost_commit_is_not_taken_for_logged_because_of_a_dump() {
    let mut dumped = Stage::new("dumped");
    let Some(pg_dump) = pg_dump(&dumped.server) else { return };
    let psql = needed_tool("psql");
    let ids = "do $$ begin for i in 1 .. 2000 loop perform pg_current_xact_id(); commit; end loop; end $$";
    dumped.server.query(ids).unwrap();
    assert_eq!(number(&dumped.client.query(SELL)), 2);
    let restored = |server: &PrivateServer| {
        // A dump has no roles.
        server.query("create role hotrow_caller nologin").unwrap();
        copy_database(&pg_dump, &dumped.server, &psql, server);
        let ages = "update hotrow.mark set unused_since = now() - interval '1 hour', checked_at = now() - interval '1 hour'";
        server.query(ages).unwrap();
        server.query("checkpoint").unwrap();
    };
    let is_used = |server: &PrivateServer| {
        let used = "select generation from hotrow.mark";
        assert_eq!(server.query(used).unwrap(), [[Some("2".to_owned())]], "the lane has another mark");
    };
    let (answer, sold, gateway) = lost_sale(1, restored, is_used);
    let report = answer.error().unwrap_or_else(|| panic!("{}", gateway.log()));
    assert_eq!((report.code.as_str(), sold.as_str()), ("08007", "0 more"), "{}", gateway.log());
}

/// Restores a dump of one server's database in that of another server.
fn copy_database(pg_dump: &Path, from: &PrivateServer, psql: &Path, to: &PrivateServer) {
    let mut dump = Command::new(pg_dump)
        .args(["-d", &from.url()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("pg_dump can run");
    let dumped = dump.stdout.take().expect("its output is a pipe");
    let restored = Command::new(psql)
        .args(["-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-d", &to.url()])
        .stdin(dumped)
        .stdout(Stdio::null())
        .status()
        .expect("psql can run");
    assert!(dump.wait().unwrap().success() && restored.success());
}

#[test]
#[ignore = "long: make test-all"]
fn a_lost_commit_is_not_taken_for_logged_because_a_mark_was_set_forward() {
    let set_forward = |server: &PrivateServer| {
        let marks = "select setval(oid::regclass, 1000000) from pg_class where relkind = 'S' and relname like 'mark\\_%'";
        assert_eq!(server.query(marks).unwrap().len(), 1);
    };
    let (answer, sold, gateway) = lost_sale(1, |server| migrate(&server.url()), set_forward);
    let report = answer.error().unwrap_or_else(|| panic!("{}", gateway.log()));
    assert_eq!((report.code.as_str(), sold.as_str()), ("08007", "0 more"), "{}", gateway.log());
}

/// The first form of marks held bare transaction IDs, and such a pack may serve gateways that rely on this.
#[test]
fn a_pack_with_the_first_form_of_marks_is_used_without_marks() {
    let server = PrivateServer::builder().label("first_form").start().unwrap();
    prepare(server.port(), "first_form");
    migrate(&server.url());
    server.query("alter function hotrow.claim_mark(text) rename to take_mark").unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let mut client = Line::connect(gateway.port(), "first_form").unwrap().unwrap();
    assert_eq!(number(&client.query(SELL)), 1, "{}", gateway.log());
    assert!(gateway.metric("packed_units_total") > 0);
    assert_eq!(server.query("select from hotrow.mark").unwrap().len(), 0);
}

/// An event trigger, for example one that records all DDL, runs where a mark is created and not on the lane.
#[test]
#[ignore = "long: make test-all"]
fn state_of_an_event_trigger_does_not_stay_on_a_lane() {
    let server = PrivateServer::builder().label("event").start().unwrap();
    prepare(server.port(), "event");
    migrate(&server.url());
    let trigger = "create function noted() returns event_trigger language plpgsql as
            $$ begin perform set_config('datestyle', 'German', false); end $$;
        create event trigger noted on ddl_command_end execute function noted()";
    server.query(trigger).unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let mut client = Line::connect(gateway.port(), "event").unwrap().unwrap();
    for _ in 0..3 {
        let sold = client.query("update inv set sold = sold where id = 1 returning date '2020-12-31'::text");
        assert_eq!(sold.rows(), [[Some("2020-12-31".to_owned())]]);
    }
    assert!(gateway.metric("packed_units_total") > 0);
}

#[test]
#[ignore = "long: make test-all"]
fn a_lane_that_logs_in_again_keeps_its_mark() {
    let keeps_mark = |_| {
        let mut stage = Stage::new("kept_mark");
        let marks = "select relname from pg_class where relkind = 'S' and relname like 'mark\\_%'";
        let before = stage.server.query(marks).unwrap();
        let mut direct = Line::connect(stage.server.port(), "kept_mark").unwrap().unwrap();
        for sold in 2..8 {
            // The lane logs in again because its statements were decided under the earlier definition.
            assert_eq!(direct.query("alter table inv alter stock set default 7").error(), None);
            assert_eq!(number(&stage.client.query(SELL)), sold, "{}", stage.gateway.log());
            assert_eq!(number(&stage.client.query("update inv set sold = sold returning sold")), sold);
        }
        stage.server.query(marks).unwrap() == before
    };
    // On a busy machine, an old connection can take so long to end that the lane takes another mark.
    assert!((0..3).any(keeps_mark), "the lane has taken another mark each time");
}

#[test]
#[ignore = "long: make test-all"]
fn dropping_a_mark_fails_no_statement() {
    let mut stage = Stage::new("dropped");
    let marks = "select count(*) from pg_class where relkind = 'S' and relname like 'mark\\_%'";
    assert_ne!(stage.server.query(marks).unwrap()[0][0].as_deref(), Some("0"));
    stage.server.query("drop schema hotrow cascade").unwrap();
    for sold in 2..6 {
        assert_eq!(number(&stage.client.query(SELL)), sold, "{}", stage.gateway.log());
    }
    logged(&stage.gateway, "continuing without it");
}
