//! Queues: who gets which order when, and what becomes of it. Leases are ended by moving what is stored into the past.

use crate::script::check_in;
use crate::server::{Database, Session};

fn queue(options: &str) -> (Database, Session) {
    let database = Database::migrated();
    let session = database.session("postgres");
    session.run(&format!("select hotrow.create_queue('q'{options})"));
    (database, session)
}

/// Enqueues the order with this number.
fn enqueue(session: &Session, number: u32, more: &str) -> String {
    let rows = session.ask(&format!(
        "select status from hotrow.enqueue('q', '00000000-0000-0000-0000-{number:012}', '{{\"n\": {number}}}'{more})"
    ));
    rows.unwrap().join(" ")
}

/// What a take answers: number of the order, a colon, its attempt; and the receipts.
fn take(session: &Session, arguments: &str) -> (String, Vec<String>) {
    let rows = session
        .ask(&format!("select (payload->>'n') || ':' || attempt, receipt from hotrow.take('q', {arguments})"))
        .unwrap();
    let pairs: Vec<_> = rows.iter().map(|row| row.split_once(' ').unwrap()).collect();
    let orders: Vec<_> = pairs.iter().map(|(order, _)| *order).collect();
    (orders.join(" "), pairs.iter().map(|(_, receipt)| (*receipt).to_owned()).collect())
}

fn outcome(session: &Session, call: &str) -> String {
    session.ask(&format!("select outcome from hotrow.{call}")).unwrap().join(" ")
}

/// Lets time pass for all queues.
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
fn a_lease_that_ends_gives_its_orders_back_and_its_receipt_is_no_longer_good() {
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
    assert_eq!(orders, "1:2 5:2", "whose leases ended and who waited for another attempt");
    assert_eq!(outcome(&session, &format!("complete('q', {})", receipts[0])), "completed");
    assert_eq!(take(&session, "9, null").0, "2:1 4:1", "who takes for good makes room for the next at once");
}

#[test]
fn priorities_times_and_created_at_decide_about_the_order() {
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
fn a_batch_serves_its_calls_one_after_another_and_says_who_has_to_wait() {
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
fn many_orders_come_in_at_once_or_none_of_them() {
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
    assert_eq!(take(&session, "9, null").0, "", "none of them came in");
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
fn a_receipt_that_comes_twice_stands_for_one_order() {
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
    assert_eq!(enqueue(&session, 1, ""), "enqueued", "it is another queue");
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

/// Moves the ring on to this part, the next one, of queues whose retention is four hours.
fn move_ring(session: &Session, part: u32) {
    session.run(
        "update hotrow.queue_ring set opened_at = opened_at - interval '5 hours',
        closed_at = array(select c - interval '5 hours' from unnest(closed_at) with ordinality u (c, n) order by n)",
    );
    check_in(session, &format!("rotate_queues() -> rotated {part}"));
}

#[test]
fn the_ring_moves_on_keeps_open_orders_and_forgets_the_others() {
    let (_database, session) = queue(", retention => '4 hours'");
    for number in 1..=3 {
        enqueue(&session, number, "");
    }
    assert_eq!(take(&session, "1, null").0, "1:1");
    check_in(&session, "rotate_queues() -> young 0");
    for part in [1, 2, 3, 0] {
        move_ring(&session, part);
        assert_eq!(enqueue(&session, 2, ""), "duplicate", "it still waits");
    }
    assert_eq!(enqueue(&session, 1, ""), "enqueued", "it has been forgotten");
    assert_eq!(take(&session, "9, null").0, "2:1 3:1 1:1");
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
fn what_can_not_be_right_is_refused() {
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
