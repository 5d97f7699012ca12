//! Calls of take that wait on a direct connection: they hold up no other call, and miss no order.

use std::thread::{Scope, ScopedJoinHandle};

use crate::queues::{enqueue, outcome, queue, take};
use crate::server::{Database, Session};

/// A call that waits, on a connection of its own.
struct Waiter<'a> {
    pid: String,
    call: ScopedJoinHandle<'a, (String, Vec<String>)>,
}

fn waits<'a>(scope: &'a Scope<'a, '_>, database: &'a Database, arguments: &'a str) -> Waiter<'a> {
    let session = database.session("postgres");
    let pid = session.value("select pg_backend_pid()");
    Waiter { pid, call: scope.spawn(move || take(&session, arguments)) }
}

/// Waits until the call sleeps, or until it waits for a lock.
fn until(session: &Session, waiter: &Waiter<'_>, event: &str) {
    session.until(&format!(
        "exists (select from pg_stat_activity where pid = {} and wait_event_type = '{event}')",
        waiter.pid
    ));
}

/// Fails if the call waits for a lock.
fn at_once(session: &Session, call: &str) -> String {
    session.run("set lock_timeout = '2 s'");
    outcome(session, call)
}

#[test]
#[ignore = "long: make test-all"]
fn a_call_that_waits_has_no_lock() {
    for options in ["", ", shards => 3"] {
        let (database, session) = queue(options);
        enqueue(&session, 1, "");
        let receipts = take(&session, "1, '1 hour'").1;
        std::thread::scope(|scope| {
            let waiter = waits(scope, &database, "1, '1 hour', '1 minute'");
            until(&session, &waiter, "Timeout");
            assert_eq!(at_once(&session, &format!("complete('q', {})", receipts[0])), "completed");
            enqueue(&session, 2, "");
            assert_eq!(waiter.call.join().unwrap().0, "2:1");
        });
    }
}

#[test]
fn a_call_that_another_was_faster_than_waits_again_without_a_lock() {
    let (database, session) = queue("");
    let other = database.session("postgres");
    std::thread::scope(|scope| {
        let waiter = waits(scope, &database, "1, '1 hour', '1 minute'");
        until(&session, &waiter, "Timeout");
        session.run("begin; select from hotrow.queue_lock where side = 'h' for update");
        enqueue(&other, 1, "");
        until(&other, &waiter, "Lock");
        let (orders, receipts) = take(&session, "1, '1 hour'");
        session.run("commit");
        assert_eq!(orders, "1:1");
        until(&session, &waiter, "Timeout");
        assert_eq!(at_once(&session, &format!("complete('q', {})", receipts[0])), "completed");
        enqueue(&session, 2, "");
        assert_eq!(waiter.call.join().unwrap().0, "2:1");
    });
}

/// Whether a call through a gateway, which waits at its head, will be woken by a notification.
fn waits_on(session: &Session) -> String {
    session.value("select waited from hotrow.queue_head order by seq desc limit 1")
}

#[test]
fn a_call_in_a_gateway_is_woken_for_an_order_that_is_due_earlier_than_it_knows() {
    let (_database, session) = queue(", retry => '2 seconds'");
    let wait = "select again_in from hotrow.take_batch('{q}', null, null, '{1 minute}')";
    enqueue(&session, 1, "");
    enqueue(&session, 2, "");
    let receipts = take(&session, "1, '1 hour'").1;
    let other = take(&session, "1, '1 hour'").1;
    assert_eq!(session.value(wait), "00:00:10");
    assert_eq!(waits_on(&session), "t");
    assert_eq!(outcome(&session, &format!("fail('q', {})", receipts[0])), "retrying");
    assert_eq!(waits_on(&session), "f");
    // It knows of that one, and is not woken for a later one.
    session.value(wait);
    assert_eq!(outcome(&session, &format!("fail('q', {}, null, '1 hour')", other[0])), "retrying");
    assert_eq!(waits_on(&session), "t");
}

#[test]
fn a_call_in_a_gateway_does_not_wait_for_an_open_transaction_that_enqueues() {
    for options in ["", ", shards => 3"] {
        let (database, session) = queue(options);
        let other = database.session("postgres");
        other.run("begin");
        enqueue(&other, 1, "");
        session.run("set lock_timeout = '2 s'");
        let wait = "select again_in < '1 second' from hotrow.take_batch('{q}', null, null, '{1 minute}')";
        assert_eq!(session.value(wait), "t");
        other.run("commit");
        // One shard in three can be the order's.
        assert_eq!(take(&session, "1").0, "1:1");
    }
}

#[test]
#[ignore = "long: make test-all"]
fn orders_after_thousands_that_wait_for_their_group_are_found() {
    let (_database, session) = queue("");
    session.run(
        "select hotrow.enqueue_all('q', (select jsonb_agg(jsonb_build_object('order_id', gen_random_uuid(),
            'payload', jsonb_build_object('n', n), 'group_key', 'g')) from generate_series(1, 1000) n))
        from generate_series(1, 3)",
    );
    enqueue(&session, 4000, "");
    assert_eq!(take(&session, "1, '1 hour'").0, "1:1");
    // A call that has only brought orders to their group ends early.
    let found =
        (0..100).map(|_| take(&session, "1, '1 hour', '1 second'").0).find(|orders| !orders.is_empty());
    assert_eq!(found.as_deref(), Some("4000:1"));
    // Nothing is left that it could change: it waits until its time is over.
    let begin = std::time::Instant::now();
    assert_eq!(take(&session, "1, '1 hour', '0.3 seconds'").0, "");
    assert!(begin.elapsed().as_millis() >= 300);
}
