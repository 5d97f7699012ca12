//! Tests of the diagnosis on recordings that are written here.

use std::collections::BTreeSet;

use hotrow_mysql_client::INSTALL;
use hotrow_mysql_core::questions::{Questions, facts, literal};

use crate::diagnosis::findings::Situation;
use crate::mariadb::diagnosis::{diagnose, missing_routines};
use crate::mariadb::recording::{
    Abilities, Facts, Lock, Recording, Sample, Session, Statement, TableName, Transaction,
};
use crate::mariadb::report::Report;
use crate::mariadb::text::text;
use crate::mariadb::texts::without_values;

const UPDATE: &str = "update item set stock = stock - 1 where id = 7";

fn item() -> TableName {
    TableName { database: "shop".to_owned(), table: "item".to_owned() }
}

/// A session that waits for a row of `shop.item`, or holds it.
#[derive(Clone, Copy)]
struct One {
    thread: u64,
    row: u64,
    waits: bool,
    /// Whether its connection runs a statement.
    runs: bool,
}

fn waits(thread: u64, row: u64) -> One {
    One { thread, row, waits: true, runs: true }
}

fn holds(thread: u64, row: u64, runs: bool) -> One {
    One { thread, row, waits: false, runs }
}

fn sample(ones: &[One], mode: &str) -> Sample {
    let mut sample = Sample::default();
    for One { thread, row, waits, runs } in ones {
        let lock = format!("{thread}:5:5:{row}");
        sample.locks.push(Lock {
            id: lock.clone(),
            transaction: thread.to_string(),
            mode: mode.to_owned(),
            table: Some(item()),
            index: Some("PRIMARY".to_owned()),
            data: Some(row.to_string()),
        });
        sample.transactions.push(Transaction {
            id: thread.to_string(),
            thread: *thread,
            waits_for: waits.then_some(lock),
            is_running: *runs,
            age: 60,
            ..Transaction::default()
        });
        if *runs {
            let state = "Updating".to_owned();
            sample.sessions.push(Session { thread: *thread, state, statement: Some(0) });
        }
    }
    sample
}

/// A recording of these samples, in which all sessions run a statement.
fn recording(samples: Vec<Sample>, sql: &str) -> Recording {
    let row = |values: &[&str]| values.iter().map(|value| Some((*value).to_owned())).collect::<Vec<_>>();
    let columns = vec![row(&["id", "integer", "1"]), row(&["stock", "integer", "0"])];
    let table =
        facts("InnoDB:BASE TABLE:1:0:0:5".to_owned(), columns, &vec![row(&["PRIMARY", "id", "integer"])]);
    let statement = Statement {
        database: Some("shop".to_owned()),
        shape: without_values(sql),
        example: sql.to_owned(),
        is_cut: false,
    };
    Recording {
        address: "127.0.0.1:3306".to_owned(),
        abilities: Abilities {
            account: "'monitor'@'%'".to_owned(),
            sees_sessions: true,
            has_binary_log: true,
            binlog_format: "ROW".to_owned(),
            ..Abilities::default()
        },
        samples,
        seconds: 10.0,
        statements: vec![statement],
        tables: [(item(), Facts { table: Some(table), shows_triggers: true })].into(),
        indexes: [((item(), "PRIMARY".to_owned()), vec!["id".to_owned()])].into(),
        ..Recording::default()
    }
}

/// A crowd at one row, whose holder is another one in each sample.
fn crowd(idle_holder: bool) -> Vec<Sample> {
    (1..=8)
        .map(|turn| sample(&[holds(turn, 7, !idle_holder), waits(turn + 1, 7), waits(turn + 2, 7)], "X"))
        .collect()
}

fn kind(recording: &Recording) -> Situation {
    diagnose(recording, true).explanation().kind
}

#[test]
fn a_hot_row_has_a_name_a_statement_and_a_next_command() {
    let mut recording = recording(crowd(false), UPDATE);
    let diagnosis = diagnose(&recording, true);
    let report = Report::new(&diagnosis);
    assert_eq!(report.findings[0].kind, Situation::HotRow);
    let line =
        "2 sessions wait for shop.item (id = 7). They run: update item set stock = stock - ? where id = ?";
    assert_eq!((report.summary[1].as_str(), report.helps), (line, true));
    assert!(
        report.summary[2].contains("67 % of their time") && report.summary[2].contains("No single session"),
        "{report:?}"
    );
    let next = &report.findings[0].next;
    assert!(
        next.starts_with("run hotrow migrate --upstream mysql://")
            && next.contains("@127.0.0.1:3306 --listen"),
        "{next}"
    );
    recording.abilities.routines = routines();
    let next = diagnose(&recording, true).findings[0].next.clone();
    assert!(
        next.starts_with("send these statements through the gateway: hotrow serve --upstream mysql://"),
        "{next}"
    );
}

#[test]
fn values_are_shown_only_if_they_may_be() {
    let recording = recording(crowd(false), UPDATE);
    let shown = Report::new(&diagnose(&recording, true));
    assert!(text(&shown).contains("shop.item (id = 7)"), "{}", text(&shown));
    let hidden = Report::new(&diagnose(&recording, false));
    let forms = [text(&hidden), serde_json::to_string(&hidden).unwrap()];
    for form in forms {
        assert!(form.contains("shop.item (id = ?)") && !form.contains("id = 7"), "{form}");
    }
}

#[test]
fn a_row_whose_statement_is_not_packed_does_not_get_the_gateway() {
    let update = "update item set stock = stock - 1 where stock = 7";
    let recording = recording(crowd(false), update);
    let diagnosis = diagnose(&recording, true);
    assert_eq!((diagnosis.explanation().kind, diagnosis.helps), (Situation::HotRow, false));
    let lines = Report::new(&diagnosis).summary;
    assert_eq!(
        lines[3],
        "0 % of the calls can be packed as they are; 0 % are in transactions of several statements."
    );
    assert!(lines[4].starts_with("The gateway would not help"), "{lines:?}");
}

#[test]
fn holders_that_wait_for_their_clients_are_named_as_the_reason() {
    let recording = recording(crowd(true), UPDATE);
    let diagnosis = diagnose(&recording, true);
    assert_eq!((diagnosis.explanation().kind, diagnosis.helps), (Situation::HotRowInTransactions, false));
    assert!(diagnosis.findings[0].next.starts_with("use autocommit"), "{:?}", diagnosis.findings);
}

#[test]
fn a_session_that_holds_the_row_all_the_time_is_stuck() {
    let samples = (0..8).map(|_| sample(&[holds(99, 7, false), waits(1, 7)], "X")).collect();
    let recording = recording(samples, UPDATE);
    let diagnosis = diagnose(&recording, true);
    let finding = diagnosis.explanation();
    assert_eq!((finding.kind, finding.next.as_str()), (Situation::StuckSession, "end it: kill 99"));
    assert!(finding.text.contains("idle in its transaction"), "{finding:?}");
}

#[test]
fn several_rows_are_counted() {
    let one = |turn: u64| {
        let row = turn % 2;
        sample(&[holds(turn, row, true), waits(turn + 1, row), waits(turn + 2, row)], "X")
    };
    assert_eq!(kind(&recording((1..=8).map(one).collect(), UPDATE)), Situation::HotRows);
    let one = |row: u64| sample(&[holds(row, row, true), waits(row + 1, row)], "X");
    let many = recording((1..=8).map(one).collect(), UPDATE);
    assert_eq!(kind(&many), Situation::RowLocks);
}

#[test]
fn checks_of_foreign_keys_wait_in_shared_mode_for_another_table() {
    let samples: Vec<Sample> =
        crowd(false).into_iter().map(|one| Sample { locks: shared(one.locks), ..one }).collect();
    let child = recording(samples.clone(), "insert into line (id, item) values (1, 7)");
    assert_eq!(kind(&child), Situation::ForeignKeyLocks);
    assert_eq!(kind(&recording(samples, UPDATE)), Situation::HotRow, "it is the statement's own table");
}

fn shared(locks: Vec<Lock>) -> Vec<Lock> {
    locks.into_iter().map(|lock| Lock { mode: "S".to_owned(), ..lock }).collect()
}

#[test]
fn a_quiet_server_has_no_hot_row() {
    let quiet = recording(vec![Sample::default(); 5], UPDATE);
    let diagnosis = diagnose(&quiet, true);
    assert_eq!((diagnosis.findings.len(), diagnosis.findings[0].kind), (1, Situation::NothingWrong));
    let lines = Report::new(&diagnosis).summary;
    assert_eq!(lines[0], "On average, no session is active.");
    let line = "There is no hot row: 0 sessions are active on average, and 0 of them wait for rows.";
    assert_eq!(lines[1], line);
}

#[test]
fn waits_for_commits_and_for_locks_of_tables_are_told_apart() {
    let session = |state: &str| Session { thread: 1, state: state.to_owned(), statement: Some(0) };
    let one = |state: &str| {
        let sample = Sample { sessions: vec![session(state)], ..Sample::default() };
        kind(&recording(vec![sample; 3], UPDATE))
    };
    assert_eq!(one("Commit"), Situation::Flush);
    assert_eq!(one("Waiting for table metadata lock"), Situation::TableLocks);
    assert_eq!(one("Sending data"), Situation::NothingWrong);
}

#[test]
fn an_account_without_process_gets_the_grant() {
    let mut blind = recording(vec![Sample::default(); 3], UPDATE);
    blind.abilities.sees_sessions = false;
    blind.before = [("innodb_row_lock_time".to_owned(), 0)].into();
    blind.after = [("innodb_row_lock_time".to_owned(), 50_000)].into();
    let findings = diagnose(&blind, true).findings;
    assert_eq!(findings[0].next, "grant process on *.* to 'monitor'@'%'");
    assert_eq!(findings[1].text, "The server's counters say that 5 sessions wait for rows on average.");
    blind.after.clear();
    assert_eq!(kind(&blind), Situation::NothingWrong);
}

#[test]
fn a_lost_connection_and_hidden_triggers_are_told() {
    let mut lost = recording(crowd(false), UPDATE);
    lost.lost = Some("the connection was closed".to_owned());
    lost.tables.values_mut().for_each(|facts| facts.shows_triggers = false);
    let findings = diagnose(&lost, true).findings;
    assert!(findings.iter().any(|one| one.text.contains("the connection was closed")), "{findings:?}");
    assert!(
        findings.iter().any(|one| one.next == "grant trigger on `shop`.`item` to 'monitor'@'%'"),
        "{findings:?}"
    );
}

fn routines() -> BTreeSet<String> {
    let names = [
        "clear",
        "restore",
        "tell",
        "rights_of",
        "session_rights",
        "open_lane",
        "mark",
        "marked",
        "definition",
    ];
    names.map(str::to_owned).into()
}

#[test]
fn the_routines_are_those_of_the_script() {
    assert_eq!(missing_routines(&routines()), 0);
    assert_eq!(missing_routines(&BTreeSet::new()), routines().len());
}

/// The doctor reads the definition without the routine of the same text.
#[test]
fn the_definition_of_a_table_is_the_one_of_the_routine() {
    let question = Questions::about("s", "t").definition;
    let (_, question) = question.split_once("select ").expect("a comment comes first");
    let question = question.replace(&literal("s"), "s").replace(&literal("t"), "t");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(INSTALL).contains(&words(&question)), "{question}");
}
