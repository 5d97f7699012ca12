//! Queues: which caller gets which order, when, and the order's outcome. Tests end leases by moving stored times into the
//! past.

use crate::script::check_in;
use crate::server::{Database, Session};

pub fn queue(options: &str) -> (Database, Session) {
    let database = Database::migrated();
    let session = database.session("postgres");
    session.run(&format!("select hotrow.create_queue('q'{options})"));
    (database, session)
}

/// Enqueues the order with this number.
pub fn enqueue(session: &Session, number: u32, more: &str) -> String {
    let rows = session.ask(&format!(
        "select status from hotrow.enqueue('q', '00000000-0000-0000-0000-{number:012}', '{{\"n\": {number}}}'{more})"
    ));
    rows.unwrap().join(" ")
}

/// Takes orders. Returns the number and the attempt of each, with a colon between them, and the receipts.
pub fn take(session: &Session, arguments: &str) -> (String, Vec<String>) {
    let rows = session
        .ask(&format!("select (payload->>'n') || ':' || attempt, receipt from hotrow.take('q', {arguments})"))
        .unwrap();
    let pairs: Vec<_> = rows.iter().map(|row| row.split_once(' ').unwrap()).collect();
    let orders: Vec<_> = pairs.iter().map(|(order, _)| *order).collect();
    (orders.join(" "), pairs.iter().map(|(_, receipt)| (*receipt).to_owned()).collect())
}

pub fn outcome(session: &Session, call: &str) -> String {
    session.ask(&format!("select outcome from hotrow.{call}")).unwrap().join(" ")
}

/// Moves the times of all queues into the past.
fn pass(session: &Session, interval: &str) {
    let updates = session
        .ask(
            "select format('update hotrow.%I set %s', c.relname,
                string_agg(format('%1$I = %1$I - interval ''PASSED''', a.attname), ', '))
            from pg_class c join pg_attribute a on a.attrelid = c.oid and a.atttypid = 'timestamptz'::regtype
            where c.relnamespace = 'hotrow'::regnamespace and c.relkind = 'r' and c.relname ~ '^(queue_|processed_)'
                and c.relname !~ '_\\d$' group by c.relname",
        )
        .unwrap();
    for update in updates {
        session.run(&update.replace("PASSED", interval));
    }
}

#[test]
fn orders_are_handed_out_in_their_order_and_once() {
    let (_database, session) = queue("");
    for number in 1..=5 {
        assert_eq!(enqueue(&session, number, ""), "enqueued");
    }
    assert_eq!(enqueue(&session, 2, ""), "duplicate");
    let (orders, receipts) = take(&session, "2");
    assert_eq!(orders, "1:1 2:1");
    assert_eq!(take(&session, "2, null").0, "3:1 4:1");
    assert_eq!(
        outcome(&session, &format!("complete('q', {}, 7, '{{\"ok\": true}}')", receipts[0])),
        "completed"
    );
    assert_eq!(outcome(&session, &format!("complete('q', {})", receipts[0])), "lease_lost");
    assert_eq!(enqueue(&session, 1, ""), "duplicate");
    assert_eq!(outcome(&session, &format!("release('q', {})", receipts[1])), "released");
    assert_eq!(take(&session, "9").0, "2:1 5:1");
    assert_eq!(take(&session, "9").0, "");
    check_in(&session, "queue_stats('q') -> 0 0 2 3 0 5 - f 0 0");
    let found =
        "select state, status, result from hotrow.find_order('q', '00000000-0000-0000-0000-000000000001')";
    assert_eq!(session.ask(found).unwrap(), ["processed 7 {\"ok\": true}"]);
}

#[test]
fn an_expired_lease_returns_its_orders_and_invalidates_its_receipts() {
    let (_database, session) = queue(", max_attempts => 2");
    for number in 1..=3 {
        enqueue(&session, number, "");
    }
    let (orders, old) = take(&session, "3, '1 hour'");
    assert_eq!(orders, "1:1 2:1 3:1");
    assert_eq!(outcome(&session, &format!("complete('q', {})", old[1])), "completed");
    pass(&session, "50 minutes");
    assert_eq!(outcome(&session, &format!("extend_lease('q', {}, '1 hour')", old[0])), "extended");
    pass(&session, "50 minutes");
    assert_eq!(take(&session, "3").0, "");
    pass(&session, "20 minutes");
    let (orders, new) = take(&session, "3, '1 hour'");
    assert_eq!(orders, "1:2 3:2");
    for call in ["complete", "release", "fail"] {
        assert_eq!(outcome(&session, &format!("{call}('q', {})", old[0])), "lease_lost");
    }
    assert_eq!(outcome(&session, &format!("extend_lease('q', {}, '1 hour')", old[0])), "lease_lost");
    assert_eq!(outcome(&session, &format!("fail('q', {}, 'no')", new[1])), "dead");
    pass(&session, "2 hours");
    assert_eq!(take(&session, "3").0, "", "both have used up their attempts");
    check_in(&session, "queue_stats('q') -> 0 0 0 1 2 3 - f 0 0\nredrive('q') -> 2");
    assert_eq!(take(&session, "3").0, "1:1 3:1");
}

#[test]
fn a_strict_group_has_one_order_at_a_time_even_over_failures() {
    let (_database, session) = queue("");
    for (number, group) in [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "b")] {
        enqueue(&session, number, &format!(", '{group}'"));
    }
    let (orders, receipts) = take(&session, "9");
    assert_eq!(orders, "1:1 3:1");
    assert_eq!(outcome(&session, &format!("fail('q', {}, 'no', '1 hour')", receipts[0])), "retrying");
    assert_eq!(outcome(&session, &format!("complete('q', {})", receipts[1])), "completed");
    assert_eq!(take(&session, "9").0, "5:1");
    pass(&session, "1 hour");
    let (orders, receipts) = take(&session, "9");
    assert_eq!(orders, "1:2 5:2", "orders of ended leases and orders that waited for a retry");
    assert_eq!(outcome(&session, &format!("complete('q', {})", receipts[0])), "completed");
    assert_eq!(
        take(&session, "9, null").0,
        "2:1 4:1",
        "an order taken without a lease makes room for the next at once"
    );
}

#[test]
fn priorities_times_and_created_at_determine_the_order() {
    let (_database, session) = queue("");
    enqueue(&session, 1, "");
    enqueue(&session, 2, ", priority => 1");
    enqueue(&session, 3, ", priority => -1");
    enqueue(&session, 4, ", not_before => clock_timestamp() + interval '1 hour'");
    enqueue(&session, 5, "");
    assert_eq!(take(&session, "9, null").0, "2:1 1:1 5:1 3:1");
    pass(&session, "2 hours");
    assert_eq!(take(&session, "9, null").0, "4:1");

    let (_database, session) = queue(", order_by => 'created_at'");
    for (number, day) in [(1, 5), (2, 3), (3, 9), (4, 3), (5, 1), (6, 12)] {
        enqueue(&session, number, &format!(", created_at => '2026-01-{day:02}'"));
    }
    assert_eq!(take(&session, "3, null").0, "5:1 2:1 4:1");
    enqueue(&session, 7, ", created_at => '2026-01-02'");
    assert_eq!(take(&session, "9, null").0, "7:1 1:1 3:1 6:1");
}

#[test]
fn a_batch_serves_its_calls_in_order_and_reports_which_have_to_wait() {
    let (_database, session) = queue("");
    for number in 1..=4 {
        enqueue(&session, number, "");
    }
    let batch =
        "select call, again_in is not null, payload->>'n' from hotrow.take_batch('{q,q,q,q}', '{1,2,3,4}',
        array[null, interval '1 minute', null, null], array[null, null, null, interval '1 second'])";
    let rows = session.ask(batch).unwrap();
    assert_eq!(rows, ["1 f 1", "2 f 2", "2 f 3", "3 f 4", "4 t -"]);
    session.run("listen hotrow_wake");
    let waited = "select bool_or(waited) from hotrow.queue_tail";
    assert_eq!(session.ask(waited).unwrap(), ["t"]);
    enqueue(&session, 5, "");
    assert_eq!(
        session.ask(&format!("{waited} where seq = (select max(seq) from hotrow.queue_tail)")).unwrap(),
        ["f"]
    );
    assert_eq!(take(&session, "1, null, '1 second'").0, "5:1");
}

#[test]
fn many_orders_are_enqueued_together_or_not_at_all() {
    let (_database, session) = queue("");
    let id = |number: u32| format!("00000000-0000-0000-0000-{number:012}");
    let orders = |fields: &[String]| {
        let orders = fields.iter().map(|fields| format!("{{{fields}}}"));
        format!("'[{}]'", orders.collect::<Vec<_>>().join(","))
    };
    let order = |number: u32, more: &str| {
        format!(r#""order_id": "{}", "payload": {{"n": {number}}}{more}"#, id(number))
    };
    let ask = |orders: &str| session.ask(&format!("select * from hotrow.enqueue_all('q', {orders})"));
    enqueue(&session, 2, "");
    let some = orders(&[
        order(3, r#", "priority": 1, "group_key": null"#),
        order(2, ""),
        order(1, r#", "created_at": "2026-01-01T00:00:00Z""#),
        order(3, ""),
    ]);
    assert_eq!(ask(&some).unwrap(), ["2 enqueued", "1 duplicate", "4 enqueued", "2 duplicate"]);
    assert_eq!(take(&session, "9, null").0, "3:1 2:1 1:1");
    for (orders, code) in [
        (orders(&[order(7, ""), String::new()]), "22004"),
        (orders(&[order(7, ""), order(8, r#", "group": "x""#)]), "22023"),
        (orders(&[order(7, ""), order(8, r#", "priority": 61"#)]), "22023"),
        (orders(&[order(7, ""), r#""order_id": "8""#.to_owned()]), "22P02"),
        ("'[7]'".to_owned(), "22023"),
        ("'{}'".to_owned(), "22023"),
        ("null".to_owned(), "22004"),
    ] {
        assert_eq!(ask(&orders).unwrap_err(), code, "{orders}");
    }
    assert_eq!(ask("'[]'").unwrap(), Vec::<String>::new());
    assert_eq!(take(&session, "9, null").0, "", "no order was enqueued");
    let twice = orders(&[order(7, ""), order(8, "")]);
    let batch = format!(
        "select * from hotrow.enqueue_all_batch('{{q,nobody,q}}', array[{twice},{twice},{twice}]::jsonb[])"
    );
    let answers = [
        "1 6 enqueued",
        "1 7 enqueued",
        "2 - unknown_queue",
        "2 - unknown_queue",
        "3 6 duplicate",
        "3 7 duplicate",
    ];
    assert_eq!(session.ask(&batch).unwrap(), answers);
}

#[test]
fn a_repeated_receipt_counts_as_one_order() {
    let (_database, session) = queue("");
    for number in 1..=3 {
        enqueue(&session, number, "");
    }
    let (_, receipts) = take(&session, "3");
    let twice = format!("complete_all('q', array[{0},{0},{1}])", receipts[0], receipts[2]);
    assert_eq!(outcome(&session, &twice), "completed lease_lost completed");
    check_in(&session, "queue_stats('q') -> 0 0 1 2 0 3 - f 0 0");
    assert_eq!(outcome(&session, &format!("complete_all('q', array[{}])", receipts[1])), "completed");
}

#[test]
fn a_paused_queue_hands_out_nothing() {
    let (_database, session) = queue("");
    enqueue(&session, 1, "");
    check_in(&session, "pause('q') -> paused\npause('q') -> paused");
    assert_eq!(take(&session, "1").0, "");
    check_in(&session, "resume('q') -> resumed");
    assert_eq!(take(&session, "1").0, "1:1");
    check_in(&session, "drop_queue('q') -> dropped\ndrop_queue('q') -> unknown_queue\ntake('q') -> P0002");
    check_in(
        &session,
        "create_queue('q') -> created\ncreate_queue('q') -> exists\ncreate_queue('q', 2) -> differs",
    );
    assert_eq!(enqueue(&session, 1, ""), "enqueued", "the name belongs to another queue");
}

#[test]
fn every_shard_is_served_and_keeps_its_order() {
    let (_database, session) = queue(", shards => 3");
    for number in 1..=30 {
        enqueue(&session, number, &format!(", '{}'", number % 5));
    }
    let (orders, receipts) = take(&session, "30");
    assert_eq!(orders.split(' ').count(), 5, "one of each group: {orders}");
    let all = format!("complete_all('q', array[{}])", receipts.join(","));
    assert_eq!(outcome(&session, &all), "completed completed completed completed completed");
    assert_eq!(take(&session, "30, null").0.split(' ').count(), 25);
    check_in(&session, "queue_stats('q') -> 0 0 0 30 0 30 - f 0 0");
}

/// Rotates the ring to this part, which is the next one, for queues with a retention of four hours.
fn move_ring(session: &Session, part: u32) {
    session.run("update hotrow.queue_ring set opened_at = opened_at - interval '2 hours'");
    check_in(session, &format!("rotate_queues() -> rotated {part}"));
}

#[test]
fn rotation_keeps_open_orders_and_deletes_the_others() {
    let (_database, session) = queue(", retention => '4 hours'");
    for number in 1..=3 {
        enqueue(&session, number, "");
    }
    assert_eq!(take(&session, "1, null").0, "1:1");
    check_in(&session, "rotate_queues() -> young 0");
    for part in [1, 2, 3, 0] {
        move_ring(&session, part);
        assert_eq!(enqueue(&session, 2, ""), "duplicate", "the order still waits");
    }
    assert_eq!(enqueue(&session, 1, ""), "enqueued", "the order was deleted");
    assert_eq!(take(&session, "9, null").0, "2:1 3:1 1:1");
}

/// The ring is rotated three times while an order waits in one of several states. Each case has the calls during
/// the wait and the calls that end the order. Only the third rotation after the order's end may delete the order.
#[test]
#[ignore = "long: make test-all"]
fn an_order_is_kept_for_its_retention_after_its_end_regardless_of_its_wait() {
    for (more, meanwhile, at_last) in [
        ("", "", "take('q', 9, null)"),
        (", priority => 3", "", "take('q', 9, null)"),
        (", priority => 3", "take('q', 9, '1 minute')", "complete('q', 16384)"),
        (", not_before => clock_timestamp() + interval '1 hour'", "take('q')", "take('q', 9, null)"),
        (", not_before => clock_timestamp() + interval '1 hour'", "", "take('q', 9, null)"),
        (", 'g'", "take('q', 9, '1 minute')", "complete('q', 16384)"),
        ("", "take('q', 9, '1 minute')", "fail('q', 16384)"),
        ("", "take('q', 9, '30 days')", "complete_all('q', array[16384])"),
        (", 'g'", "take('q'); select hotrow.release('q', 16384)", "take('q', 9, null)"),
        ("", "take('q'); select hotrow.fail('q', 16384, retry_in => '1 hour')", "take('q', 9, null)"),
    ] {
        for dead_letter in [false, true] {
            let (_database, session) =
                queue(&format!(", retention => '4 hours', dead_letter => {dead_letter}, max_attempts => 2"));
            let path = format!("{more} {meanwhile} {at_last} {dead_letter}");
            for number in 1..=2 {
                enqueue(&session, number, more);
            }
            if !meanwhile.is_empty() {
                session.run(&format!("select hotrow.{meanwhile}"));
            }
            for part in [1, 2, 3] {
                move_ring(&session, part);
            }
            session.run(
                "update hotrow.queue_lease set due = due - interval '1 hour' where taken_at is null;
                update hotrow.queue_head set next_due = next_due - interval '1 hour', due_mark = due_mark - interval '1 hour';
                update hotrow.queue_order set not_before = not_before - interval '1 hour'",
            );
            session.run(&format!("select hotrow.{at_last}"));
            while session.value("select processed from hotrow.queue_stats('q')") != "2" {
                session.run("select hotrow.take('q', 1, null); update hotrow.queue_head set next_due = '-infinity', due_mark = '-infinity';
                    update hotrow.queue_lease set due = clock_timestamp(); select hotrow.redrive('q')");
            }
            for part in [0, 1] {
                move_ring(&session, part);
                for number in 1..=2 {
                    let id = format!("00000000-0000-0000-0000-{number:012}");
                    let state = format!("select state from hotrow.find_order('q', '{id}')");
                    assert_eq!(session.ask(&state).unwrap(), ["processed"], "{path}: {number} in {part}");
                    assert_eq!(enqueue(&session, number, ""), "duplicate", "{path}: {number} in {part}");
                }
            }
            for part in [2, 3] {
                move_ring(&session, part);
            }
            assert_eq!(session.value("select count(*) from hotrow.queue_order"), "0", "{path}");
            assert_eq!(enqueue(&session, 1, ""), "enqueued", "{path}: the order was deleted");
        }
    }
}

#[test]
fn the_rest_of_a_lease_survives_rotation() {
    let (_database, session) = queue(", retention => '4 hours'");
    (1..=4).for_each(|number| drop(enqueue(&session, number, "")));
    let (_, receipts) = take(&session, "4, '30 days'");
    let complete = |place: usize| outcome(&session, &format!("complete('q', {})", receipts[place]));
    assert_eq!(complete(1), "completed");
    for part in [1, 2, 3, 0, 1] {
        move_ring(&session, part);
    }
    assert_eq!(complete(0), "completed");
    for part in [2, 3, 0, 1] {
        move_ring(&session, part);
    }
    check_in(&session, "list_orders('q', 'waiting') -> nothing");
    let leased = "select right(order_id::text, 1) from hotrow.list_orders('q', 'leased')";
    assert_eq!(session.ask(leased).unwrap(), ["3", "4"]);
    assert_eq!(
        (complete(3), complete(2), complete(1)),
        ("completed".into(), "completed".into(), "lease_lost".into())
    );
    check_in(&session, "queue_stats('q') -> 0 0 0 4 0 4 - f 0 0");
}

#[test]
fn a_ring_with_too_many_open_orders_waits_or_moves_them_in_pieces() {
    let (database, session) = queue(", retention => '4 hours'");
    (1..=4).for_each(|number| drop(enqueue(&session, number, "")));
    move_ring(&session, 1);
    session.run("update hotrow.queue_ring set opened_at = opened_at - interval '2 hours'");
    // Another session holds the lock of a queue. A call that only reads does not wait for it.
    let other = database.session("postgres");
    other.run("begin; select from hotrow.queue_lock for update");
    check_in(&session, "rotate_queues(3) -> full 1");
    other.run("rollback");
    take(&session, "4, '30 days'");
    let elsewhere = "select count(*) from hotrow.queue_order_1";
    for moved in ["2", "4"] {
        check_in(&session, "rotate_queues(2) -> moving 1");
        assert_eq!(session.value(elsewhere), moved);
    }
    other.run("begin; select from hotrow.queue_order_2");
    check_in(&session, "rotate_queues(2) -> busy 1");
    other.run("rollback");
    check_in(&session, "rotate_queues(2) -> rotated 2");
    check_in(&session, "rotate_queues(2) -> young 2");
    other.run("begin; select from hotrow.queue_ring for update");
    check_in(&session, "rotate_queues() -> young 2");
    other.run("rollback; update hotrow.queue_ring set opened_at = opened_at - interval '400 days'");
    other.run("begin; select from hotrow.queue_ring for update");
    check_in(&session, "rotate_queues() -> busy 2");
    check_in(&session, "rotate_queues(0) -> 22023\nrotate_queues(null) -> 22004");
}

#[test]
fn a_receipt_that_was_never_issued_is_refused() {
    for shards in [1, 3] {
        let (_database, session) = queue(&format!(", shards => {shards}"));
        for number in 1..=9 {
            enqueue(&session, number, "");
        }
        let (_, receipts) = take(&session, "9");
        let given: Vec<i64> = receipts.iter().map(|receipt| receipt.parse().unwrap()).collect();
        for receipt in &given {
            let strangers =
                (-40..40).map(|by| receipt + by).chain([-receipt, receipt + (1 << 40), i64::MAX, i64::MIN]);
            let strangers: Vec<_> =
                strangers.filter(|one| !given.contains(one)).map(|one| one.to_string()).collect();
            let lost = vec!["lease_lost"; strangers.len()].join(" ");
            assert_eq!(
                outcome(&session, &format!("complete_all('q', array[{}])", strangers.join(","))),
                lost
            );
            for stranger in strangers.iter().step_by(7).chain([&(receipt + 1).to_string()]) {
                for call in
                    ["complete('q', R)", "fail('q', R)", "release('q', R)", "extend_lease('q', R, '1 hour')"]
                {
                    assert_eq!(
                        outcome(&session, &call.replace('R', stranger)),
                        "lease_lost",
                        "{call} {stranger}"
                    );
                }
            }
        }
        let all = format!("complete_all('q', array[{}])", receipts.join(","));
        assert_eq!(outcome(&session, &all), ["completed"; 9].join(" "));
    }
}

/// The last characters of the orders' IDs, in pages of two orders.
fn listed(session: &Session, state: &str) -> String {
    let (mut after, mut orders) = ("0".to_owned(), Vec::new());
    loop {
        let page = format!(
            "select id, right(order_id::text, 2)::int || case attempt when 0 then '' else ':' || attempt end
            from hotrow.list_orders('q', '{state}', {after}, 2)"
        );
        let rows = session.ask(&page).unwrap();
        let Some(last) = rows.last() else { return orders.join(" ") };
        last.split_once(' ').unwrap().0.clone_into(&mut after);
        orders.extend(rows.iter().map(|row| row.split_once(' ').unwrap().1.to_owned()));
    }
}

#[test]
fn an_order_is_in_the_list_of_its_state() {
    let (_database, session) = queue(", max_attempts => 2");
    let oldest = || {
        session.value("select right(o.order_id::text, 2)::int from hotrow.queue_stats('q') s left join hotrow.queue_order o on o.at = s.oldest")
    };
    let states = |states: [&str; 5]| {
        for (state, right) in ["waiting", "delayed", "leased", "processed", "dead"].iter().zip(states) {
            assert_eq!(listed(&session, state), right, "{state}");
            for order in right.split_whitespace() {
                let number: u32 = order.split(':').next().unwrap().parse().unwrap();
                let found = format!(
                    "select state from hotrow.find_order('q', '00000000-0000-0000-0000-{number:012}')"
                );
                assert_eq!(session.value(&found), **state, "{order}");
            }
        }
    };
    // No call has taken yet.
    enqueue(&session, 1, ", 'g', priority => 1");
    enqueue(&session, 2, ", 'g', priority => 1");
    enqueue(&session, 3, ", not_before => clock_timestamp() + interval '1 hour'");
    enqueue(&session, 4, ", not_before => clock_timestamp() - interval '1 hour'");
    states(["1 2 4", "3", "", "", ""]);
    assert_eq!(oldest(), "1");
    for number in 5..=9 {
        enqueue(&session, number, if number == 7 { ", 'g'" } else { "" });
    }
    states(["1 2 4 5 6 7 8 9", "3", "", "", ""]);
    // These orders wait for another order of their group.
    let (orders, receipts) = take(&session, "9, '1 hour'");
    assert_eq!(orders, "1:1 4:1 5:1 6:1 8:1 9:1");
    states(["2 7", "3", "1:1 4:1 5:1 6:1 8:1 9:1", "", ""]);
    assert_eq!(oldest(), "2");
    for (place, call, right) in [
        (2, "complete('q', R)", ["2 7", "3", "1:1 4:1 6:1 8:1 9:1", "5:1", ""]),
        (3, "release('q', R)", ["2 6 7", "3", "1:1 4:1 8:1 9:1", "5:1", ""]),
        (4, "fail('q', R, retry_in => '1 hour')", ["2 6 7", "3 8:1", "1:1 4:1 9:1", "5:1", ""]),
        (5, "fail('q', R, retry_in => '0')", ["2 6 7 9:1", "3 8:1", "1:1 4:1", "5:1", ""]),
        (0, "fail('q', R, retry_in => '1 hour')", ["2 6 7 9:1", "1:1 3 8:1", "4:1", "5:1", ""]),
    ] {
        outcome(&session, &call.replace('R', &receipts[place]));
        states(right);
    }
    let (orders, receipts) = take(&session, "9, '1 hour'");
    assert_eq!(orders, "6:1 9:2");
    outcome(&session, &format!("fail('q', {})", receipts[1]));
    states(["2 7", "1:1 3 8:1", "4:1 6:1", "5:1", "9:2"]);
    check_in(&session, "redrive('q') -> 1");
    states(["2 7 9", "1:1 3 8:1", "4:1 6:1", "5:1", ""]);
}

#[test]
fn pages_of_a_queue_sorted_by_created_at_have_no_gaps() {
    for shards in [1, 2] {
        let (_database, session) = queue(&format!(", order_by => 'created_at', shards => {shards}"));
        // Some orders have the same created_at, some arrive late.
        for number in 1..=60 {
            let minute = if number % 7 == 0 { number / 2 } else { number / 3 };
            enqueue(&session, number, &format!(", created_at => '2026-01-01 00:{minute:02}'"));
        }
        let all = |skipped: &[u32]| {
            let orders = (1..=60).filter(|number| !skipped.contains(number)).map(|number| number.to_string());
            orders.collect::<Vec<_>>()
        };
        let sorted = |state: &str| {
            let mut orders: Vec<_> = listed(&session, state).split(' ').map(str::to_owned).collect();
            orders.sort_by_key(|order| order.parse::<u32>().unwrap());
            orders
        };
        assert_eq!(sorted("waiting"), all(&[]));
        let taken: Vec<u32> = take(&session, "17, null")
            .0
            .split(' ')
            .map(|one| one.split_once(':').unwrap().0.parse().unwrap())
            .collect();
        assert_eq!(sorted("waiting"), all(&taken));
    }
}

#[test]
fn leases_of_any_part_of_the_ring_are_completed_together() {
    let (_database, session) = queue(", retention => '4 hours'");
    (1..=3).for_each(|number| drop(enqueue(&session, number, "")));
    let (_, mut receipts) = take(&session, "2");
    move_ring(&session, 1);
    receipts.extend(take(&session, "1").1); // enqueued before, taken after
    (4..=5).for_each(|number| drop(enqueue(&session, number, "")));
    receipts.extend(take(&session, "1").1);
    receipts.extend(take(&session, "1").1);
    let of_all = format!("complete_all('q', array[{}])", receipts.join(","));
    assert_eq!(outcome(&session, &of_all), ["completed"; 5].join(" "));
    let recorded = "select payload->>'n' from hotrow.processed_order p join hotrow.queue_order o using (order_id) order by 1";
    assert_eq!(session.ask(recorded).unwrap(), ["1", "2", "3", "4", "5"]);
}

#[test]
fn invalid_arguments_are_refused() {
    let (_database, session) = queue("");
    let id = "'00000000-0000-0000-0000-000000000001'";
    let long = format!("repeat('x', {})", 10 << 10);
    check_in(
        &session,
        &format!(
            "take('q', 0) -> 22023
            take('q', -1) -> 22023
            take('q', 1001) -> 22023
            take('q', null) -> 22004
            take('q', 1, '0') -> 22023
            take('q', 1, '-1 second') -> 22023
            take('q', 1, '1 second', '-1 second') -> 22023
            take('none') -> P0002
            enqueue('none', {id}) -> - unknown_queue
            enqueue('q', null) -> 22004
            enqueue('q', {id}, null, {long}) -> 22023
            enqueue('q', {id}, null, '') -> 22023
            enqueue('q', {id}, to_jsonb(repeat('x', 10000000))) -> 22023
            enqueue('q', {id}, priority => 61) -> 22023
            enqueue('q', {id}, created_at => 'infinity') -> 22023
            enqueue('q', {id}, not_before => 'infinity') -> 22023
            complete('q', 12345) -> lease_lost
            complete('q', -1) -> lease_lost
            complete('none', 1) -> unknown_queue
            complete('q', null) -> 22004
            complete_all('q', null) -> 22004
            complete_all('q', array[1, null]) -> 22004
            complete_all('q', array_fill(1::bigint, array[1001])) -> 22023
            complete_all('q', array[]::bigint[]) -> nothing
            complete_all('none', array[1]) -> 1 unknown_queue
            fail('q', 1, retry_in => '-1 second') -> 22023
            extend_lease('q', 1, '0') -> 22023
            create_queue('', 1) -> 22023
            create_queue('r', 0) -> 22023
            create_queue('r', 17) -> 22023
            create_queue('r', max_attempts => 0) -> 22023
            create_queue('r', order_by => 'size') -> 22023
            list_orders('q', 'lost') -> 22023
            queue_stats('none') -> P0002"
        ),
    );
}
