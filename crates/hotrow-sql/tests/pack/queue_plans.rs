//! Plans of queues: a call reads only its own rows, for any statistics of the planner.

use crate::plans::Plans;

/// A queue with a thousand orders that wait, and a hundred each that are leased together, leased one by one, dead, given back
/// and delayed, and 400 that are processed; a queue of groups; and a queue of created_at, whose side line no call has looked
/// at.
const CROWD: &str = "
    select hotrow.create_queue('plain', retention => '0');
    select from hotrow.enqueue_batch(array_fill('plain'::text, '{1000}'),
        array(select ('00000000-0000-4000-8001-' || lpad(n::text, 12, '0'))::uuid from generate_series(1, 1000) n));
    select hotrow.create_queue('big', max_attempts => 1, retention => '0');
    select from hotrow.enqueue_batch(array_fill('big'::text, '{1000}'),
        array(select ('00000000-0000-4000-8002-' || lpad(n::text, 12, '0'))::uuid from generate_series(1, 1000) n));
    select from hotrow.enqueue_batch(array_fill('big'::text, '{1000}'),
        array(select ('00000000-0000-4000-8003-' || lpad(n::text, 12, '0'))::uuid from generate_series(1, 1000) n));
    select from hotrow.take('big', 400, null);
    select from hotrow.take('big', 100, '1 hour');
    select from hotrow.take_batch(array_fill('big'::text, '{100}'), null, array_fill('1 hour'::interval, '{100}'));
    select from hotrow.take_batch(array_fill('big'::text, '{100}'));
    select from hotrow.fail_batch(array_fill('big'::text, '{100}'), array(select n * 16384 from generate_series(102, 201) n));
    select from hotrow.take_batch(array_fill('big'::text, '{100}'));
    select from hotrow.release_batch(array_fill('big'::text, '{100}'), array(select n * 16384 from generate_series(202, 301) n));
    select from hotrow.enqueue_batch(array_fill('big'::text, '{100}'), array(select gen_random_uuid() from generate_series(1, 100)),
        not_before => array_fill(now() + '1 hour', '{100}'));
    select from hotrow.take('big', 1, null);
    select hotrow.create_queue('grouped', retention => '0');
    select from hotrow.enqueue_batch(array_fill('grouped'::text, '{1000}'),
        array(select ('00000000-0000-4000-8004-' || lpad(n::text, 12, '0'))::uuid from generate_series(1, 1000) n),
        group_key => array(select 'g' || n % 100 from generate_series(1, 1000) n));
    select from hotrow.take('grouped', 30, '1 hour');
    select hotrow.create_queue('sorted', retention => '0', order_by => 'created_at');
    select from hotrow.enqueue_batch(array_fill('sorted'::text, '{1000}'),
        array(select gen_random_uuid() from generate_series(1, 1000)),
        created_at => array(select '2026-01-01'::timestamptz + n * (-1) ^ n * interval '1 s' from generate_series(1, 1000) n))";

/// Each function of queues, on queues of its own, except rotate_queues: an emptied part has no statistics.
const PLANNED_ON_NOTHING: &str = "do $$
declare
    taken bigint;
begin
    perform hotrow.create_queue('p', max_attempts => 1, retention => '0'), hotrow.create_queue('r', retention => '0');
    for i in 1 .. 8 loop
        perform hotrow.enqueue('p', gen_random_uuid(), group_key => case when i > 5 then 'g' end);
        perform hotrow.enqueue('r', gen_random_uuid(), priority => 1);
        perform hotrow.enqueue('r', gen_random_uuid(), not_before => now() + '1 hour');
        perform hotrow.enqueue_batch('{p,p,p,p,p,p,r,r,r}', array(select gen_random_uuid() from generate_series(1, 9)));
        perform hotrow.enqueue_all('r', jsonb_build_array(jsonb_build_object('order_id', gen_random_uuid())));
        perform hotrow.take('r', 1, null);
        perform hotrow.take('p', 1, null);
        perform hotrow.take_batch('{p,r}', '{1,2}', array[null, null]::interval[]);
        select t.receipt into taken from hotrow.take('p') t;
        perform hotrow.extend_lease('p', taken, '1 hour');
        perform hotrow.fail('p', taken, 'x');
        select t.receipt into taken from hotrow.take('r') t;
        perform hotrow.fail('r', taken, 'x');
        select t.receipt into taken from hotrow.take('p') t;
        perform hotrow.complete_all('p', array[taken]);
        select t.receipt into taken from hotrow.take('p') t;
        perform hotrow.release('p', taken);
        select t.receipt into taken from hotrow.take('p') t;
        perform hotrow.complete('p', taken);
        perform hotrow.redrive('p', 1);
        perform hotrow.find_order('p', gen_random_uuid());
        perform hotrow.list_orders('p', s.state) from unnest('{waiting,delayed,leased,processed,dead}'::text[]) s (state);
        perform hotrow.queue_stats('p');
        perform hotrow.pause('r');
        perform hotrow.resume('r');
    end loop;
end $$";

/// Calls, and the most rows that each may read: a few for each row that it needs.
const CALLS: &[(&str, i64)] = &[
    ("enqueue('plain', '00000000-0000-4000-8001-000000001001')", 20),
    ("enqueue('plain', '00000000-0000-4000-8001-000000000500')", 20),
    ("enqueue('plain', '00000000-0000-4000-8001-000000001002', priority => 1)", 20),
    ("enqueue('grouped', '00000000-0000-4000-8004-000000001001', group_key => 'g7')", 20),
    ("enqueue('sorted', gen_random_uuid(), created_at => '2025-01-01')", 20),
    (
        "enqueue_batch('{plain,plain,big}', array[gen_random_uuid(), gen_random_uuid(), gen_random_uuid()])",
        40,
    ),
    (
        "enqueue_all('big', jsonb_build_array(jsonb_build_object('order_id', gen_random_uuid()),
            jsonb_build_object('order_id', gen_random_uuid())))",
        20,
    ),
    (
        "enqueue_all_batch('{big,plain}', array_fill(jsonb_build_array(jsonb_build_object('order_id', gen_random_uuid())), '{2}'))",
        40,
    ),
    ("take('plain', 1, null)", 200),
    ("take('plain', 1, null)", 200),
    ("take('plain', 1, null)", 200),
    ("take('plain')", 200),
    ("take_batch('{plain,plain,plain}', '{1,1,1}', array[null, null, null]::interval[])", 200),
    ("take_batch('{plain,plain,plain}', '{1,2,1}')", 200),
    ("take_batch('{plain,grouped}', '{1,1}')", 200),
    ("take('big', 1, null)", 200),
    ("take('big')", 200),
    ("take('grouped', 1, null)", 200),
    ("take('grouped')", 200),
    ("take('sorted', 1, null)", 1700),
    ("take('sorted')", 200),
    ("complete('big', 16384)", 200),
    ("complete('big', 32768)", 40),
    ("complete_all('big', array[49152, 65536])", 40),
    ("complete('grouped', 16384)", 60),
    ("fail('big', 81920, 'x')", 40),
    ("fail('grouped', 16400, 'x', '1 hour')", 100),
    ("release('big', 98304)", 40),
    ("extend_lease('big', 114688, '2 hours')", 40),
    ("redrive('big', 1)", 20),
    ("redrive('big', 1, '00000000-0000-4000-8002-000000000650')", 20),
    ("find_order('plain', '00000000-0000-4000-8001-000000000900')", 20),
    ("find_order('big', '00000000-0000-4000-8002-000000000001')", 20),
    ("find_order('big', '00000000-0000-4000-8002-000000000550')", 250),
    ("find_order('big', '00000000-0000-4000-8002-000000000651')", 20),
    ("list_orders('plain', after => 500, max => 3)", 40),
    ("list_orders('sorted', after => 500, max => 3)", 500),
    ("list_orders('big', max => 3)", 1000),
    ("list_orders('grouped', max => 3)", 1500),
    ("list_orders('big', 'delayed', max => 3)", 400),
    ("list_orders('big', 'processed', max => 3)", 20),
    ("list_orders('big', 'dead', max => 3)", 20),
    ("list_orders('big', 'leased', max => 3)", 1000),
    ("queue_stats('big')", 60),
    ("queue_stats('grouped')", 500),
    ("list_queues()", 700),
    ("pause('big')", 60),
    ("resume('big')", 60),
    ("create_queue('new')", 20),
    ("drop_queue('new')", 20),
    // All calls but the first move all open orders, and read each order about four times.
    ("rotate_queues()", 2000),
    ("rotate_queues()", 20000),
    ("rotate_queues()", 20000),
    ("rotate_queues()", 20000),
];

#[test]
#[ignore = "long: make test-all"]
fn calls_read_only_their_own_rows_whatever_the_statistics() {
    let left = ("select processed || ' ' || dead from hotrow.queue_stats('big')", "406 99");
    Plans { area: "queues", planned_on_nothing: PLANNED_ON_NOTHING, crowd: CROWD, calls: CALLS, left }
        .check();
}
