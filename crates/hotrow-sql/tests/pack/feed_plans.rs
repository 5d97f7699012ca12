//! Plans of feeds: a call reads only its own rows, for any statistics of the planner.

use crate::plans::Plans;

/// Twenty authors with fifty followers each, and a thousand inboxes with a message.
const CROWD: &str = "select from hotrow.follow_batch(array(select 1000 + n from generate_series(0, 999) n),
        array(select 2 + n % 20 from generate_series(0, 999) n));
    select from hotrow.push_batch(array(select 1000 + n from generate_series(0, 999) n), array_fill(7::bigint, '{1000}'),
        array_fill('x'::text, '{1000}'),
        array_fill(null::timestamptz, '{1000}'), array(select gen_random_uuid() from generate_series(1, 1000)))";

/// Calls each function of feeds often enough to make its plan the cached one, for users outside the crowd.
const PLANNED_ON_NOTHING: &str = "do $$ begin for i in 1 .. 8 loop
    perform hotrow.follow(1, 30); perform hotrow.follow_batch('{1,2}', '{31,31}');
    perform hotrow.post(30, 'x'); perform hotrow.post_batch('{30,31}', '{x,y}');
    perform hotrow.push(1, 2, 'x'); perform hotrow.push_batch('{1,2}', '{3,3}', '{x,y}');
    perform hotrow.push(1, 2, 'x', null, gen_random_uuid());
    perform hotrow.consume(1, 1); perform hotrow.consume_batch('{1,2}', '{1,1}'); perform hotrow.peek(1, 1, 'author');
    perform hotrow.unread(1); perform hotrow.past(1); perform hotrow.mark_read_up_to(1, 1);
    perform hotrow.fan_out(); perform hotrow.trim_feeds(1);
    perform hotrow.mute(1, 30); perform hotrow.unfollow(1, 30); perform hotrow.unfollow_batch('{1,2}', '{31,31}');
end loop; end $$";

/// Calls, and the most rows that each may read: a few for each row that it needs.
const CALLS: &[(&str, i64)] = &[
    ("post(3, 'x')", 250),
    ("post_batch('{3,4,5}', '{x,y,z}')", 750),
    ("push(1001, 7, 'x')", 10),
    ("push(1001, 7, 'x', null, '00000000-0000-0000-0000-000000000001')", 20),
    ("push_batch('{1001,1002}', '{3,4}', '{x,y}')", 20),
    ("consume(1001)", 20),
    ("consume(1001, 20, 'author')", 20),
    ("consume_batch('{1002,1003}')", 40),
    ("peek(1004)", 20),
    ("feed_stats()", 2100),
    ("unread(1004)", 10),
    ("past(1004)", 10),
    ("mark_read_up_to(1004, 1)", 20),
    ("follow(1004, 5)", 40),
    ("follow_batch('{1004,1005}', '{8,9}')", 80),
    ("mute(1004, 5)", 20),
    ("unfollow(1004, 5)", 40),
    ("fan_out()", 10),
    ("trim_feeds(1)", 60),
];

#[test]
#[ignore = "long: make test-all"]
fn calls_read_only_their_own_rows_whatever_the_statistics() {
    let left = ("select count(*) from hotrow.inbox_entry where post_id > 0 and user_id >= 1000", "200");
    Plans { area: "feeds", planned_on_nothing: PLANNED_ON_NOTHING, crowd: CROWD, calls: CALLS, left }.check();
}
