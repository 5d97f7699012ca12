//! Writes that transactions hold back: many transactions share a commit, the client is told the truth or the transaction fails,
//! and everything else is as on a direct connection.

use std::thread;

use hotrow_testkit::line::{Answer, Line, until};
use hotrow_testkit::{Gateway, PATIENT_LANES, server};

use crate::connect;

fn prepare(schema: &str) -> Line {
    let mut direct = connect(server().port(), schema);
    let made = direct.query(&format!(
        "create schema {schema};
         create table item (id int primary key, stock int not null check (stock >= 0), note text);
         create table sale (id int primary key, item int);
         insert into item select n, 1000000 from generate_series(1, 20) n"
    ));
    assert_eq!(made.error(), None);
    direct
}

fn gateway() -> Gateway {
    Gateway::start(&[&["--pack", "deferred"][..], &PATIENT_LANES].concat())
}

const SELL: &str = "update item set stock = stock - 1 where id = 1";

fn told(answer: &Answer, command: &str) {
    assert_eq!((answer.error(), answer.command().as_deref()), (None, Some(command)), "{:?}", answer.frames());
}

/// Runs statements, each of which is answered with its command.
fn all_told(line: &mut Line, statements: &[(&str, &str)]) {
    statements.iter().for_each(|(sql, command)| told(&line.query(sql), command));
}

fn failed(answer: &Answer, code: &str, status: u8) {
    assert_eq!(answer.error().map(|error| error.code).as_deref(), Some(code), "{:?}", answer.frames());
    assert_eq!(answer.bytes.last(), Some(&status), "{:?}", answer.frames());
}

/// Runs the statement in a transaction until the gateway foretells its outcome for this row.
fn learn(gateway: &Gateway, line: &mut Line, sql: &str) {
    let before = gateway.metric("writes_deferred_total");
    until("a write is held back", || {
        told(&line.query("begin"), "BEGIN");
        let _ = line.query(sql);
        told(&line.query("commit"), "COMMIT");
        gateway.metric("writes_deferred_total") > before
    });
}

fn stock(line: &mut Line, item: u32) -> i64 {
    let found = line.query(&format!("select stock from item where id = {item}"));
    found.rows()[0][0].as_ref().unwrap().parse().unwrap()
}

#[test]
fn transactions_whose_statements_come_one_by_one_run_in_lanes() {
    const CLIENTS: usize = 16;
    const SALES: usize = 100;
    let mut direct = prepare("deferred_shared");
    let gateway = gateway();
    let port = gateway.port();
    learn(&gateway, &mut connect(port, "deferred_shared"), SELL);
    let before = stock(&mut direct, 1);
    let packed = gateway.metric("packed_units_total");
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || {
                let mut line = connect(port, "deferred_shared");
                for _ in 0..SALES {
                    told(&line.query("begin"), "BEGIN");
                    match number % 2 {
                        0 => told(&line.query(SELL), "UPDATE 1"),
                        _ => {
                            line.put_unnamed_call(
                                "update item set stock = stock - $1 where id = $2",
                                &[Some("1"), Some("1")],
                            );
                            line.put_sync();
                            line.send().unwrap();
                            told(&line.answer(), "UPDATE 1");
                        }
                    }
                    told(&line.query("commit"), "COMMIT");
                }
            });
        }
    });
    assert_eq!(before - stock(&mut direct, 1), (CLIENTS * SALES) as i64);
    let packed = gateway.metric("packed_units_total") - packed;
    assert!(packed > (CLIENTS * SALES / 2) as u64, "lanes have run {packed} transactions");
    assert_eq!(gateway.metric("foretold_wrong_total"), 0);
}

#[test]
fn a_client_that_was_told_another_count_gets_an_error_for_its_commit() {
    let mut direct = prepare("deferred_wrong");
    let gateway = gateway();
    let mut line = connect(gateway.port(), "deferred_wrong");
    learn(&gateway, &mut line, SELL);
    all_told(&mut line, &[("begin", "BEGIN"), (SELL, "UPDATE 1")]);
    told(&direct.query("delete from item where id = 1"), "DELETE 1");
    failed(&line.query("commit"), "40001", b'I');
    assert_eq!(gateway.metric("foretold_wrong_total"), 1);
    // It is run again as it comes.
    told(&line.query("begin"), "BEGIN");
    told(&line.query(SELL), "UPDATE 0");
    told(&line.query("commit"), "COMMIT");

    // Nothing of such a transaction is committed, wherever it has run.
    direct.query("insert into item values (1, 1000000)");
    let other = "update item set stock = stock - 1 where id = 2";
    learn(&gateway, &mut line, other);
    told(&line.query("begin"), "BEGIN");
    told(&line.query("insert into sale values (1, 2)"), "INSERT 0 1");
    told(&line.query(other), "UPDATE 1");
    told(&direct.query("delete from item where id = 2"), "DELETE 1");
    failed(&line.query("select 1"), "40001", b'E');
    failed(&line.query("select 1"), "25P02", b'E');
    told(&line.query("commit"), "ROLLBACK");
    let sales = direct.query("select count(*) from sale").rows();
    assert_eq!(sales[0][0].as_deref(), Some("0"));
    told(&line.query("select 1"), "SELECT 1");
}

#[test]
fn a_constraint_fails_the_commit_with_its_own_error() {
    let mut direct = prepare("deferred_check");
    let gateway = gateway();
    let mut line = connect(gateway.port(), "deferred_check");
    learn(&gateway, &mut line, SELL);
    direct.query("update item set stock = 0 where id = 1");
    all_told(&mut line, &[("begin", "BEGIN"), (SELL, "UPDATE 1")]);
    failed(&line.query("commit"), "23514", b'I');
    assert_eq!(stock(&mut line, 1), 0);
    assert_eq!(gateway.metric("foretold_wrong_total"), 0);
}

#[test]
fn the_transaction_sees_its_own_writes_and_takes_them_back() {
    let mut direct = prepare("deferred_own");
    let gateway = gateway();
    let mut line = connect(gateway.port(), "deferred_own");
    learn(&gateway, &mut line, SELL);
    let mut expected = stock(&mut direct, 1);
    all_told(&mut line, &[("begin", "BEGIN"), (SELL, "UPDATE 1"), (SELL, "UPDATE 1")]);
    assert_eq!(stock(&mut line, 1), expected - 2);
    told(&line.query("rollback"), "ROLLBACK");
    assert_eq!(stock(&mut direct, 1), expected);
    for (statements, sold) in [
        (
            &[
                (SELL, "UPDATE 1"),
                ("savepoint a", "SAVEPOINT"),
                (SELL, "UPDATE 1"),
                ("rollback to a", "ROLLBACK"),
            ][..],
            1,
        ),
        (
            &[
                ("savepoint a", "SAVEPOINT"),
                (SELL, "UPDATE 1"),
                ("rollback to a", "ROLLBACK"),
                (SELL, "UPDATE 1"),
            ],
            1,
        ),
        (
            &[(SELL, "UPDATE 1"), ("savepoint a", "SAVEPOINT"), (SELL, "UPDATE 1"), ("release a", "RELEASE")],
            2,
        ),
        (
            &[
                (SELL, "UPDATE 1"),
                ("commit and chain", "COMMIT"),
                (SELL, "UPDATE 1"),
                ("rollback", "ROLLBACK"),
            ],
            1,
        ),
        (&[(SELL, "UPDATE 1"), ("rollback and chain", "ROLLBACK"), (SELL, "UPDATE 1")], 1),
        (&[(SELL, "UPDATE 1"), ("commit; begin", "BEGIN"), (SELL, "UPDATE 1")], 2),
        (&[(SELL, "UPDATE 1"), ("select 1", "SELECT 1"), (SELL, "UPDATE 1"), (SELL, "UPDATE 1")], 3),
    ] {
        expected -= sold;
        told(&line.query("begin"), "BEGIN");
        all_told(&mut line, statements);
        let _ = line.query("commit");
        assert_eq!(stock(&mut line, 1), expected, "{statements:?}");
    }
    assert_eq!(stock(&mut direct, 1), expected);
}

/// A unit that only prepares neither runs the writes nor loses them, also if what it prepares is ROLLBACK.
#[test]
fn a_unit_that_only_prepares_leaves_the_writes() {
    let mut direct = prepare("deferred_prepares");
    let gateway = gateway();
    let mut line = connect(gateway.port(), "deferred_prepares");
    learn(&gateway, &mut line, SELL);
    let expected = stock(&mut direct, 1);
    told(&direct.query("begin"), "BEGIN");
    told(&direct.query(SELL), "UPDATE 1");
    for (number, first) in [None, Some("insert into sale values (7, 7)")].into_iter().enumerate() {
        told(&line.query("begin"), "BEGIN");
        if let Some(first) = first {
            told(&line.query(first), "INSERT 0 1");
        }
        told(&line.query(SELL), "UPDATE 1");
        // The row is locked, so a message that waits for the write would not be answered.
        for (name, sql) in [("a", "rollback"), ("b", "insert into sale values ($1, $2)")] {
            line.put_prepare(&format!("{name}{number}"), sql);
            line.send().unwrap();
            assert_eq!(line.answer().error(), None);
        }
        if number == 0 {
            told(&direct.query("commit"), "COMMIT");
        }
        told(&line.query("commit"), "COMMIT");
    }
    assert_eq!(stock(&mut direct, 1), expected - 3);
}

#[test]
fn a_client_that_leaves_before_its_commit_has_changed_nothing() {
    let mut direct = prepare("deferred_leaves");
    let gateway = gateway();
    let mut line = connect(gateway.port(), "deferred_leaves");
    learn(&gateway, &mut line, SELL);
    let expected = stock(&mut direct, 1);
    all_told(&mut line, &[("begin", "BEGIN"), (SELL, "UPDATE 1")]);
    drop(line);
    until("the client is gone", || gateway.metric("clients") == 0);
    assert_eq!(stock(&mut direct, 1), expected);
}

/// An outsider has the row: the transaction waits for it with its COMMIT, and others do not.
#[test]
fn a_transaction_waits_for_the_lock_of_an_outsider_with_its_commit() {
    let mut direct = prepare("deferred_waits");
    let gateway = gateway();
    let (mut line, mut other) =
        (connect(gateway.port(), "deferred_waits"), connect(gateway.port(), "deferred_waits"));
    let second = "update item set stock = stock - 1 where id = 2";
    learn(&gateway, &mut line, SELL);
    learn(&gateway, &mut other, second);
    let expected = stock(&mut direct, 1);
    told(&direct.query("begin"), "BEGIN");
    told(&direct.query("update item set note = 'held' where id = 1"), "UPDATE 1");
    all_told(&mut line, &[("begin", "BEGIN"), (SELL, "UPDATE 1")]);
    line.put_query("commit");
    line.send().unwrap();
    for sql in ["begin", second, "commit"] {
        assert_eq!(other.query(sql).error(), None);
    }
    told(&direct.query("delete from item where id = 1"), "DELETE 1");
    told(&direct.query("commit"), "COMMIT");
    failed(&line.answer(), "40001", b'I');
    told(&direct.query(&format!("insert into item values (1, {expected})")), "INSERT 0 1");
}

#[test]
fn nothing_is_held_back_without_the_setting_or_in_a_session_that_declines() {
    prepare("deferred_off");
    let packs = Gateway::start(&[]);
    let defers = gateway();
    for (gateway, first) in [(&packs, "select 1"), (&defers, "set hotrow.pack = on")] {
        let mut line = connect(gateway.port(), "deferred_off");
        line.query(first);
        for _ in 0..20 {
            all_told(&mut line, &[("begin", "BEGIN"), (SELL, "UPDATE 1"), ("commit", "COMMIT")]);
        }
        assert_eq!(gateway.metric("writes_deferred_total"), 0);
    }
}

/// The gateway looks for the whole unit before it decides. A message that is too long for a lane runs at the server, after the
/// writes.
#[test]
fn a_message_that_is_too_long_for_a_lane_sees_the_writes() {
    let mut direct = prepare("deferred_long");
    let gateway = gateway();
    let mut line = connect(gateway.port(), "deferred_long");
    learn(&gateway, &mut line, SELL);
    let expected = stock(&mut direct, 1);
    let long = "x".repeat(300_000);
    all_told(&mut line, &[("begin", "BEGIN"), (SELL, "UPDATE 1")]);
    told(&line.query(&format!("update item set note = '{long}' where id = 1")), "UPDATE 1");
    told(&line.query(SELL), "UPDATE 1");
    line.put_unnamed_call(
        "update item set note = $1 where id = $2 and stock = $3",
        &[Some(long.as_str()), Some("1"), Some(&(expected - 2).to_string())],
    );
    line.put_sync();
    line.send().unwrap();
    told(&line.answer(), "UPDATE 1");
    told(&line.query("commit"), "COMMIT");
    assert_eq!(stock(&mut direct, 1), expected - 2);
}

/// What a session has done on its connection decides what may be held back there.
#[test]
fn nothing_is_held_back_where_the_state_of_the_connection_is_not_known() {
    let mut direct = prepare("deferred_state");
    direct.query("create table numbered (id serial primary key, item int)");
    let gateway = gateway();
    let mut line = connect(gateway.port(), "deferred_state");
    let note = "update item set note = 'sold' where id = 1";
    learn(&gateway, &mut line, SELL);
    learn(&gateway, &mut line, note);
    let expected = stock(&mut direct, 1);
    all_told(
        &mut line,
        &[
            ("begin", "BEGIN"),
            ("listen deferred_state", "LISTEN"),
            (SELL, "UPDATE 1"),
            (note, "UPDATE 1"),
            ("commit", "COMMIT"),
            ("unlisten *", "UNLISTEN"),
        ],
    );
    assert_eq!(stock(&mut direct, 1), expected - 1);
    for (begin, first) in [
        ("begin", "set transaction read only"),
        ("begin", "select set_config('transaction_read_only', 'on', true)"),
        ("begin read only", "select 1"),
        ("start transaction read only", "select count(*) from item"),
    ] {
        assert_eq!(line.query(begin).error(), None);
        assert_eq!(line.query(first).error(), None);
        failed(&line.query(SELL), "25006", b'E');
        told(&line.query("rollback"), "ROLLBACK");
    }
    // A query changes nothing about it, once the catalog has shown that it leaves nothing.
    let before = gateway.metric("writes_deferred_total");
    until("a write behind a query is held back", || {
        let count = ("select count(*) from item", "SELECT 1");
        all_told(&mut line, &[("begin", "BEGIN"), count, (note, "UPDATE 1"), ("commit", "COMMIT")]);
        gateway.metric("writes_deferred_total") > before
    });
    // The session can read the value of a sequence, which no rollback takes back.
    for number in 1..20 {
        told(&line.query("begin"), "BEGIN");
        told(&line.query("insert into numbered (item) values (1)"), "INSERT 0 1");
        told(&line.query("rollback"), "ROLLBACK");
        told(&line.query("begin"), "BEGIN");
        told(&line.query("insert into numbered (item) values (1)"), "INSERT 0 1");
        let value = line.query("select currval('numbered_id_seq')").rows();
        assert_eq!(value[0][0], Some((2 * number).to_string()));
        told(&line.query("commit"), "COMMIT");
    }
}

/// What a client does in a transaction. Each write has one outcome, whatever happened before.
const STEPS: &[&str] = &[
    "update item set stock = stock - 1 where id = 1",
    "update item set stock = stock - 1 where id = 1",
    "update item set stock = stock - 1 where id = 2",
    "update item set note = coalesce(note, '') || 'x' where id = 1",
    "update item set note = coalesce(note, '') || 'y' where id = 2 and stock > 10",
    "insert into log values (1, clock_timestamp() is null)",
    "select stock, note from item where id = 1",
    "select count(*) from log",
    "savepoint a",
    "savepoint b",
    "rollback to a",
    "release a",
    "update item set stock = -1 where id = 3",
    "set local work_mem = '5MB'",
    "listen deferred_random",
    "notify deferred_random",
    "declare c cursor for select stock from item where id < 3 order by id",
    "fetch 1 from c",
    "prepare p as select stock from item where id = 1",
    "execute p",
    "deallocate p",
    "deallocate all",
    "select pg_listening_channels()",
    "lock table item in share mode",
    "update item set stock = stock - 1 where id < 3",
    "delete from log where id = 1",
    "create temporary table log (id int, b bool) on commit drop",
    "select 1; update item set stock = stock - 1 where id = 1",
    "",
    "selec",
];

/// Runs a statement that is drawn at random, in one of the forms that drivers use.
fn run_random(random: &mut fastrand::Rng, line: &mut Line, answers: &mut Vec<(&str, Answer)>) {
    let common = if random.bool() { 8 } else { STEPS.len() };
    let sql = STEPS[random.usize(..common)];
    let answered = match random.u8(..10) {
        0..4 => {
            line.put_query(sql);
            1
        }
        4..6 => {
            line.put_unnamed_call(sql, &[]);
            line.put_sync();
            1
        }
        6..8 => {
            line.put_prepare("s", sql);
            line.put_call("s", &[]);
            line.put_sync();
            line.put_query("deallocate s");
            3
        }
        8 => {
            line.put_prepare("", sql);
            1
        }
        _ => {
            line.put_sync();
            1
        }
    };
    line.send().unwrap();
    (0..answered).for_each(|_| answers.push((sql, line.answer())));
}

/// Random transactions of one client get the answers of a direct connection, and leave the same rows.
#[test]
#[ignore = "long: make test-all"]
fn random_transactions_are_answered_as_directly() {
    let setup = |schema: &str| {
        let mut direct = prepare(schema);
        let made = direct.query("create table log (id int, b bool)");
        assert_eq!(made.error(), None);
        direct
    };
    let mut sides = [setup("deferred_here"), setup("deferred_there")];
    let gateway = gateway();
    let first = hotrow_testkit::first_seed();
    for seed in first..first + 60 {
        let mut answers: [Vec<(&str, Answer)>; 2] = Default::default();
        for (side, port) in [server().port(), gateway.port()].into_iter().enumerate() {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut line = connect(port, ["deferred_here", "deferred_there"][side]);
            for _ in 0..8 {
                answers[side].push(("begin", line.query("begin")));
                (0..random.usize(..6)).for_each(|_| run_random(&mut random, &mut line, &mut answers[side]));
                let end = ["commit", "commit", "commit", "rollback"][random.usize(..4)];
                answers[side].push((end, line.query(end)));
            }
        }
        for ((sql, directly), (_, through)) in answers[0].iter().zip(&answers[1]) {
            // A description of rows has the table's OID, a notification the process ID, and an error the schema's name.
            let [through, directly] = [through, directly].map(|answer| {
                let frames = answer.frames().into_iter();
                let frames: Vec<_> = frames.filter(|(tag, _)| !matches!(tag, 'T' | 'A' | 'E')).collect();
                (frames, answer.error().map(|error| error.code))
            });
            assert_eq!(through, directly, "seed {seed}: {sql}");
        }
        assert_eq!(answers[0].len(), answers[1].len(), "seed {seed}");
        let rows = sides.each_mut().map(|side| {
            let item = side.query("select * from item order by id").rows();
            (item, side.query("select count(*) from log").rows())
        });
        assert_eq!(rows[1], rows[0], "seed {seed}");
    }
    let (deferred, wrong) = (gateway.metric("writes_deferred_total"), gateway.metric("foretold_wrong_total"));
    assert!(deferred > 100 && wrong == 0, "{deferred} writes were held back, {wrong} wrongly");
}

/// The server refuses the counted form of the write for the table's new definition. The write itself is run the next time.
#[test]
fn a_rule_that_comes_between_fails_one_transaction() {
    let mut direct = prepare("deferred_rule");
    let gateway = gateway();
    let mut line = connect(gateway.port(), "deferred_rule");
    learn(&gateway, &mut line, SELL);
    let expected = stock(&mut direct, 1);
    all_told(&mut line, &[("begin", "BEGIN"), (SELL, "UPDATE 1")]);
    let rule = "create rule also as on update to item do also insert into sale values (new.stock, 1)";
    told(&direct.query(rule), "CREATE RULE");
    failed(&line.query("commit"), "40001", b'I');
    all_told(&mut line, &[("begin", "BEGIN"), (SELL, "UPDATE 1")]);
    told(&line.query("commit"), "COMMIT");
    assert_eq!(stock(&mut direct, 1), expected - 1);
}

#[test]
fn a_client_whose_backend_is_terminated_while_its_writes_run_learns_the_reason() {
    let mut direct = prepare("deferred_killed");
    let mut outsider = connect(server().port(), "deferred_killed");
    let holder = outsider.query("select pg_backend_pid()").rows()[0][0].clone().unwrap();
    let gateway = gateway();
    let mut line = connect(gateway.port(), "deferred_killed");
    learn(&gateway, &mut line, SELL);
    told(&outsider.query("begin"), "BEGIN");
    told(&outsider.query(SELL), "UPDATE 1");
    told(&line.query("begin"), "BEGIN");
    told(&line.query("select stock from item where id = 2"), "SELECT 1");
    told(&line.query(SELL), "UPDATE 1");
    line.put_query("commit");
    line.send().unwrap();
    until("its write waits and is terminated", || {
        let ended = direct.query(&format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where {holder} = any (pg_blocking_pids(pid)) \
             and query like '%hotrow_write%'"
        ));
        !ended.rows().is_empty()
    });
    let answer = line.answer();
    let error = answer.error().map(|error| (error.severity, error.code));
    assert_eq!(error, Some(("FATAL".to_owned(), "57P01".to_owned())));
    told(&outsider.query("rollback"), "ROLLBACK");
}
