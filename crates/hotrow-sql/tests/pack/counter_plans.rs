//! Plans of counters: a call reads only its own rows, for any statistics of the planner.

use crate::plans::Plans;

/// A thousand counters, and two with a thousand commands each in ledger and log.
const CROWD: &str = "
    select from hotrow.increment_batch(array(select 'c' || n from generate_series(1, 1000) n));
    select hotrow.create_counter('log', 'log');
    select hotrow.increment('many', n), hotrow.increment('log', n) from generate_series(1, 1500) n;
    select from hotrow.increment_batch(array_fill('many'::text, '{1000}'), null,
        array(select ('00000000-0000-4000-8001-' || lpad(n::text, 12, '0'))::uuid from generate_series(1, 1000) n));
    select hotrow.increment('log', 1) from generate_series(1, 20)";

/// Each function, on counters of its own.
const PLANNED_ON_NOTHING: &str = "do $$ begin
    perform hotrow.create_counter('q', 'log');
    for i in 1 .. 8 loop
        perform hotrow.create_counter('n' || i), hotrow.increment('p'), hotrow.increment('p', 1, gen_random_uuid()),
            hotrow.increment('q'), hotrow.increment('new' || i), hotrow.drain('p'), hotrow.drain('q'),
            hotrow.drain('p', gen_random_uuid());
        perform hotrow.increment_batch('{p,p,q}'), hotrow.increment_batch('{p,r}', '{1,2}', array[gen_random_uuid(), gen_random_uuid()]),
            hotrow.drain_batch('{p,q}');
        perform hotrow.counter('p');
        perform set_config('hotrow.memory_' || (hashtext('q') & 63), '', false);
        perform hotrow.counter('q');
        perform hotrow.increment('q');
    end loop;
end $$";

/// Calls, and the most rows that each may read: a few for each row that it needs. A connection that is new to a log counter
/// folds the commands after its last snapshot.
const CALLS: &[(&str, i64)] = &[
    ("increment('many')", 10),
    ("increment('c7')", 10),
    ("increment('c1001')", 10),
    ("increment('many', 1, '00000000-0000-4000-8001-000000001001')", 10),
    ("increment('many', 1, '00000000-0000-4000-8001-000000000001')", 10),
    ("increment_batch('{many,c1,c2,c3}')", 40),
    ("increment_batch('{many,c1}', '{1,1}', array[gen_random_uuid(), gen_random_uuid()])", 40),
    ("drain('c8')", 10),
    ("drain('c8', gen_random_uuid())", 10),
    ("drain_batch('{c8,c9,c10}')", 40),
    ("counter('many')", 10),
    ("list_counters('c2', 3)", 40),
    ("counter('log')", 1100),
    ("increment('log')", 1100),
    ("increment('log')", 10),
    ("drain('log')", 10),
    ("create_counter('c5')", 10),
];

#[test]
#[ignore = "long: make test-all"]
fn calls_read_only_their_own_rows_whatever_the_statistics() {
    let left = ("select version from hotrow.counter('many')", "2504");
    Plans { area: "counters", planned_on_nothing: PLANNED_ON_NOTHING, crowd: CROWD, calls: CALLS, left }
        .check();
}
