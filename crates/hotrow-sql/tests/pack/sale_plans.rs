//! Plans of sales and requests: a call reads only its own rows, for any statistics of the planner.

use crate::plans::Plans;

/// A sale with a thousand held reservations and a sale with a thousand expired ones, each of another buyer.
const CROWD: &str = "
    select hotrow.create_sale('held', 10000, 5, hold => '1 hour'), hotrow.create_sale('due', 10000, 5, hold => '1 hour'),
        hotrow.create_sale('open', 10000), hotrow.create_sale('limited', 10000, 5);
    select from unnest('{held,due,open,limited}'::text[], '{2,3,4,5}'::int[]) i (item, k) cross join lateral hotrow.reserve_batch(
        array_fill(i.item, '{1000}'), array(select 'b' || n from generate_series(1, 1000) n), null,
        array(select ('00000000-0000-4000-800' || i.k || '-' || lpad(n::text, 12, '0'))::uuid from generate_series(1, 1000) n));
    update hotrow.request set expires_at = expires_at - interval '2 hours' where item = 'due';
    update hotrow.sale set next_expiry = next_expiry - interval '2 hours' where item = 'due';
    select from hotrow.increment_batch(array_fill('c'::text, '{1000}'), null,
        array(select ('00000000-0000-4000-8006-' || lpad(n::text, 12, '0'))::uuid from generate_series(1, 1000) n));
    update hotrow.request set at = at - interval '8 days' where command = 'increment'";

/// Each function, on sales of its own.
const PLANNED_ON_NOTHING: &str = "do $$
declare
    one uuid;
    many uuid[];
begin
    for i in 1 .. 8 loop
        perform hotrow.create_sale('p', 100000, 1000, hold => '1 hour'), hotrow.create_sale('r', 100000),
            hotrow.create_sale('s' || i, 1), hotrow.create_sale('t', 100, hold => '1 microsecond');
        perform hotrow.reserve('p', 'b'), hotrow.reserve('r', 'b'), hotrow.reserve('s' || i, 'b', 2), hotrow.reserve('t', 'b'),
            hotrow.reserve('p', 'b', 1, gen_random_uuid()), hotrow.reserve('p', 'b', 1, null, true);
        perform hotrow.reserve_batch('{p,p}', '{b,b}'), hotrow.reserve_batch('{p,r}', '{b,b}'), hotrow.reserve_batch('{p,p}', '{c,d}'),
            hotrow.reserve_batch('{p,r}', '{b,b}', null, array[gen_random_uuid(), gen_random_uuid()]);
        perform hotrow.reserve_all('{p,r}', '{1,1}', 'b'), hotrow.reserve_all('{p,r}', '{1,1}', 'b', gen_random_uuid());
        one := (hotrow.reserve('p', 'b')).reservation_id;
        perform hotrow.reserve('p', 'b', 1, one), hotrow.extend(one, '1 hour'), hotrow.confirm(one);
        one := (hotrow.reserve('p', 'b')).reservation_id;
        perform hotrow.cancel(one);
        many := array[(hotrow.reserve('p', 'b')).reservation_id, (hotrow.reserve('r', 'b')).reservation_id];
        perform hotrow.extend_batch(many, array[interval '1 hour', interval '1 hour']), hotrow.confirm_batch(many);
        many := array[(hotrow.reserve('p', 'b')).reservation_id, (hotrow.reserve('r', 'b')).reservation_id];
        perform hotrow.cancel_batch(many);
        perform hotrow.restock('p', 1), hotrow.restock('p', 1, gen_random_uuid()), hotrow.sale('p'), hotrow.sale('t');
        perform hotrow.expire_holds(1), hotrow.forget_requests(1);
    end loop;
end $$";

/// Calls, and the most rows that each may read: a few for each row that it needs.
const CALLS: &[(&str, i64)] = &[
    ("reserve('open', 'ann')", 20),
    ("reserve('limited', 'ann')", 20),
    ("reserve('limited', 'b7', 9)", 20),
    ("reserve('held', 'ann')", 20),
    ("reserve('held', 'ann', 1, '00000000-0000-4000-8002-000000001001')", 20),
    ("reserve('held', 'b1', 1, '00000000-0000-4000-8002-000000000001')", 20),
    ("reserve('held', 'ann', 1, null, true)", 20),
    ("reserve_batch('{held,held,held}', '{b1,b2,b3}')", 40),
    ("reserve_batch('{held,open,limited}', '{b1,b2,b3}')", 40),
    ("reserve_batch('{held,limited}', '{b4,b4}', null, array[gen_random_uuid(), gen_random_uuid()])", 40),
    ("reserve_all('{held,limited,open}', '{1,1,1}', 'b5')", 60),
    ("reserve_all('{held,limited}', '{1,1}', 'b5', gen_random_uuid())", 60),
    ("confirm('00000000-0000-4000-8002-000000000001')", 20),
    ("confirm_batch('{00000000-0000-4000-8002-000000000002,00000000-0000-4000-8004-000000000003}')", 40),
    ("cancel('00000000-0000-4000-8002-000000000004')", 20),
    ("cancel_batch('{00000000-0000-4000-8002-000000000005,00000000-0000-4000-8005-000000000006}')", 40),
    ("extend('00000000-0000-4000-8002-000000000007', '2 hours')", 20),
    (
        "extend_batch('{00000000-0000-4000-8002-000000000008,00000000-0000-4000-8002-000000000009}', array[interval '1 hour', '2 hours'])",
        40,
    ),
    ("restock('held', 1)", 20),
    ("restock('held', 1, gen_random_uuid())", 20),
    ("sale('open')", 2000),
    ("list_sales('', 1)", 2100),
    ("sale('limited')", 2000),
    ("forget_requests(5)", 60),
    ("expire_holds(5)", 60),
    ("reserve('due', 'ann')", 4000),
    ("cancel('00000000-0000-4000-8003-000000000004')", 20),
    ("create_sale('new', 1)", 20),
];

#[test]
#[ignore = "long: make test-all"]
fn calls_read_only_their_own_rows_whatever_the_statistics() {
    let left = ("select remaining || ' ' || sold from hotrow.sale('held')", "8994 2");
    Plans { area: "sales", planned_on_nothing: PLANNED_ON_NOTHING, crowd: CROWD, calls: CALLS, left }.check();
}
