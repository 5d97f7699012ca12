//! Work that becomes due at one moment is done in pieces: no call exceeds its share, and each answer is still correct. The
//! tests move stored times into the past instead of waiting.

use crate::script::check_in;
use crate::server::{Database, Session};

/// Moves all leases and all orders that wait for a time into the past.
const ALL_IS_DUE: &str = "
    update hotrow.queue_lease set due = due - interval '2 hours', taken_at = taken_at - interval '2 hours';
    update hotrow.queue_order set not_before = not_before - interval '2 hours';
    update hotrow.queue_head set next_due = next_due - interval '2 hours'";

const ALL_HOLDS_ARE_DUE: &str = "
    update hotrow.request set expires_at = expires_at - interval '2 hours';
    update hotrow.sale set next_expiry = next_expiry - interval '2 hours';
    update hotrow.sale_due set look_at = look_at - interval '2 hours'";

/// Enqueues `thousands` of orders; the payload is the order's number.
fn enqueue(session: &Session, thousands: u32, more: &str) {
    for thousand in 0..thousands {
        session.run(&format!(
            "select from hotrow.enqueue_batch(array_fill('q'::text, '{{1000}}'),
                array(select gen_random_uuid() from generate_series(1, 1000)),
                array(select to_jsonb({thousand} * 1000 + n) from generate_series(1, 1000) n){more})"
        ));
    }
}

fn head(session: &Session, column: &str) -> i64 {
    session
        .value(&format!("select {column} from hotrow.queue_head order by seq desc limit 1"))
        .parse()
        .unwrap()
}

fn queue(options: &str) -> (Database, Session) {
    let database = Database::migrated();
    let session = database.session("postgres");
    session.run(&format!("select hotrow.create_queue('q'{options})"));
    (database, session)
}

#[test]
fn leases_that_end_together_come_back_in_pieces_and_in_their_order() {
    let (_database, session) = queue("");
    enqueue(&session, 6, "");
    session.run("select from hotrow.take('q', 1000, '1 hour'), generate_series(1, 1)");
    let singly = "select from hotrow.take_batch(array_fill('q'::text, '{1000}'), null, array_fill('1 hour'::interval, '{1000}'))";
    (0..4).for_each(|_| session.run(singly));
    let receipt = session.value("select max(lease) * 16384 from hotrow.queue_lease");
    session.run(ALL_IS_DUE);
    let mut seen = Vec::new();
    for call in 1..=3 {
        seen.extend(session.ask("select payload from hotrow.take('q', 700, '3 hours')").unwrap());
        let open: i64 =
            session.value("select sum(count) from hotrow.queue_lease where due < now()").parse().unwrap();
        assert_eq!(open, (5 - call) * 1000, "1000 orders are given back by each call");
    }
    // The lease has ended, although no call has removed it yet.
    check_in(&session, &format!("complete('q', {receipt}) -> lease_lost"));
    check_in(&session, &format!("extend_lease('q', {receipt}, '1 hour') -> lease_lost -"));
    seen.extend(
        session.ask("select payload from hotrow.take('q', 900, '3 hours'), generate_series(1, 3)").unwrap(),
    );
    for _ in 0..4 {
        seen.extend(session.ask("select payload from hotrow.take('q', 1000, '3 hours')").unwrap());
    }
    let numbers: Vec<u32> = seen.iter().map(|number| number.parse().unwrap()).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 6000);
    assert_eq!(numbers[..2100], sorted[..2100]);
}

#[test]
fn orders_that_become_due_at_one_moment_join_in_pieces_and_urgent_ones_first() {
    let (_database, session) = queue("");
    let at = "array_fill(date_trunc('hour', now()) + interval '90 minutes', '{1000}')";
    enqueue(&session, 5, &format!(", not_before => {at}"));
    enqueue(&session, 1, &format!(", not_before => {at}, priority => array_fill(1, '{{1000}}')"));
    session.run("select from hotrow.take('q')");
    session.run(ALL_IS_DUE);
    let first = session.ask("select payload from hotrow.take('q', 3, null)").unwrap();
    assert_eq!(first, ["1", "2", "3"]);
    assert_eq!(head(&session, "ready"), 997);
    let all: usize =
        (0..8).map(|_| session.ask("select payload from hotrow.take('q', 1000, null)").unwrap().len()).sum();
    assert_eq!(all, 5997);
    assert_eq!(head(&session, "ready"), 0);
}

#[test]
fn the_most_urgent_order_is_taken_first_however_many_came_before_it() {
    let (_database, session) = queue("");
    enqueue(&session, 11, ", priority => array_fill(1, '{1000}')");
    session.run("select hotrow.enqueue('q', gen_random_uuid(), '\"urgent\"', priority => 60)");
    assert_eq!(session.value("select payload from hotrow.take('q')"), "\"urgent\"");
    // The search for the second urgent order does not look at the plain orders between the two.
    enqueue(&session, 3, "");
    session.run("select hotrow.enqueue('q', gen_random_uuid(), '\"again\"', priority => 60)");
    assert_eq!(session.value("select payload from hotrow.take('q')"), "\"again\"");
}

#[test]
#[ignore = "long: make test-all"]
fn live_entries_move_to_the_next_generation_in_pieces() {
    let (_database, session) = queue("");
    let groups = "array(select 'g' || n % 7 from generate_series(1, 1000) n)";
    enqueue(&session, 8, &format!(", group_key => {groups}, priority => array_fill(1, '{{1000}}')"));
    session.run("select from hotrow.take('q', 1, null), generate_series(1, 1)");
    session.run("select from hotrow.take('q', 100, null)");
    // Simulates many orders that were taken out before.
    session.run("update hotrow.queue_head set group_gone = 100000, ready_gone = 100000");
    let mut seen = session.ask("select payload from hotrow.take('q', 1, null)").unwrap();
    assert!(head(&session, "group_left") > 6000, "1000 at a call");
    loop {
        let taken = session.ask("select payload from hotrow.take('q', 100, null)").unwrap();
        if taken.is_empty() {
            break;
        }
        seen.extend(taken);
    }
    assert_eq!(head(&session, "grouped"), 0);
    assert_eq!(head(&session, "processed"), 8000);
    // The orders of each group were taken one after another.
    for group in 0..7 {
        let of_group: Vec<u32> =
            seen.iter().map(|number| number.parse().unwrap()).filter(|number| number % 7 == group).collect();
        assert!(of_group.is_sorted());
    }
}

#[test]
fn holds_that_end_together_are_released_in_pieces_and_no_answer_is_wrong() {
    let database = Database::migrated();
    let session = database.session("postgres");
    let id = "00000000-0000-0000-0000-000000000001";
    check_in(&session, "create_sale('s', 18000, 1, hold => '1 hour') -> created");
    for thousand in 0..18 {
        session.run(&format!(
            "select from hotrow.reserve_batch(array_fill('s'::text, '{{1000}}'),
                array(select 'b' || {thousand} * 1000 + n from generate_series(1, 1000) n))"
        ));
    }
    session.run(ALL_HOLDS_ARE_DUE);
    let due = || session.value("select count(*) from hotrow.reservation where status = 'held'");
    check_in(&session, "reserve('s', 'ann') -> reserved #1 999\nsale('s') -> s 17999 1 0 1 - - 01:00:00");
    assert_eq!(due(), "17001");
    // The call cannot know yet whether there is enough stock and how many pieces the buyer has.
    check_in(&session, &format!("reserve('s', 'b18000', 1, '{id}') -> busy - 1999"));
    session.run("update hotrow.sale set per_buyer = 100000");
    check_in(&session, &format!("reserve('s', 'bob', 9000, '{id}') -> busy - 6999"));
    assert_eq!(due(), "11001");
    // The rollback of reserve_all does not undo the release of expired holds.
    check_in(&session, "reserve_all('{s,s}', '{17000,1}', 'eve') -> busy - s");
    assert_eq!(due(), "9001");
    check_in(&session, "restock('s', 1) -> restocked 10000\nexpire_holds(1000) -> 1000");
    for _ in 0..2 {
        check_in(&session, &format!("reserve('s', 'bob', 9000, '{id}') -> reserved #1 3000"));
    }
    check_in(&session, "expire_holds(9000) -> 1000\nreserve('s', 'eve', 9001) -> sold_out - 9000");
}

#[test]
fn expire_holds_finds_due_sales_by_an_index() {
    let database = Database::migrated();
    let session = database.session("postgres");
    session.run(
        "insert into hotrow.sale (item, stock, remaining) select 'i' || n, 9, 9 from generate_series(1, 3000) n",
    );
    check_in(
        &session,
        "create_sale('s', 9, hold => '1 hour') -> created\nreserve('s', 'ann') -> reserved #1 8",
    );
    let reads = |call: &str| {
        session.run("select pg_stat_reset_single_table_counters('hotrow.sale'::regclass)");
        session.run(call);
        session.run("select pg_stat_clear_snapshot()");
        session.value(
            "select pg_stat_get_xact_tuples_returned('hotrow.sale'::regclass) +
                pg_stat_get_xact_tuples_fetched('hotrow.sale'::regclass)",
        )
    };
    session.run("begin");
    assert_eq!(reads("select hotrow.expire_holds()"), "0");
    session.run("commit");
    session.run(ALL_HOLDS_ARE_DUE);
    check_in(&session, "expire_holds() -> 1\nsale('s') -> s 9 0 0 - - - 01:00:00");
    assert_eq!(session.value("select count(*) from hotrow.sale_due"), "0");
    // After the last hold of a sale is released, its next hold registers the sale again.
    check_in(&session, "reserve_batch('{s,i1}', '{ann,ann}') -> reserved #1 8 | reserved #2 8");
    assert_eq!(session.value("select count(*) from hotrow.sale_due"), "1");
}
