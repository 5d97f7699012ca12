//! The doctor on a private MariaDB server, with situations that clients make: it names the row, its key and the statement.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod planted;

use std::time::Duration;

use hotrow_doctor::Error;
use hotrow_doctor::diagnosis::findings::Situation;
use hotrow_doctor::mariadb::diagnosis::diagnose;
use hotrow_doctor::mariadb::report::{Report, Statement};
use hotrow_doctor::mariadb::text::text;
use hotrow_doctor::mariadb::verdict::VerdictKind;
use hotrow_mysql_client::INSTALL;
use planted::{Planted, args, pause, root, value};

const ITEMS: &str =
    "create table item (id int primary key, name varchar(50) not null unique, stock int not null);
insert into item select seq, concat('item ', seq), 0 from seq_1_to_1000";
const UPDATE: &str = "update item set stock = stock - 1 where id = 7";
const SHAPE: &str = "update item set stock = stock - ? where id = ?";
/// The rights that a full report needs.
const RIGHTS: [&str; 2] = ["process on *.*", "select, trigger on {db}.*"];
/// Enough for a crowd at a row on any machine.
const CLIENTS: usize = 24;

fn statement<'r>(report: &'r Report, text: &str) -> &'r Statement {
    let mut statements = report.statements.iter();
    statements.find(|one| one.text == text).unwrap_or_else(|| panic!("{text}: {:?}", report.statements))
}

#[test]
fn a_hot_row_is_named_with_its_key_and_its_statement() {
    let planted = Planted::new(ITEMS, &RIGHTS).loads(CLIENTS, |_| UPDATE.to_owned());
    planted.until_one_waits();
    let recording = planted.record();
    let report = Report::new(&diagnose(&recording, true));
    eprintln!("{}", text(&report));
    assert_eq!((report.findings[0].kind, report.helps), (Situation::HotRow, true));
    assert!(
        report.findings[0].text.contains("for planted.item (id = 7). They run: update item"),
        "{report:?}"
    );
    assert!(report.findings[0].next.starts_with("run hotrow migrate --upstream mysql://"), "{report:?}");
    assert_eq!(report.hot_rows[0].key["id"].as_deref(), Some("7"));
    let update = statement(&report, SHAPE);
    assert_eq!(
        (update.verdict, update.in_transaction, update.waiting > 0.5),
        (VerdictKind::Packed, 0.0, true)
    );
    let rates = report.throughput;
    assert!(rates.commits > Some(0.0) && rates.changes > Some(0.0), "{rates:?}");
    assert!(rates.row_waits > Some(0.0) && rates.flushes > Some(0.0), "{rates:?}");
    assert!(rates.commits_per_group >= Some(1.0), "{rates:?}");
    let hidden = Report::new(&diagnose(&recording, false));
    for form in [text(&hidden), serde_json::to_string(&hidden).unwrap()] {
        assert!(form.contains("planted.item (id = ?)") && !form.contains("id = 7"), "{form}");
    }
}

#[test]
fn a_quiet_server_has_no_hot_row() {
    let planted =
        Planted::new(ITEMS, &RIGHTS).loads(1, |_| "update item set stock = 1 where id = 8".to_owned());
    planted.until("the client works", "select stock from item where id = 8");
    let report = planted.examine();
    assert_eq!(report.findings[0].kind, Situation::NothingWrong);
    assert!(report.summary[1].starts_with("There is no hot row"), "{:?}", report.summary);
    assert!(report.hot_rows.is_empty() && !report.helps, "{report:?}");
}

#[test]
#[ignore = "long: make test-all"]
fn the_rights_that_are_missing_are_told_as_grants() {
    let mut planted = Planted::new(ITEMS, &[]).loads(CLIENTS, |_| UPDATE.to_owned());
    planted.until_one_waits();
    let blind = planted.examine();
    assert_eq!(blind.findings[0].kind, Situation::Blind);
    assert!(blind.throughput.row_waits > Some(0.0), "the counters are visible: {blind:?}");
    planted.as_root(&blind.findings[0].next);
    for (verdict, right) in [(VerdictKind::Unknown, "select"), (VerdictKind::Packed, "trigger")] {
        let report = planted.examine();
        assert_eq!(report.findings[0].kind, Situation::HotRow);
        let update = statement(&report, SHAPE);
        assert_eq!(update.verdict, verdict, "{update:?}");
        let grant = update.remedy.as_deref().unwrap_or_default();
        assert!(grant.starts_with(&format!("grant {right} on `planted`.`item` to ")), "{update:?}");
        planted.as_root(grant);
    }
    let update = statement(&planted.examine(), SHAPE).clone();
    assert_eq!((update.verdict, update.remedy), (VerdictKind::Packed, None));
}

#[test]
fn with_the_routines_the_next_command_starts_the_gateway() {
    let mut planted = Planted::new(ITEMS, &RIGHTS).loads(CLIENTS, |_| UPDATE.to_owned());
    planted.runtime.block_on(async { root("mysql").await.script(INSTALL).await.unwrap() });
    planted.as_root("grant execute on hotrow.* to monitor@127.0.0.1");
    planted.until_one_waits();
    let report = planted.examine();
    planted.as_root("drop database hotrow");
    let next = &report.findings[0].next;
    assert!(next.starts_with("send these statements through the gateway: hotrow serve --upstream"), "{next}");
    assert!(report.server.has_routines && report.helps, "{report:?}");
    assert_eq!(statement(&report, SHAPE).verdict, VerdictKind::Packed);
}

#[test]
#[ignore = "long: make test-all"]
fn a_hot_row_by_a_unique_text_of_a_table_with_a_trigger_is_not_for_the_gateway() {
    let tables = format!(
        "{ITEMS};\ncreate table log (n int);\ncreate trigger noted after update on item for each row insert into log values (1)"
    );
    let text = "update item set stock = stock + 1 where name = 'item 7'";
    let planted = Planted::new(&tables, &RIGHTS).loads(CLIENTS, |_| text.to_owned());
    planted.until_one_waits();
    let report = planted.examine();
    assert_eq!((report.findings[0].kind, report.helps), (Situation::HotRow, false));
    let row = &report.hot_rows[0];
    assert_eq!((row.index.as_str(), row.key["name"].as_deref()), ("name", Some("'item 7'")));
    let update = statement(&report, "update item set stock = stock + ? where name = ?");
    assert_eq!(update.verdict, VerdictKind::PassedThrough);
    assert!(update.reason.contains("trigger"), "{update:?}");
}

#[test]
#[ignore = "long: make test-all"]
fn transactions_that_wait_for_their_clients_are_named_as_the_reason() {
    let planted = Planted::new(ITEMS, &RIGHTS).clients(16, async |_, mut client| {
        loop {
            for text in ["begin", UPDATE] {
                if client.execute(text).await.is_err() {
                    return;
                }
            }
            pause(Duration::from_millis(5)).await;
            if client.execute("commit").await.is_err() {
                return;
            }
        }
    });
    planted.until_one_waits();
    let report = planted.examine();
    assert_eq!((report.findings[0].kind, report.helps), (Situation::HotRowInTransactions, false));
    assert_eq!(report.hot_rows[0].name, "planted.item (id = 7)");
}

#[test]
#[ignore = "long: make test-all"]
fn a_stuck_session_is_named_and_its_end_frees_the_others() {
    let mut planted = Planted::new(ITEMS, &RIGHTS);
    let mut holder = planted.runtime.block_on(root("planted"));
    let thread = planted.runtime.block_on(async {
        holder.execute("begin").await.unwrap();
        holder.execute(UPDATE).await.unwrap();
        value(&mut holder, "select connection_id()").await
    });
    planted = planted.loads(4, |_| UPDATE.to_owned());
    planted.until_one_waits();
    let idle = format!("select time_ms > 2500 from information_schema.processlist where id = {thread}");
    planted.until("the transaction is old enough", &idle);
    let report = planted.examine();
    assert_eq!(report.findings[0].kind, Situation::StuckSession);
    let kill = report.findings[0].next.strip_prefix("end it: ").unwrap();
    assert_eq!(kill, format!("kill {thread}"));
    planted.as_root(kill);
    planted.until("the others go on", "select stock < 0 from item where id = 7");
    drop(holder);
}

#[test]
#[ignore = "long: make test-all"]
fn checks_of_a_foreign_key_wait_for_the_parents_row() {
    let tables = format!(
        "{ITEMS};\ncreate table line (id bigint auto_increment primary key, item int not null, foreign key (item) references item (id))"
    );
    let planted = Planted::new(&tables, &RIGHTS)
        .clients(1, async |_, mut client| {
            loop {
                for text in ["begin", UPDATE] {
                    client.execute(text).await.unwrap();
                }
                pause(Duration::from_millis(20)).await;
                client.execute("commit").await.unwrap();
            }
        })
        .loads(CLIENTS, |_| "insert into line (item) values (7)".to_owned());
    planted.until_one_waits();
    let report = planted.examine();
    assert_eq!(report.findings[0].kind, Situation::ForeignKeyLocks);
    assert_eq!(report.hot_rows[0].name, "planted.item (id = 7)");
    let insert = statement(&report, "insert into line (item) values (?)");
    assert!(insert.reason.contains("AUTO_INCREMENT column id"), "{insert:?}");
}

#[test]
fn options_for_postgresql_are_refused_with_a_hint() {
    let mut html = args("mysql://monitor@127.0.0.1:1".to_owned());
    html.html = Some("report.html".into());
    let refused = hotrow_doctor::check(&html).unwrap_err();
    assert!(matches!(refused, Error::MariaDb(_)), "{refused}");
    assert!(
        refused.to_string().contains("--html is for PostgreSQL") && refused.to_string().contains("--json"),
        "{refused}"
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(hotrow_doctor::shadow("mysql://ann@127.0.0.1")).unwrap_err();
    assert!(refused.to_string().contains("without --shadow"), "{refused}");
}

#[test]
#[ignore = "long: make test-all"]
fn a_statement_is_explained() {
    let planted = Planted::new(ITEMS, &RIGHTS);
    assert_eq!(
        planted.explain(UPDATE),
        format!(
            "shape: {SHAPE}\npacked\n  table     planted.item\n  because   it gives all columns of a unique key"
        )
    );
    let without_key = planted.explain("update item set stock = 0 where stock < 3");
    let reason = "because   it does not give all columns of a unique key (";
    assert!(without_key.contains("\npassed through\n") && without_key.contains(reason), "{without_key}");
    let other = planted.explain("select 1");
    assert!(other.contains("only UPDATE, DELETE, INSERT and REPLACE by key are packed"), "{other}");
}
