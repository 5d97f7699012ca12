//! The memory of a connection about a log counter, forged memory, snapshots, and the ring of parts.

use crate::script::check_in;
use crate::server::{Database, Session};

const MEMORY: &str = "'hotrow.memory_' || (hashtext('a') & 63)";
const SNAPSHOTS: &str = "select version, value from hotrow.snapshot where counter = 'a' order by version";

fn log_counter() -> (Database, Session) {
    let database = Database::migrated();
    let session = database.session("postgres");
    check_in(&session, "create_counter('a', 'log') -> created\nincrement('a', 5) -> 5 1 ok");
    (database, session)
}

#[test]
fn connections_fold_the_commands_of_other_connections() {
    let (database, first) = log_counter();
    let second = database.session("postgres");
    check_in(&second, "increment('a', 2) -> 7 2 ok\ndrain('a') -> 7 3 ok\nincrement('a', 4) -> 4 4 ok");
    check_in(&first, "increment('a', 1) -> 5 5 ok\ncounter('a') -> 5 5");
    check_in(&second, "counter('a') -> 5 5\nincrement('a', 1) -> 6 6 ok");
}

#[test]
fn forged_memory_is_not_trusted() {
    let (database, session) = log_counter();
    for planted in ["1 1000 0 x", "x y z w", "", "1 1000", "9 9 9 9 9"] {
        session.run(&format!("select set_config({MEMORY}, '{planted}', false)"));
        check_in(&session, "counter('a') -> 5 1");
    }
    // The signature is right, but the transaction was rolled back, and another session has used its version since.
    session.run("begin; select hotrow.increment('a', 100)");
    let signed = session.value(&format!("select current_setting({MEMORY})"));
    session.run("rollback");
    check_in(&database.session("postgres"), "increment('a', 1) -> 6 2 ok");
    session.run(&format!("select set_config({MEMORY}, '{signed}', false)"));
    check_in(&session, "counter('a') -> 6 2\nincrement('a', 1) -> 7 3 ok");
}

#[test]
fn a_rollback_also_undoes_the_memory() {
    let (_database, session) = log_counter();
    session.run("begin; select hotrow.increment('a', 100); rollback");
    check_in(&session, "increment('a', 1) -> 6 2 ok");
    session.run("begin; savepoint s; select hotrow.increment('a', 100); rollback to s; select hotrow.increment('a'); commit");
    check_in(&session, "counter('a') -> 7 3");
}

#[test]
fn a_batch_adds_one_row_per_counter_to_the_log() {
    let (database, session) = log_counter();
    check_in(&session, "create_counter('b', 'log', 0, 10) -> created");
    session.run(
        "select hotrow.increment_batch('{b,b,a,b}', '{4,20,1,5}', array['00000000-0000-4000-8000-000000000001',
            '00000000-0000-4000-8000-000000000002', null, '00000000-0000-4000-8000-000000000003']::uuid[])",
    );
    session.run("select hotrow.drain_batch('{a,a}')");
    let commands =
        "select counter, version, command, amount, right(request_id::text, 1) from hotrow.command_log
        order by counter, version";
    assert_eq!(
        session.ask(commands).unwrap(),
        [
            "a 1 increment 5 -",
            "a 2 increment 1 -",
            "a 3 drain - -",
            "a 4 drain - -",
            "b 1 increment 4 1",
            "b 2 increment 5 3"
        ]
    );
    assert_eq!(session.value("select count(*) from hotrow.log_entry"), "4");
    check_in(&database.session("postgres"), "counter('a') -> 0 4\ncounter('b') -> 9 2");
}

#[test]
fn snapshots_bound_the_commands_that_a_new_connection_folds() {
    let (database, session) = log_counter();
    session.run("update hotrow.setting set snapshot_every = 10");
    session.run("select hotrow.increment_batch(array_fill('a'::text, '{25}'))");
    session.run("select hotrow.increment_batch('{a,b,a,b}')");
    session.run("select hotrow.increment('a') from generate_series(1, 15)");
    // A batch that passes a multiple of ten adds one snapshot at its end.
    assert_eq!(session.ask(SNAPSHOTS).unwrap(), ["26 30", "30 34", "40 44"]);
    session.run("delete from hotrow.log_entry where version <= 40");
    check_in(&database.session("postgres"), "increment('a') -> 48 44 ok");
}

#[test]
fn rotation_keeps_the_snapshots_that_the_kept_commands_need() {
    let (database, session) = log_counter();
    session.run("update hotrow.setting set history_retention = '0', snapshot_every = 10");
    let increment_25 = "select hotrow.increment_batch('{a}') from generate_series(1, 25)";
    session.run(increment_25);
    for _ in 0..7 {
        session.run("select hotrow.rotate_history()");
    }
    session.run(increment_25);
    assert_eq!(session.ask(SNAPSHOTS).unwrap(), ["10 14", "20 24", "30 34", "40 44", "50 54"]);
    // The first part is emptied: the rest of the log begins with version 27.
    check_in(&session, "rotate_history() -> rotated 0");
    assert_eq!(session.value("select min(version) from hotrow.command_log"), "27");
    assert_eq!(session.ask(SNAPSHOTS).unwrap(), ["26 30", "30 34", "40 44", "50 54"]);
    check_in(&database.session("postgres"), "increment('a') -> 56 52 ok");
    for _ in 0..8 {
        session.run("select hotrow.rotate_history()");
    }
    assert_eq!(session.ask(SNAPSHOTS).unwrap(), ["52 56"]);
    check_in(&database.session("postgres"), "increment('a') -> 57 53 ok");
}

#[test]
fn the_log_still_folds_after_rotation() {
    let (database, session) = log_counter();
    check_in(&session, "rotate_history() -> young 0\nincrement('b', 3) -> 3 1 ok");
    session.run("update hotrow.setting set history_retention = '0'");
    for part in (1..8).chain(0..3) {
        assert_eq!(session.value("select hotrow.rotate_history()"), format!("(rotated,{part})"));
    }
    assert_eq!(session.value("select count(*) from hotrow.ledger"), "0");
    assert_eq!(session.value("select count(*) from hotrow.command_log"), "0");
    check_in(&session, "increment('a') -> 6 2 ok\nincrement('b') -> 4 2 ok");
    check_in(&database.session("postgres"), "counter('a') -> 6 2\nincrement('a') -> 7 3 ok");
}

#[test]
fn a_reader_of_the_oldest_part_postpones_rotation() {
    let (database, session) = log_counter();
    session.run("update hotrow.setting set history_retention = '0'");
    let reader = database.session("postgres");
    reader.run("begin; select from hotrow.ledger_1");
    check_in(&session, "rotate_history() -> busy 0\nincrement('b') -> 1 1 ok");
    reader.run("commit");
    check_in(&session, "rotate_history() -> rotated 1\nincrement('b') -> 2 2 ok");
    assert_eq!(session.value("select count(*) from hotrow.ledger_1"), "1");
}

#[test]
fn memory_of_a_rolled_back_transaction_is_not_trusted_after_the_clock_was_set_back() {
    let (_database, session) = log_counter();
    // The last command was recorded while the clock was ahead. Until the clock catches up, all commands have that time.
    session.run("update hotrow.counter set last_at = last_at + interval '1 hour'");
    session.run("update hotrow.log_entry set at = at + interval '1 hour'");
    for (undone, value) in [("rollback", 6), ("rollback to s", 7)] {
        session.run("begin; savepoint s; select hotrow.increment('a', 100)");
        let signed = session.value(&format!("select current_setting({MEMORY})"));
        session.run(undone);
        session.run("select hotrow.increment('a')");
        session.run(&format!("select set_config({MEMORY}, '{signed}', false)"));
        check_in(&session, &format!("counter('a') -> {value} {}", value - 4));
        session.run("commit");
    }
}
