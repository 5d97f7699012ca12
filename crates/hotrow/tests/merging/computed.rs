//! Merged calls with expressions as arguments: each caller gets the values that its own call would have computed.

use std::collections::HashSet;
use std::sync::Once;
use std::thread;

use hotrow_testkit::line::Line;
use hotrow_testkit::{Gateway, patient, server};

use crate::connect;
use crate::together::Together;

const CLIENTS: usize = 12;
const ROUNDS: usize = 4;

/// A function that returns its arguments as text.
const ECHO: &str = "
    create schema echo;
    create function echo.echo_batch(k text[], n bigint[] default null, x numeric[] default null, s text[] default null,
        i interval[] default null, u uuid[] default null)
        returns setof text language sql as $$
            select format('%s|%s|%s|%s|%s|%s', e.k, e.n, e.x, e.s, e.i, e.u)
            from unnest(k, n, x, s, i, u) with ordinality e (k, n, x, s, i, u, call) order by e.call $$;
    create function echo.echo(k text, n bigint default null, x numeric default null, s text default null,
        i interval default null, u uuid default null) returns text language sql as $$
            select echo.echo_batch(array[k], array[n], array[x], array[s], array[i], array[u]) $$;
    create function echo.several(n bigint) returns setof bigint immutable language sql as $$
        select n where n % 3 > 0 union all select n + 100 where n % 3 > 1 $$;
    create function echo.differs(a int, b int) returns boolean immutable language sql as $$ select a <> b $$;
    create operator public.== (leftarg = int, rightarg = int, function = echo.differs);
    select hotrow.add_merge_rule('echo.echo(text,bigint,numeric,text,interval,uuid)',
        'echo.echo_batch(text[],bigint[],numeric[],text[],interval[],uuid[])',
        key_argument => 'k', key_space => 'echo')";

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::migrate_once();
        assert_eq!(connect(server().port()).query(ECHO).error(), None);
    });
}

/// Fails for most callers.
const OVERFLOWS: &str = "n => $2::int * 536870912";

/// Arguments after the key. `$1` is the key, `$2` a number, `$3` a text.
const ARGUMENTS: &[&str] = &[
    "$2 + 1",
    "n => $2::bigint * 3 - -2 / 2 % 5",
    "x => $2 / 3.0",
    "x => round($2::numeric / 7, 2)",
    "x => 2.0 ^ $2 - 1",
    "n => 10 / ($2::int - 4)",
    OVERFLOWS,
    "s => $3 || '-it''s-' || $1",
    "s => coalesce(nullif($3, 'c'), upper($1)) || $2::int",
    "s => 'a' || 'b'",
    "n => length($3) + $2::int, s => lower('ABC' || $3)",
    "i => interval '1 day' * $2::int + '2 hours'",
    "n => ($2::int + 1) * 2, x => 1.50 + 1, s => $3",
    "s => $3::varchar(1)",
    "s => (not $2::int > 3)::text",
    "n => case when $2::int % 4 = 0 then $2::int else 10 / ($2::int % 4) end",
    "n => extract(day from '2020-02-29'::timestamp + interval '1 day' * $2::int)::bigint",
    "s => case $3 when 'a' then 'x' when 'b' then null else $1 end || $3",
    "n => array_length(array[$2::int, 7, $2::int], 1), s => ($3 in ('a', 'b') and $3 is not null)::text",
];

/// The same for arguments that the gateway leaves to the server: they return any number of rows, the parser reads them as
/// something else, or the server finds the error in a merged call only sometimes.
const LEFT_TO_THE_SERVER: &[&str] = &[
    "n => echo.several($2::bigint)",
    "n => case when $2::int == 4 then 1 else 2 end",
    "n => null::bigint + 10 / ($2::int - 4)",
    "n => case when ($2::int - 4) / ($2::int - 4) = 1 or true then 1 end",
    "s => (not $2::int > 3 and true)::text",
    "n => try_cast($2 as bigint)",
    "s => true::text",
    "n => true::int",
];

/// One call by either protocol, with the values of this caller.
fn put_call(line: &mut Line, arguments: &str, caller: usize) {
    let values =
        [format!("k{}", caller % 3), caller.to_string(), ["a", "b", "c\\'\"{,}"][caller % 3].to_owned()];
    let sql = format!("select * from echo.echo($1, {arguments})");
    if caller.is_multiple_of(2) {
        let literal = |value: &str| match value.parse::<i64>() {
            Ok(_) => value.to_owned(),
            Err(_) => format!("'{}'", value.replace('\'', "''")),
        };
        let text = values
            .iter()
            .enumerate()
            .fold(sql, |sql, (index, value)| sql.replace(&format!("${}", index + 1), &literal(value)));
        line.put_query(&text);
    } else {
        let count = (1..=3).filter(|number| sql.contains(&format!("${number}"))).max().unwrap();
        let values: Vec<_> = values.iter().map(|value| Some(value.as_str())).collect();
        line.put_unnamed_call(&sql, &values[..count]);
        line.put_sync();
    }
    line.send().unwrap();
}

#[test]
fn each_call_gets_its_own_values() {
    install();
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    let merged = || gateway.metric("hotrow_merged_units_total");
    let mut unmerged = Vec::new();
    for arguments in ARGUMENTS.iter().chain(LEFT_TO_THE_SERVER) {
        let mut direct = connect(server().port());
        let due: Vec<_> = (0..CLIENTS)
            .map(|caller| {
                put_call(&mut direct, arguments, caller);
                direct.answer()
            })
            .collect();
        let before = merged();
        let start = Together::new(CLIENTS);
        thread::scope(|scope| {
            for (caller, due) in due.iter().enumerate() {
                let (start, port) = (&start, gateway.port());
                scope.spawn(move || {
                    let start = start.caller();
                    let mut line = connect(port);
                    for _ in 0..ROUNDS {
                        start.wait();
                        put_call(&mut line, arguments, caller);
                        assert_eq!(line.answer().frames(), due.frames(), "{arguments}, caller {caller}");
                    }
                });
            }
        });
        if merged() == before {
            unmerged.push(*arguments);
        }
    }
    unmerged.retain(|arguments| *arguments != OVERFLOWS);
    assert_eq!(unmerged, LEFT_TO_THE_SERVER);
}

#[test]
fn volatile_functions_are_computed_for_each_call() {
    install();
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    let start = Together::new(CLIENTS);
    let answers: Vec<String> = thread::scope(|scope| {
        let calls = (0..CLIENTS).map(|caller| {
            let (start, port) = (&start, gateway.port());
            scope.spawn(move || {
                let start = start.caller();
                let mut line = connect(port);
                let mut seen = Vec::new();
                for _ in 0..ROUNDS {
                    start.wait();
                    let sql = format!("select * from echo.echo('k{}', u => gen_random_uuid())", caller % 2);
                    seen.push(line.query(&sql).rows()[0][0].clone().unwrap());
                }
                seen
            })
        });
        let calls: Vec<_> = calls.collect();
        calls.into_iter().flat_map(|call| call.join().unwrap()).collect()
    });
    let distinct: HashSet<_> = answers.iter().collect();
    assert_eq!(distinct.len(), CLIENTS * ROUNDS);
    assert!(gateway.metric("hotrow_merged_units_total") > 0);
}

/// The time in microseconds, by functions of a batch's transaction and by one of each call's own.
const MOMENTS: &[&str] =
    &["now()", "current_timestamp", "transaction_timestamp()", "statement_timestamp()", "clock_timestamp()"];

/// Directly, a call's time lies between its sending and its answer. That of a batch, which begins later, does too.
#[test]
fn moments_lie_between_the_call_and_its_answer() {
    install();
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    let merged = || gateway.metric("hotrow_merged_units_total");
    let number = |answer: Option<String>| {
        answer.unwrap().trim_matches('|').rsplit('|').next().unwrap().parse::<i64>().unwrap()
    };
    for moment in MOMENTS {
        let microseconds = |moment: &str| format!("(date_part('epoch', {moment}) * 1000000)::bigint");
        let (clock, value) = (microseconds("clock_timestamp()"), microseconds(moment));
        let before = merged();
        let start = Together::new(CLIENTS);
        let times: Vec<[i64; 3]> = thread::scope(|scope| {
            let calls = (0..CLIENTS).map(|caller| {
                let (start, port, clock, value) = (&start, gateway.port(), &clock, &value);
                scope.spawn(move || {
                    let start = start.caller();
                    let (mut line, mut direct) = (connect(port), connect(server().port()));
                    let mut now = || number(direct.query(&format!("select {clock}")).rows()[0][0].clone());
                    let sql = format!("select * from echo.echo('k{}', n => {value})", caller % 2);
                    let mut call = || {
                        start.wait();
                        [now(), number(line.query(&sql).rows()[0][0].clone()), now()]
                    };
                    (0..ROUNDS).map(|_| call()).collect::<Vec<_>>()
                })
            });
            let calls: Vec<_> = calls.collect();
            calls.into_iter().flat_map(|call| call.join().unwrap()).collect()
        });
        for [sent, value, answered] in times {
            assert!((sent..=answered).contains(&value), "{moment}: {sent} {value} {answered}");
        }
        assert!(merged() > before, "{moment}");
    }
}
