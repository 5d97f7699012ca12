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

#[test]
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
