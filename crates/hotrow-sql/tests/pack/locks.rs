//! Locks: calls that cannot succeed take none, calls that do not wait get `busy`, and calls that wait see the
//! newest state.

use crate::script::check_in;
use crate::server::Database;

#[test]
fn calls_that_cannot_succeed_take_no_lock_and_busy_calls_do_not_wait() {
    let database = Database::migrated();
    let (holder, caller) = (database.session("postgres"), database.session("postgres"));
    check_in(
        &holder,
        "create_sale('none', 0) -> created
        create_sale('some', 5) -> created
        create_sale('over', 5, null, null, '2020-01-01') -> created",
    );
    holder.run("begin; select from hotrow.sale for update");
    caller.run("set statement_timeout = '20 s'");
    check_in(
        &caller,
        "reserve('none', 'ann') -> sold_out - 0
        reserve('over', 'ann') -> ended - 5
        reserve('nix', 'ann') -> unknown_item - -
        reserve_batch('{none,nix,over,none}', '{a,b,c,d}') -> sold_out - 0 | unknown_item - - | ended - 5 | sold_out - 0
        reserve('some', 'ann', 1, null, true) -> busy - -
        reserve('some', 'ann', 1, gen_random_uuid(), true) -> busy - -
        reserve('nix', 'ann', 1, gen_random_uuid(), true) -> unknown_item - -
        reserve_batch('{some,none,some}', '{a,b,c}', null, null, '{t,f,t}') -> busy - - | sold_out - 0 | busy - -
        sale('some') -> some 5 0 0 - - - -
        confirm(gen_random_uuid()) -> unknown_reservation",
    );
    // None of the calls wrote or locked a row, and a busy call leaves its request ID free.
    assert_eq!(caller.value("select count(*) from hotrow.request where status = 'busy'"), "0");
    holder.run("commit");
    check_in(&caller, "reserve('some', 'ann', 1, null, true) -> reserved #1 4");
}

#[test]
fn a_call_that_waited_sees_the_changes_of_the_other_session() {
    let database = Database::migrated();
    let holder = database.session("postgres");
    let id = "'00000000-0000-0000-0000-000000000001'";
    check_in(&holder, "create_sale('x', 1) -> created\nincrement('a') -> 1 1 ok");
    for (command, answer) in [
        (format!("hotrow.increment('a', 5, {id})"), "6 2 ok"),
        ("hotrow.increment('new', 5)".to_owned(), "10 2 ok"),
        ("hotrow.reserve('x', 'ann')".to_owned(), "sold_out - 0"),
    ] {
        holder.run(&format!("begin; select {command}"));
        let waiter = database.session("postgres");
        let pid = waiter.value("select pg_backend_pid()");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| waiter.ask(&format!("select * from {command}")).unwrap());
            holder.until(&format!(
                "exists (select from pg_stat_activity where pid = {pid} and wait_event_type = 'Lock')"
            ));
            holder.run("commit");
            assert_eq!(waits.join().unwrap(), [answer], "{command}");
        });
    }
}

#[test]
fn one_id_on_two_counters_at_once_is_refused() {
    let database = Database::migrated();
    let (first, second) = (database.session("postgres"), database.session("postgres"));
    let call =
        |counter| format!("select hotrow.increment('{counter}', 1, '00000000-0000-0000-0000-000000000001')");
    first.run(&format!("begin; {}", call("a")));
    let pid = second.value("select pg_backend_pid()");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| second.ask(&call("b")));
        first.until(&format!(
            "exists (select from pg_stat_activity where pid = {pid} and wait_event_type = 'Lock')"
        ));
        first.run("commit");
        assert_eq!(waits.join().unwrap(), Err("22023".to_owned()));
    });
    check_in(&first, "counter('a') -> 1 1\ncounter('b') -> 0 0");
}

#[test]
#[ignore = "long: make test-all"]
fn a_hold_that_is_being_confirmed_is_not_released() {
    let database = Database::migrated();
    let (confirming, buying) = (database.session("postgres"), database.session("postgres"));
    check_in(&buying, "create_sale('x', 1, null, null, null, '5 s') -> created");
    let id = buying.value("select reservation_id from hotrow.reserve('x', 'ann')");
    confirming.run("begin");
    check_in(&confirming, &format!("confirm('{id}') -> confirmed"));
    buying.until("every(expires_at < clock_timestamp()) from hotrow.reservation");
    // It is not known yet whether the hold was confirmed in time.
    check_in(&buying, "reserve('x', 'bob') -> busy - 0");
    confirming.run("commit");
    check_in(&buying, "reserve('x', 'bob') -> sold_out - 0\nsale('x') -> x 0 0 1 - - - 00:00:05");
}

#[test]
fn an_expired_hold_that_another_session_has_locked_is_not_taken_for_a_sale() {
    let database = Database::migrated();
    let (late, buying) = (database.session("postgres"), database.session("postgres"));
    check_in(&buying, "create_sale('x', 1, null, null, null, '0.1 s') -> created");
    let id = buying.value("select reservation_id from hotrow.reserve('x', 'ann')");
    buying.until("every(expires_at < clock_timestamp()) from hotrow.reservation");
    late.run("begin");
    check_in(&late, &format!("confirm('{id}') -> expired"));
    let request = "'00000000-0000-0000-0000-000000000007'";
    check_in(&buying, &format!("reserve('x', 'bob', 1, {request}) -> busy - 0"));
    late.run("commit");
    check_in(&buying, &format!("reserve('x', 'bob', 1, {request}) -> reserved #1 0"));
}

/// An application that repeats transactions that fail with 40001, as PostgreSQL requires at these levels, must get no other error,
/// and no answer from an old state.
#[test]
fn a_call_in_a_transaction_with_an_older_snapshot_fails_with_40001() {
    let database = Database::migrated();
    let (other, caller) = (database.session("postgres"), database.session("postgres"));
    check_in(&other, "create_sale('x', 100) -> created");
    for queue in ["'q'", "'g', strict_groups => true"] {
        other.run(&format!("select hotrow.create_queue({queue})"));
    }
    other.run("select hotrow.follow(1, 10)");
    let enqueue = |queue| format!("enqueue('{queue}', gen_random_uuid(), '{{}}', 'k')");
    for call in [
        "increment('a')",
        "reserve('x', gen_random_uuid()::text)",
        &enqueue("q"),
        &enqueue("g"),
        "take('q')",
        "take('q', 1, null)",
        "take('g')",
        "push(1, 5, 'message')",
        "consume(1)",
        "post(10, 'post')",
        "follow((random() * 100000000)::bigint, 10)",
    ] {
        for level in ["repeatable read", "serializable"] {
            for queue in ["q", "q", "g", "g"] {
                other.run(&format!("select hotrow.{}", enqueue(queue)));
            }
            other.run("select hotrow.push(1, 5, 'message')");
            caller.run(&format!("begin isolation level {level}; select from hotrow.queue"));
            other.run(&format!("select hotrow.{call}"));
            assert_eq!(
                caller.ask(&format!("select hotrow.{call}")),
                Err("40001".to_owned()),
                "{call}, {level}"
            );
            caller.run("rollback");
        }
    }
}
