//! Tests that the work on a text grows linearly with its length, for shapes that once made it quadratic.

use super::*;
use crate::limits;
use crate::normalise::Normaliser;

/// A prefix and a repeated part for each shape. Each shape either took quadratic time once or reaches a loop
/// of its own.
const SHAPES: &[(&str, &str)] = &[
    ("select 1", ",x"),
    ("select 1 from ", "f()a("),
    ("table x ", ")a("),
    ("select 1,", "(a)b("),
    ("select distinct on (a) 1,", "(a)b("),
    ("with a as (select 1)", ",a(b"),
    ("with a as (select 1)", ",a(b,c)"),
    ("select 1", ",f(a)as("),
    ("select 1 ", "+-"),
    ("select 1 ", "+ - "),
    ("select 1 ", "@"),
    ("select 1 ", "= @"),
    ("select 1;", "select 1;"),
    ("begin;", "update t set a = 1 where id = 1;"),
    ("select 1 from t where id = 1", " or a = 1"),
    ("select 1", "::int"),
    ("select 1 ", "case when 1 then "),
    ("select 1 ", "not "),
    ("select 1 ", "- "),
    ("select 1 ", "a["),
    ("select 1 ", "("),
    ("select 1", ",'x'"),
    ("select 1", ",\"x\""),
    ("select 1 where ", "1 between "),
    ("insert into t values (1, 2)", ",(1, 2)"),
    ("update t set a = 1", ",a = 1"),
    ("select 1 from a ", "join b on a = b "),
    ("select 1 ", "interval "),
    ("select 1 ", "$a"),
    ("select $a$", "$a"),
    ("select 1 ", "/*"),
    ("select 1", " -- x\n"),
    ("select 1 ", "/*+ x */ "),
    ("select a.b", ".c("),
    ("select 'x' ", "/* x */"),
    ("select e'", "\\'"),
    ("explain analyze ", "select "),
    ("create table t as ", "as "),
    ("declare c ", "with hold "),
    ("prepare a as ", "as "),
];

/// The shape with about `bytes` bytes.
fn text((head, part): (&str, &str), bytes: usize) -> String {
    format!("{head}{}", part.repeat((bytes - head.len()) / part.len()))
}

/// All work on a text before the decision.
fn classify(sql: &str) {
    let mut normaliser = Normaliser::new();
    let shape = normaliser.run(sql);
    match analyse(shape.shape) {
        Analysis::Candidate(candidate) => drop(decide(&candidate, &Facts::default(), &[])),
        Analysis::Pass(Pass { reason: Reason::SeveralStatements, .. }) => drop(pieces(shape.shape)),
        _ => {}
    }
}

/// Nanoseconds of CPU time of this thread. Other threads of a busy machine do not count.
fn cpu_time() -> u64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux provides schedstat");
    schedule.split(' ').next().and_then(|first| first.parse().ok()).expect("it begins with a number")
}

/// The mean of as many runs as the clock's resolution needs.
fn cost(sql: &str) -> f64 {
    const GRAIN: u64 = 10_000_000;
    let begin = cpu_time();
    for count in 1.. {
        classify(sql);
        let spent = cpu_time() - begin;
        if spent > GRAIN {
            return spent as f64 / f64::from(count);
        }
    }
    unreachable!("a run takes some time")
}

/// Eight times the text can take twelve times as long, which is 2.3 times for each doubling. A single
/// doubling would depend on the clock's resolution. A short text gets some extra time, because it is cheap
/// either way.
#[test]
fn eight_times_the_text_takes_at_most_twelve_times_as_long() {
    const FREE: f64 = 200_000.0;
    let too_slow = |shape: &&(&str, &str)| {
        let (eighth, whole) =
            (text(**shape, limits::STATEMENT_BYTES_MAX / 8), text(**shape, limits::STATEMENT_BYTES_MAX));
        // Other work on the machine can slow down one of the two: it takes away the processor's caches. A shape that is more than
        // linear is too slow each time.
        (0..30).all(|_| cost(&whole) > 12.0 * cost(&eighth) + FREE)
    };
    let found: Vec<_> = SHAPES.iter().filter(too_slow).collect();
    assert!(found.is_empty(), "more than linear: {found:?}");
}
