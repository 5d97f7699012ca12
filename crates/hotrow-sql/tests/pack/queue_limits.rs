//! Limits of queues: receipts of other queues, times and documents that no later call could handle, and clocks that were set
//! back.

use crate::queues::{enqueue, outcome, queue, take};
use crate::script::check_in;

#[test]
fn a_receipt_of_a_dropped_queue_is_refused_by_a_new_queue_of_the_same_name() {
    let (_database, session) = queue("");
    enqueue(&session, 1, "");
    let old = take(&session, "1, '1 hour'").1;
    check_in(&session, "drop_queue('q') -> dropped\ncreate_queue('q') -> created");
    enqueue(&session, 2, "");
    let new = take(&session, "1, '1 hour'").1;
    assert_ne!(old, new);
    for call in ["complete", "release", "fail"] {
        assert_eq!(outcome(&session, &format!("{call}('q', {})", old[0])), "lease_lost");
    }
    assert_eq!(outcome(&session, &format!("complete('q', {})", new[0])), "completed");
}

#[test]
fn a_clock_that_was_set_back_makes_no_lease_longer_and_no_order_early() {
    let (_database, session) = queue("");
    enqueue(&session, 1, "");
    // The last calls ran while the clock was an hour ahead.
    session.run("update hotrow.queue_head set at = at + interval '1 hour', due_mark = clock_timestamp() + interval '1 hour'");
    session.run("update hotrow.queue_tail set at = clock_timestamp() + interval '1 hour'");
    enqueue(&session, 2, ", not_before => clock_timestamp() + interval '30 minutes'");
    assert_eq!(take(&session, "5, '1 millisecond'").0, "1:1");
    session.until("every(due < clock_timestamp()) from hotrow.queue_lease where taken_at is not null");
    assert_eq!(take(&session, "5").0, "1:2");
    let early = "select count(*) from hotrow.queue_order where at > clock_timestamp() or created_at > clock_timestamp()";
    assert_eq!(session.value(early), "0");
}

#[test]
fn a_document_is_measured_by_its_text() {
    let (_database, session) = queue("");
    let mut number = 0;
    let mut ask = |document: &str| {
        number += 1;
        session.ask(&format!(
            "select status from hotrow.enqueue('q', '00000000-0000-0000-0000-{number:012}', ({document})::jsonb)"
        ))
    };
    let refused = Err("22023".to_owned());
    let enqueued = Ok(vec!["enqueued".to_owned()]);
    // 81 KB whose text would be over 1 GB: each take would fail.
    assert_eq!(ask("'[' || repeat('1e131071,', 9000) || '1]'"), refused);
    assert_eq!(ask("'[1e131071, 1e131071]'"), refused);
    assert_eq!(ask("'[' || repeat('1e-16000,', 20) || '1]'"), refused);
    assert_eq!(ask("to_jsonb(repeat(e'\\x01', 50000))"), refused);
    assert_eq!(ask("to_jsonb(repeat('x', 255999))"), refused);
    assert_eq!(ask("to_jsonb(repeat('x', 255998))"), enqueued);
    assert_eq!(ask("'1e131071'"), enqueued);
    assert_eq!(ask("'[' || repeat('1,', 80000) || '1]'"), enqueued);
    assert_eq!(session.value("select count(*) from hotrow.take('q', 9)"), "3");
    let result = "complete('q', 16384, 0, ('[' || repeat('1e131071,', 9000) || '1]')::jsonb) -> 22023";
    check_in(&session, result);
}

#[test]
fn times_out_of_range_are_refused_when_they_are_set() {
    let (_database, session) = queue(", retry => '1 day', max_attempts => 1000");
    check_in(
        &session,
        "create_queue('x', retry => '25 hours') -> 22023
        create_queue('x', retention => '20000 years') -> 22023
        enqueue('q', gen_random_uuid(), not_before => '2201-01-01') -> 22023
        extend(gen_random_uuid(), '20000 years') -> 22023",
    );
    enqueue(&session, 1, "");
    for _ in 0..100 {
        let receipts = take(&session, "1").1;
        assert_eq!(outcome(&session, &format!("fail('q', {}, 'no', '0')", receipts[0])), "retrying");
    }
    let receipts = take(&session, "1").1;
    assert_eq!(outcome(&session, &format!("fail('q', {})", receipts[0])), "retrying");
    assert_eq!(
        session.value("select due - (select max(at) from hotrow.queue_head) from hotrow.queue_lease"),
        "1 day"
    );
}
