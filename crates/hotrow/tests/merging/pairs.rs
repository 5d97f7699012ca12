//! Pairs of a function and a batch function of which the batch function would do something else than the function: their
//! calls are not merged.

use std::thread;

use hotrow_testkit::{Gateway, patient, server};

use crate::connect;

const CLIENTS: usize = 8;
const ROUNDS: usize = 6;

/// Functions that say which of them has run. The rules are written directly, as an owner could have done before the
/// functions were changed.
const PAIRS: &str = "
    create schema pairs;
    create function pairs.plain_batch(k text[], n bigint[]) returns setof text language sql as $$
        select 'bigint ' || coalesce(n, 0) from unnest(n) with ordinality u (n, call) order by call $$;
    create function pairs.plain(k text, n bigint) returns text language sql as $$
        select pairs.plain_batch(array[k], array[n]) $$;
    create function pairs.strict_batch(k text[], n bigint[]) returns setof text language sql as $$
        select coalesce(n, -1)::text from unnest(n) with ordinality u (n, call) order by call $$;
    create function pairs.strict(k text, n bigint) returns text strict language sql as $$ select n::text $$;
    create function pairs.zone_batch(k text[], n bigint[]) returns setof text language sql as $$
        select current_setting('timezone') from unnest(n) $$;
    create function pairs.zone(k text, n bigint) returns text language sql set timezone = 'Asia/Tokyo' as $$
        select current_setting('timezone') $$;
    insert into hotrow.merge_rule (function, batch, key_argument, key_space, most_calls)
        select format('pairs.%s(text,bigint)', name), format('pairs.%s_batch(text[],bigint[])', name), 'k', name, 256
        from unnest('{plain,strict,zone}'::text[]) name";

/// The batch function's name with arrays that fit a call with numbers better.
const NAMESAKE: &str =
    "create function pairs.plain_batch(k text[], n int[]) returns setof text language sql as $$
    select 'int' from unnest(n) $$";

/// Calls at once by all clients. Each gets the direct answer.
fn call(gateway: &Gateway, sql: &str) {
    let due = connect(server().port()).query(sql);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut line = connect(gateway.port());
                for _ in 0..ROUNDS {
                    (0..ROUNDS).for_each(|_| line.put_query(sql));
                    line.send().unwrap();
                    (0..ROUNDS).for_each(|_| assert_eq!(line.answer().frames(), due.frames(), "{sql}"));
                }
            });
        }
    });
}

#[test]
fn calls_are_not_merged_if_the_batch_function_would_do_something_else() {
    crate::migrate_once();
    let mut direct = connect(server().port());
    assert_eq!(direct.query(PAIRS).error(), None);
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    let merged = || gateway.metric("hotrow_merged_units_total");
    call(&gateway, "select * from pairs.plain('a', 5)");
    assert!(merged() > 0, "this pair fits");
    assert_eq!(direct.query(NAMESAKE).error(), None);
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    let merged = || gateway.metric("hotrow_merged_units_total");
    for sql in [
        "select * from pairs.plain('a', 5)",
        "select * from pairs.plain('a', 5 + 1)",
        "select * from pairs.strict('a', null)",
        "select * from pairs.zone('a', 1)",
    ] {
        call(&gateway, sql);
        assert_eq!(merged(), 0, "{sql}");
    }
}
